"""How well the suite notices faults: a report of `mlx-assay mutate` held against the policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.gating.policy import Mutants
from mlx_assay.conformance.gating.reason import Reason, differs, incomplete, named
from mlx_assay.conformance.mutation import report
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.mutation.ruling import SURVIVED
from mlx_assay.conformance.mutation.source import SERVED, sources
from mlx_assay.conformance.reporting.intake import printed, read

WHERE = "mutants"
LARGEST = 32 << 20
"""Bytes of a report: a few thousand mutants take one or two million."""
AGAIN = "run mlx-assay mutate --json FILE on these kernels, and give --mutants FILE"


def noticed(file: str | None, asked: Mutants | None) -> list[Reason]:
    """Why a report of mutants does not open the gate; a report that nothing asks for is a mistake too."""
    if asked is None:
        surplus = incomplete(WHERE, "a report was given, and the policy has no table [mutants]", "leave --mutants out")
        return [surplus] if file is not None else []
    if file is None:
        return [incomplete(WHERE, "the policy asks for a report of mutants, and none was given", AGAIN)]
    try:
        found = report.decode(read(Path(file), LARGEST))
    except ValueError as error:
        return [incomplete(WHERE, f"{printed(file)} cannot be read: {printed(str(error))}", AGAIN)]
    return list(_held(found, asked))


def _held(found: report.Campaign, asked: Mutants) -> Iterator[Reason]:
    if not found.complete:
        yield incomplete(WHERE, "the campaign was not run to its end", AGAIN)
    installed = {name: source.digest for name, source in sources().items()}
    judged = {name for text in found.sources for name in SERVED.get(text, ())}
    if others := sorted(name for name, digest in found.sources.items() if installed.get(name) != digest):
        yield incomplete(WHERE, f"it is of other kernels than those installed: {named(others)}", AGAIN)
    elif missing := sorted(set(asked.operations) - judged):
        yield incomplete(WHERE, f"it has no mutants of {', '.join(missing)}", AGAIN)
    elif found.complete and (left := _left_out(found, asked)):
        told = f"{counted(len(left), 'mutant')} of the same kernels {'is' if len(left) == 1 else 'are'} not in it"
        yield incomplete(WHERE, f"{told}: {named(left)}", AGAIN)
    if len(found.mutants) < asked.least:
        yield incomplete(WHERE, f"it has {counted(len(found.mutants), 'mutant')}, and {asked.least} are needed", AGAIN)
    if found.score is None or found.score < asked.score:
        survivors = [row.id for row in found.mutants if row.outcome == SURVIVED]
        told = "none" if found.score is None else f"{found.score:.4f}"
        mend = "add a case that kills them, or the reason why they are equivalent"
        yield differs(WHERE, f"the score is {told}, and {asked.score} is needed: {named(survivors)}", mend)


def _left_out(found: report.Campaign, asked: Mutants) -> list[str]:
    """Mutants that a narrower campaign, or a shard of one, did not choose."""
    held, wanted = {row.id for row in found.mutants}, set(asked.operations)
    return [
        mutant.id
        for mutant in all_mutants().values()
        if mutant.id not in held and (mutant.source.name in found.sources or wanted & set(mutant.source.operations))
    ]
