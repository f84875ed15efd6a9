"""Every `air.*` function that mlx-metal 0.29.4, 0.31.2, 0.32.2 and 0.32.4 call, in all of their 63,340 kernels."""

from __future__ import annotations

import re
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from mlx_assay.impl.executors.apple import air, runtime

LISTED = (Path(__file__).parent / "air_functions.txt").read_text().splitlines()
DOCUMENT = Path(__file__).parents[3] / "docs" / "apple-kernels.md"


def split(declaration: str) -> tuple[str, str, list[str]]:
    found = re.fullmatch(r"(.+) @([\w.]+)\((.*)\)", declaration)
    assert found is not None
    return found[2], found[1], [p for p in found[3].split(", ") if p]


@pytest.mark.parametrize("declaration", LISTED)
def test_a_function_is_defined_and_finds_all_it_needs(declaration: str) -> None:
    definition = air.define(*split(declaration), runtime.offsets())
    with llvm.parse_assembly("\n".join([*definition.needs, definition.text]), llvm.create_context()) as module:
        module.verify()
        outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
        assert all(runtime.address(name) for name in outside)
        defined = [f for f in module.functions if not f.is_declaration]
        assert [f.name for f in defined] == [split(declaration)[0]]


def test_the_document_names_what_the_c_library_decides() -> None:
    text = DOCUMENT.read_text()
    names = {split(d)[0] for d in LISTED}
    opaque = {
        n for n in names if air.define(*split(next(d for d in LISTED if f"@{n}(" in d)), runtime.offsets()).opaque
    }
    assert {n for n in names if f"`{n}`" in text} == opaque
    assert len(opaque) == 27
