"""The verb `replay`: one case again, with its inputs, each subcase, and both encodings where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from mlx_assay.conformance.capture.adoption import adopt
from mlx_assay.conformance.contract import Contract, Reference, contracts, seen
from mlx_assay.conformance.judging.compare import compare, hex_bits
from mlx_assay.conformance.judging.judge import applicable, judge
from mlx_assay.conformance.process.child import Death
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError, Outcome
from mlx_assay.conformance.quotation import passage, printable
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import EXIT_CODES, outcome
from mlx_assay.conformance.selection import replayed
from mlx_assay.conformance.verbs.refusal import Refusal, checkable_executor, checked_executor, checked_profile, refusing
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import kind_of
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.impl.executors import fidelity

INDENT = "  "
SHOWN = 8
"""Elements of an input whose encodings are shown."""

Say = Callable[[str], object]
Names = tuple[str, ...]


class Machine(NamedTuple):
    """What the executor says of itself, and the relaxations that hold on it."""

    executor: Mapping[str, Any]
    relaxations: Names


def replay(
    text: str,
    target: str | None,
    executor: str | None,
    limit: float,
    profile: str | None = None,
    checked: bool = False,
    say: Say = print,
) -> int:
    """Runs the case whose id is `text`; returns the exit code of a run of this case alone."""
    implementation = Implementation(target, executor, limit)
    implementation.checked = checked
    if profile is None:
        return _replayed(text, implementation, say)
    say(printable(checked_profile(profile, executor)))
    before = adopt(profile)
    try:
        implementation.profile = profile
        return _replayed(text, implementation, say)
    finally:
        fidelity.prefer(before)


def _replayed(text: str, implementation: Implementation, say: Say) -> int:
    with refusing():
        case = replayed(text)
    subcases = subcases_of(case)
    target = implementation.target
    (checkable_executor if implementation.checked else checked_executor)(implementation.executor)
    contract = contracts().get(case.operation)
    if contract is None:
        raise Refusal(f"Expected an operation with a contract, {', '.join(contracts())}, but got {case.operation!r}")
    with implementation:
        try:
            operations = implementation.operations
        except ImplementationError as error:
            raise Refusal(str(error)) from error
        if case.operation not in operations:
            raise Refusal(f"Expected {target!r} to have {case.operation} but it has {', '.join(operations)} alone")
        record = judge(case, implementation)
        _tell_case(case, record, say)
        outcomes = outcomes_of(contract, subcases, implementation)
        environment = implementation.environment
        machine = Machine(environment["executor"], applicable(contract.relaxations, environment))
    for place, subcase in enumerate(subcases):
        _tell_subcase(contract, subcase, outcomes[place : place + 1], machine, say)
    if record.message:
        say(passage(record.message))
    if record.missing:
        say(f"missing oracles: {', '.join(record.missing)}")
    say(f"{record.verdict.value}: {'conforms' if record.conforms else 'does not conform'}")
    return EXIT_CODES[outcome(1, [record], complete=True)]


def subcases_of(case: Case) -> list[Subcase]:
    """The case's subcases; Refusal where its parameters make none."""
    try:
        return kind_of(case).subcases(case)
    except (TypeError, ValueError, KeyError, IndexError, ArithmeticError, MemoryError) as error:
        raise Refusal(f"Expected parameters of which inputs can be made but {case.id!r} gave: {error}") from error


def outcomes_of(contract: Contract, subcases: list[Subcase], implementation: Implementation) -> list[Outcome]:
    """What each call returns, in a run beside the judge's own; as many as came before the process died."""
    calls = [[subcase.arguments[name] for name in contract.parameters] for subcase in subcases]
    try:
        run = implementation.begin(contract.operation, calls, contract.expansion)
    except Death:
        return []
    try:
        run.complete()
    except Death:
        return run.outcomes
    implementation.finish(run)
    return run.outcomes


def _tell_case(case: Case, record: Record, say: Say) -> None:
    kind = kind_of(case)
    say(case.id)
    say(f"  {kind.why}")
    say(f"  tags: {', '.join(kind.tags)}; oracles: {', '.join(record.oracles) or 'none'}; {record.seconds:.3f} s")


