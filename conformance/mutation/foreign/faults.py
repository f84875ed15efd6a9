"""Mutants of kernels that were launched: their texts as mx.fast.metal_kernel was given them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mlx_assay.conformance.mutation.catalogue import METAL
from mlx_assay.conformance.mutation.foreign.plant import Launched, Order
from mlx_assay.conformance.mutation.mutant import Mutant, mutants_of
from mlx_assay.conformance.mutation.operator import Edit
from mlx_assay.conformance.mutation.source import Source
from mlx_assay.conformance.mutation.tokens import Code

PARTS = ("source", "header")


@dataclass(frozen=True)
class Fault:
    """A mutant, and how it is planted."""

    mutant: Mutant
    digest: str
    part: str

    def order(self, answer: Path) -> Order:
        """For the process that makes the kernel."""
        edit = self.mutant.edit
        return Order("", str(answer), self.digest, self.part, edit.start, edit.end, edit.new)


def launched(folder: Path) -> list[Launched]:
    """What was written down there and in its folders, each once, in the order of names and digests."""
    found = {path.stem: msgspec.json.decode(path.read_bytes(), type=Launched) for path in folder.rglob("*.json")}
    return sorted(found.values(), key=lambda one: (one.name, one.digest))


def faults(kernels: Sequence[Launched]) -> list[Fault]:
    """Every one. Kernels of one name are told apart by their digests; two that share a header have its faults each."""
    names = [kernel.name for kernel in kernels]
    found: list[Fault] = []
    for kernel in kernels:
        stem = kernel.name if names.count(kernel.name) == 1 else f"{kernel.name}-{kernel.digest[:6]}"
        for part in PARTS:
            text = getattr(kernel, part)
            source = Source(f"{stem}.{part}.metal", text, (kernel.name,))
            found += [Fault(mutant, kernel.digest, part) for mutant in mutants_of(source, _edits(text))]
    return found


def _edits(text: str) -> Iterable[tuple[str, Edit, bool]]:
    try:
        code = Code(text)
    except ValueError:
        return
    yield from _by_operator(code)


def _by_operator(code: Code) -> Iterator[tuple[str, Edit, bool]]:
    for operator in METAL:
        for edit in operator.edits(code, code.text):
            yield operator.name, edit, False
