"""`mutate --implementation`: faults in the kernels that somebody's module launches; their tests or our cases notice."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mlx_assay.conformance.adapters.target import PROGRAM, NoTarget, target
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.mutation import report
from mlx_assay.conformance.mutation.campaign import spent
from mlx_assay.conformance.mutation.catalogue import METAL
from mlx_assay.conformance.mutation.foreign.faults import Fault, faults, launched
from mlx_assay.conformance.mutation.foreign.noticing import Cases, CommandError, Noticing, NoticingError, Tests
from mlx_assay.conformance.mutation.foreign.plant import Order
from mlx_assay.conformance.mutation.judge.faults import sampled
from mlx_assay.conformance.mutation.ruling import KILLED, SURVIVED, Ruling
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.verbs.interruption import interruptible
from mlx_assay.conformance.verbs.mutate import Progress, Say, checked_file, told
from mlx_assay.conformance.verbs.operators import check_known, met
from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE


def foreign_mutants(
    implementation: str | None,
    kernels: Sequence[str],
    operators: Sequence[str],
    *,
    tests: str | None = None,
    limit: float,
    sample: int | None = None,
    seed: int = 0,
    json: str | None = None,
    html: str | None = None,
    say: Say = print,
) -> int:
    """Runs a campaign; exit codes and reports are those of one against the built-in kernels."""
    checked_executor("host")
    for_json, for_page = checked_file(json), checked_file(html)
    check_known(operators, [operator.name for operator in METAL], "an operator on Metal text")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mlx-assay-planted-") as scratch:
        folder = Path(scratch)
        try:
            noticing = _noticing(implementation, tests, folder, limit)
            faults_found, unlaunched = _observed(noticing, folder)
            if unlaunched:
                say(f"no kernel was seen of {', '.join(unlaunched)}: no fault is planted there")
            found = _chosen(faults_found, kernels, operators, say)
            mutants = [fault.mutant for fault in found]
            if sample is not None:
                mutants = sampled(mutants, sample, seed)
            kept = {mutant.id for mutant in mutants}
            kernels_met = len({mutant.operation for mutant in mutants})
            say(f"{counted(len(mutants), 'mutant')} of {counted(kernels_met, 'kernel')}")
            rulings = _ruled(noticing, [fault for fault in found if fault.mutant.id in kept], folder)
        except CommandError as error:
            raise Refusal(str(error)) from None
        except (NoticingError, ImplementationError) as error:
            raise Refusal(str(error), EXIT_INCOMPLETE) from None
    complete = len(rulings) == len(mutants)
    made = report.campaign(mutants, rulings, complete=complete, seconds=spent(began), workers=1, unlaunched=unlaunched)
    return told(made, {}, for_json, for_page, say)


def _noticing(implementation: str | None, tests: str | None, folder: Path, limit: float) -> Noticing:
    if tests is not None:
        return Tests(tests, folder, limit)
    if implementation is None or implementation.startswith(PROGRAM):
        raise Refusal(f"Expected a module, or module:object, whose kernels are launched here, but got {implementation}")
    return Cases(_module(implementation, limit), folder, limit)


def _module(text: str, limit: float) -> str:
    """The module that is meant, imported once without a fault: what is wrong with it is told by its own name."""
    try:
        found = target(text)
        with Implementation(text, "host", limit) as implementation:
            assert implementation.operations
    except (NoTarget, ImplementationError) as error:
        raise Refusal(str(error).partition("\n")[0]) from None
    return found.module or text


def _observed(noticing: Noticing, folder: Path) -> tuple[list[Fault], list[str]]:
    """All faults, and the operations that launched no kernel."""
    texts = folder / "texts"
    texts.mkdir()
    unlaunched = noticing.observe(Order(record=str(texts)))
    found = faults(launched(texts))
    if not found:
        raise NoticingError(
            "Expected kernels that are launched through metal_kernel on this machine but there were none: on one "
            "without Metal, tests need the fixture host_metal"
        )
    return found, unlaunched


def _chosen(found: Sequence[Fault], kernels: Sequence[str], operators: Sequence[str], say: Say) -> list[Fault]:
    names = sorted({fault.mutant.operation for fault in found})
    for name in kernels:
        if name not in names:
            raise Refusal(f"Expected a kernel that is launched, one of {', '.join(names)}, but got {name!r}")
    of_kernels = [fault for fault in found if not kernels or fault.mutant.operation in kernels]
    chosen = [fault for fault in of_kernels if not operators or fault.mutant.operator in operators]
    met(lambda: [fault.mutant for fault in chosen], operators, f"the text of {', '.join(kernels or names)}", say)
    return chosen


def _ruled(noticing: Noticing, found: Sequence[Fault], folder: Path) -> list[Ruling]:
    """One after the other: somebody's tests may not bear to run twice at once. Ctrl-C ends with what is known."""
    rulings: list[Ruling] = []
    progress = Progress()
    try:
        with interruptible():
            for fault in found:
                began = time.perf_counter()
                by = noticing.noticed(fault.order(folder / "answer.json"))
                seconds = round(time.perf_counter() - began, 3)
                ruling = Ruling(fault.mutant.id, KILLED if by else SURVIVED, by, seconds=seconds)
                rulings.append(ruling)
                progress.told(ruling, len(rulings), len(found))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return rulings
