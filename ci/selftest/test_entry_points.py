"""Implementations of installed packages, found by the name under which they are registered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlx_assay.conformance import cli
from mlx_assay.conformance.adapters import target
from mlx_assay.conformance.adapters.target import NoTarget
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError

KERNELS = """
import mlx.core as mx

class Kernels:
    @staticmethod
    def logit_softcap(x, cap):
        return x

def logit_softcap(x, cap):
    return x

def argmax_given(logits, lse):
    return x
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes a distribution with entry points, as an installer leaves it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_kernels.py").write_text(KERNELS)

    def made(distribution: str, *points: str, release: str = "1.2") -> None:
        folder = tmp_path / f"{distribution}-{release}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {release}\n")
        (folder / "entry_points.txt").write_text("\n".join((f"[{target.GROUP}]", *points)) + "\n")
        target.installed.cache_clear()

    yield made
    target.installed.cache_clear()


def test_a_name_finds_what_is_registered(install: Install) -> None:
    install("own", "fast = own_kernels:Kernels")
    with Implementation("fast", "host") as implementation:
        assert implementation.operations == ("logit_softcap",)
        assert implementation.details == {"entry_point": "fast = own_kernels:Kernels", "distribution": "own 1.2"}


def test_a_registered_name_comes_before_a_module_of_that_name(install: Install) -> None:
    install("own", "own_kernels = own_kernels:Kernels")
    assert target.target("own_kernels").module == "own_kernels:Kernels"
    assert target.target("own_kernels:").module == "own_kernels:"
    with Implementation("own_kernels:", "host") as implementation:
        assert implementation.operations == ("argmax_given", "logit_softcap")
        assert implementation.details == {}


def test_extras_of_an_entry_point_are_left_out(install: Install) -> None:
    install("own", "fast = own_kernels:Kernels [gpu]")
    assert target.target("fast").module == "own_kernels:Kernels"


def test_a_name_that_two_packages_register_is_told(install: Install) -> None:
    install("own", "fast = own_kernels")
    install("other", "fast = other_kernels:Kernels", release="0.1")
    with pytest.raises(NoTarget) as refused:
        target.target("fast")
    assert "own_kernels (own 1.2)" in str(refused.value)
    assert "other_kernels:Kernels (other 0.1)" in str(refused.value)
    with Implementation("fast", "host") as implementation, pytest.raises(ImplementationError, match="2 are installed"):
        assert implementation.operations


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ("broken = no_such_module:kernels", "No module named 'no_such_module'"),
        ("broken = own_kernels:missing", "no attribute 'missing'"),
    ],
)
def test_a_broken_entry_point_is_told_by_where_it_stands(install: Install, point: str, words: str) -> None:
    install("own", point)
    with Implementation("broken", "host") as implementation, pytest.raises(ImplementationError) as refused:
        assert implementation.operations
    assert words in str(refused.value)
    assert f"(entry point {point}, own 1.2)" in str(refused.value)


def test_they_are_listed(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("own", "fast = own_kernels:Kernels", "slow = own_kernels")
    install("other", "fast = \x1b[2J", release="0.1")
    assert cli.main(["list", "--implementations"]) == 0
    printed = capsys.readouterr()
    assert "slow: own_kernels (own 1.2)\n" in printed.out
    assert "fast: own_kernels:Kernels (own 1.2; the name stands twice: give the target instead)" in printed.out
    assert "\x1b" not in printed.out
    assert "3 implementations in the entry-point group mlx_assay.implementations" in printed.err
    assert cli.main(["list", "--implementations", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"name": "slow", "target": "own_kernels", "distribution": "own 1.2", "alone": True} in listed
    assert cli.main(["list", "--implementations", "argmax_given"]) == 2


def test_a_program_is_split_as_a_shell_does_and_no_shell_runs_it() -> None:
    assert target.target("cmd: bun 'my adapter.ts' --x=$HOME; ls").argv == ("bun", "my adapter.ts", "--x=$HOME;", "ls")
    assert target.target("cmd:bun adapter.ts").argv == ("bun", "adapter.ts")
    for text in ("cmd:", "cmd:  ", "cmd: ''", "cmd: 'x", "cmd: a\0b"):
        with pytest.raises(NoTarget):
            target.target(text)
