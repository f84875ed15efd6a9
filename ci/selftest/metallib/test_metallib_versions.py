"""Drift between releases by Apple's kernels: the NaN rule of argmax is found, and nothing else on these rows."""

from __future__ import annotations

from typing import Any

import pytest

from mlx_assay.conformance.versions import doors
from mlx_assay.conformance.versions.drift import drifts
from mlx_assay.conformance.versions.inputs import Input
from mlx_assay.conformance.versions.rows import special
from mlx_assay.oracles import stock_metal

RELEASES = ("0.31.2", "0.32.2", "0.32.4")


def asked() -> list[Input]:
    """Short special rows, and the smaller matrices, of every operation."""
    return [given for given in special() if all(array.size <= 4096 for array in given.arrays.values())]


def test_a_missing_reader_of_bitcode_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(release: str) -> Any:
        raise ModuleNotFoundError("No module named 'llvmlite'")

    monkeypatch.setattr(stock_metal, "library", absent)
    with pytest.raises(doors.Shut, match=r"llvmlite.*pip install 'mlx-assay\[bitcode\]'.*--door cpu"):
        doors.metal("0.32.4", [], doors.Watch(lambda text: None))


def test_a_release_without_kernels_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfetched(release: str) -> Any:
        raise ImportError("mlx-metal 0.99.0 cannot be fetched")

    monkeypatch.setattr(stock_metal, "library", unfetched)
    with pytest.raises(doors.Shut, match=r"^mlx-metal 0\.99\.0 cannot be fetched$"):
        doors.metal("0.99.0", [], doors.Watch(lambda text: None))


def test_the_nan_rule_is_found_in_apples_kernels(stock: Any) -> None:
    for release in RELEASES:
        stock(release)
    inputs = asked()
    answers = {release: doors.metal(release, inputs, doors.Watch(lambda text: None)) for release in RELEASES}
    found, faults = drifts(inputs, "metal", answers)
    assert not faults
    told = {(drift.operation, drift.old_release, drift.new_release) for drift in found}
    assert told == {(name, "0.32.2", "0.32.4") for name in ("argmax", "argmax_given", "normalized_argmax")}
    assert {tuple(each.rule for each in drift.explanations) for drift in found} == {(4, 5)}
    assert {drift.dtype for drift in found} == {"bfloat16", "float16", "float32"}
