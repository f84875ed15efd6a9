"""Which of MLX's headers and kernels the trials reach, and that the documents name the others."""

from __future__ import annotations

import re
from pathlib import Path

from trials.coverage import kernels, reached_functions, reached_headers
from trials.table import every, gate

from mlx_assay.impl.executors import headers
from mlx_assay.impl.executors.stock.naming import define

DOCUMENT = (Path(__file__).parents[3] / "docs" / "fidelity.md").read_text()


def listed(title: str) -> set[str]:
    """The code words of a section's items."""
    section = DOCUMENT.partition(f"### {title}\n")[2].partition("\n#")[0]
    assert section, f"docs/fidelity.md has no section {title!r}"
    return set(re.findall(r"^- `([^`]+)`", section, re.M))


def test_every_header_is_reached_or_out_of_reach() -> None:
    assert set(headers.names()) - reached_headers(every()) == {n for n in headers.names() if headers.unreachable(n)}


def test_the_documents_name_the_headers_out_of_reach() -> None:
    assert listed("Headers out of reach") == {n for n in headers.names() if headers.unreachable(n)}


def test_the_documents_name_the_kernels_that_are_not_launched() -> None:
    missing = {f"{header}: {function}" for header, function in kernels() - reached_functions(every())}
    assert missing == listed("Kernels that are not launched")


def test_the_gate_reaches_what_the_night_does() -> None:
    assert reached_functions(gate()) & kernels() == reached_functions(every()) & kernels()


def test_names_stand_for_what_the_headers_define() -> None:
    known = {function for _, function in kernels()}
    for trial in every():
        for kernel in (trial.kernel, *trial.also):
            if (definition := define(kernel)) is not None:
                assert definition.function in known, kernel