def _tell_subcase(contract: Contract, subcase: Subcase, outcomes: list[Outcome], machine: Machine, say: Say) -> None:
    say(f"subcase {subcase.label}")
    for name in contract.parameters:
        say(f"  {name}: {described(subcase.arguments[name])}")
    if subcase.raises:
        say(f"  expected to raise {' or '.join(subcase.raises)}")
    if not outcomes:
        say("  no answer: the process had ended")
        return
    got = outcomes[0]
    if got.raised:
        say(f"  raised {printable(got.raised.type)}: {passage(got.raised.message, INDENT)}")
    elif got.array is None:
        say(f"  returned {printable(got.type or got.dtype)} of shape {list(got.shape)}")
    else:
        say(f"  returned {summarised(got.array)}")
        if not subcase.raises:
            _tell_references(contract, subcase, got.array, machine, say)


def _tell_references(contract: Contract, subcase: Subcase, got: np.ndarray, machine: Machine, say: Say) -> None:
    with np.errstate(all="ignore"):
        try:
            prepared = contract.prepare(seen(subcase, machine.executor))
        except Exception as error:
            say(f"  the contract's preparation failed: {error!r}")
            return
        told: list[tuple[str, np.ndarray]] = []
        for reference in contract.references:
            for line in held(reference, prepared, got, machine.relaxations, told):
                say(f"  {line}")


def held(
    reference: Reference,
    arguments: Mapping[str, Any],
    got: np.ndarray,
    relaxations: Names,
    told: list[tuple[str, np.ndarray]],
) -> list[str]:
    """One reference's answer beside what came: the rung, and index, got and want of the first places.

    `told` are answers that were shown before; one that is the same is named, not shown again.
    """
    name = reference.oracle.replace("_", "-")
    try:
        if not reference.applies(arguments):
            return [f"{name}: has no opinion on these arguments"]
        want = reference.compute(arguments)
        ulps = None if reference.ulps is None else reference.ulps(arguments, want)
    except Exception as error:
        return [f"{name}: no answer, {error!r}"]
    if want.dtype != got.dtype or want.shape != got.shape:
        return [f"{name}: expected {want.dtype} {list(want.shape)} but got {got.dtype} {list(got.shape)}"]
    found = compare(got, want, relaxations, ulps)
    for other, shown in told:
        if same_encodings(want, shown):
            return [f"{name}: {found.rung.value}, expected the same as {other}"]
    told.append((name, want))
    lines = [f"{name}: {found.rung.value}, expected {summarised(want)}"]
    if found.count:
        worst = "" if found.worst_ulp is None else f", worst distance {found.worst_ulp} ulp"
        lines.append(f"  {found.count} of {found.total} encodings differ{worst}{_allowed(ulps)}")
    return lines + [f"  at {place.index}: got {place.got} want {place.want}" for place in found.places]


def _allowed(ulps: int | np.ndarray | None) -> str:
    if ulps is None or not np.size(ulps):
        return ""
    least, most = int(np.min(ulps)), int(np.max(ulps))
    return f", allowed {least} ulp" if least == most else f", allowed {least} to {most} ulp"


def same_encodings(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays are equal in dtype, shape and every bit."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def described(value: Tensor | float | int | str | None) -> str:
    """An argument: a tensor's dtype, shape, library, view and first encodings; a float as hex text too."""
    if isinstance(value, float):
        return f"{value!r} ({value.hex()})"
    if not isinstance(value, Tensor):
        return repr(value)
    view = "".join(f" {name}{list(steps)}" for name, steps in value.steps) or " none"
    return f"{value.kind} {summarised(value.array)}; base {list(value.base.shape)}, view steps:{view}"


def summarised(array: np.ndarray) -> str:
    """Dtype, shape and the first encodings, as hex bit strings."""
    flat = array.reshape(-1)[:SHOWN]
    more = " ..." if array.size > SHOWN else ""
    return f"{array.dtype} {list(array.shape)}: {' '.join(hex_bits(element) for element in flat)}{more}".rstrip()
