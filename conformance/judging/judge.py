"""The judge: from a case and an implementation to a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from mlx_assay.conformance.contract import Contract, contracts, seen
from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.diagnosis.exhibit import Exhibit
from mlx_assay.conformance.diagnosis.keeper import Kept
from mlx_assay.conformance.diagnosis.pattern import pattern, told
from mlx_assay.conformance.judging.failure import context_line, title
from mlx_assay.conformance.judging.finding import CONFORMING, Finding, Judged
from mlx_assay.conformance.judging.panel import Disagreement, Expected, Loader, Panel
from mlx_assay.conformance.judging.power import powerless_twin
from mlx_assay.conformance.judging.relaxation import FLUSHING
from mlx_assay.conformance.process.child import Death
from mlx_assay.conformance.process.exchange import Outcome, Run
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.quotation import quoted
from mlx_assay.conformance.record import Record, replay_command
from mlx_assay.conformance.stopwatch import stage
from mlx_assay.conformance.verdict import Verdict, weakest
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import Kind, kind_of
from mlx_assay.oracles.registry import load

OUTPUT_LIMIT = 4000
"""Characters that a record keeps of what was printed during its case."""

Expectation = list[Expected] | Disagreement
Keep = Callable[[str, Exhibit], Kept]
"""From a case's id and what it has to show to the file that holds it."""


@dataclass(frozen=True)
class Trial:
    """What the steps of judging one case share."""

    case: Case
    contract: Contract
    subcases: Sequence[Subcase]
    panel: Panel
    relaxations: Sequence[str]
    executor: Mapping[str, Any]


def judge(
    case: Case,
    implementation: Implementation,
    *,
    contract: Contract | None = None,
    kind: Kind | None = None,
    oracles: Loader = load,
    without: Sequence[str] = (),
    keep: Keep | None = None,
    diagnosed: bool = True,
) -> Record:
    """Runs a case and says what came of it; never raises for what an implementation does.

    Contract, kind and oracles are those registered for the case unless others are given; `without` names oracles that
    are not to be asked; `keep` stores the tensors of a case that differs; `diagnosed` False leaves out what a
    difference has in common. Every subcase is called twice, on outputs poisoned with different patterns and
    with the other subcases between; both results are judged.
    """
    with stage("judge"):
        return _judge(
            *(case, implementation, contract or contracts()[case.operation], kind or kind_of(case)),
            *(oracles, without, keep, diagnosed),
        )


def _judge(
    case: Case,
    implementation: Implementation,
    contract: Contract,
    kind: Kind,
    oracles: Loader,
    without: Sequence[str],
    keep: Keep | None,
    diagnosed: bool,
) -> Record:
    began = time.perf_counter()
    relaxations = applicable(contract.relaxations, implementation.environment)
    panel = Panel(contract, oracles, relaxations, without)
    executor = implementation.environment["executor"]
    with stage("inputs"):
        subcases = kind.subcases(case)
    trial = Trial(case, contract, subcases, panel, relaxations, executor)
    findings = _findings(trial, implementation)
    record = _record(trial, kind, findings, implementation, time.perf_counter() - began)
    telling = _telling(findings)
    with stage("diagnosis"):
        if diagnosed and telling.evidence and record.difference:
            record = _diagnosed(record, telling.evidence)
        return _kept(record, telling, implementation, keep) if keep else record


def applicable(relaxations: Sequence[str], environment: Mapping[str, Any]) -> tuple[str, ...]:
    """The contract's relaxations, without those for flushed denormals where the executor does not flush."""
    flushes = environment["executor"].get("f32_denormals") == "flushed"
    return tuple(name for name in relaxations if name not in FLUSHING or flushes)


def _findings(trial: Trial, implementation: Implementation) -> list[Finding]:
    """What was found, one finding a subcase, or one for the case where it could not be judged at all."""
    if not trial.subcases:
        return [Finding(Verdict.NOT_RUN, "Expected a kind that makes subcases but it made none")]
    if not trial.panel.references:
        return [Finding(Verdict.NOT_RUN, f"No oracle is there: {', '.join(trial.panel.missing)} missing")]
    if fault := trial.panel.fault():
        return [Finding(Verdict.ORACLES_DISAGREE, fault)]
    try:
        if trial.case.operation not in implementation.operations:
            return [Finding(Verdict.UNSUPPORTED, f"It has no function {trial.case.operation}")]
        calls = [_ordered(trial, subcase) for subcase in trial.subcases]
        before = [_expected(trial, subcase) for subcase in trial.subcases] if trial.contract.graph else []
        patience = trial.contract.patience(trial.subcases)
        run = implementation.begin(trial.case.operation, calls, trial.contract.expansion, patience=patience)
    except ImplementationError as error:
        return [Finding(Verdict.ERROR, str(error))]
    except Death as death:
        return [Finding(death.verdict, death.message)]
    try:
        return _judged(trial, implementation, run, before)
    except BaseException:
        run.child.end()
        raise


def _judged(trial: Trial, implementation: Implementation, run: Run, before: Sequence[Expectation]) -> list[Finding]:
    """What is found of a run; `before` are the expectations that were asked for before it began."""
    death: Finding | None = None
    expectations = list(before)
    for subcase in trial.subcases[len(expectations) :]:
        expectations.append(_expected(trial, subcase))
        try:
            if death is None:
                run.pump()
        except Death as error:
            death = _died(trial, run, error)
    try:
        if death is None:
            run.complete()
            implementation.finish(run)
    except Death as error:
        death = _died(trial, run, error)
    with stage("power"):
        twin = powerless_twin(trial.subcases, expectations, trial.relaxations)
    if twin:
        return [Finding(Verdict.NOT_RUN, f"case without power: {twin} would conform to all of it; mend the fixture")]
    with stage("comparison"):
        findings = [
            replace(
                _of_subcase(trial, index, expectations, run.outcomes),
                launches=sum(outcome.launches for outcome in run.outcomes[index :: len(trial.subcases)]),
            )
            for index in range(min(len(trial.subcases), len(run.outcomes)))
        ]
    return [*findings, death] if death else findings


def _ordered(trial: Trial, subcase: Subcase) -> list[Any]:
    return [subcase.arguments[name] for name in trial.contract.parameters]


def _expected(trial: Trial, subcase: Subcase) -> Expectation:
    """What the oracles say; nothing where an exception is expected."""
    if subcase.raises:
        return []
    try:
        expected = trial.panel.expect(seen(subcase, trial.executor))
    except Disagreement as disagreement:
        return disagreement
    return expected or Disagreement("No oracle of the contract has an opinion on these arguments")


def _died(trial: Trial, run: Run, death: Death) -> Finding:
    """Names the call during which the process ended."""
    index = len(run.outcomes)
    count = len(trial.subcases)
    subcase = trial.subcases[index % count]
    call = f"call {index + 1} of {2 * count}, subcase {subcase.label!r}, "
    return Finding(death.verdict, f"{call}{death.message[:1].lower()}{death.message[1:]}", subcase)


def _of_subcase(
    trial: Trial,
    index: int,
    expectations: Sequence[Expectation],
    outcomes: Sequence[Outcome],
) -> Finding:
    """The weakest of what is found of the two calls, and of their agreement with each other."""
    subcase, expected = trial.subcases[index], expectations[index]
    if isinstance(expected, Disagreement):
        return Finding(Verdict.ORACLES_DISAGREE, str(expected), subcase)
    count = len(trial.subcases)
    answers = [one[0].output if isinstance(one, list) and one else None for one in expectations]
    judged = Judged(
        *(trial.contract, trial.panel, trial.relaxations, subcase, expected, trial.executor),
        *(outcomes, index, count, answers),
    )
    first, again = outcomes[index], index + count
    if again >= len(outcomes):
        return judged.finding(first)
    second = outcomes[again]
    if same_bits(first, second):
        return judged.finding(first)
    findings = [judged.finding(first), judged.repeated(second), judged.unstable(first, second)]
    return max(findings, key=lambda finding: list(Verdict).index(finding.verdict))


def same_bits(first: Outcome, second: Outcome) -> bool:
    """Whether two calls came to exactly the same, NaN payloads included."""
    if first.array is None or second.array is None or first.changed != second.changed:
        return False
    return first.array.dtype == second.array.dtype and np.array_equal(
        first.array.reshape(-1).view(np.uint8), second.array.reshape(-1).view(np.uint8)
    )


def _telling(findings: Sequence[Finding]) -> Finding:
    """The first finding that has the case's verdict."""
    verdict = weakest([finding.verdict for finding in findings])
    return next(finding for finding in findings if finding.verdict is verdict)


def _diagnosed(record: Record, evidence: Evidence) -> Record:
    """With the pattern of its difference, and a line of text before the last."""
    assert record.difference is not None
    found = pattern(evidence)
    *lines, context = record.message.split("\n")
    message = "\n".join([*lines, *filter(None, [told(found)]), context])
    known = [one.rule for one in found.diagnoses[:1] if one.covers == evidence.count]
    rule = next(filter(None, known), record.difference.rule)
    difference = msgspec.structs.replace(record.difference, pattern=found, rule=rule)
    return msgspec.structs.replace(record, difference=difference, message=message)


def _kept(record: Record, telling: Finding, implementation: Implementation, keep: Keep) -> Record:
    """With the place of its tensors, where it differs; or a line that says why they are not kept."""
    if record.difference is None or telling.exhibit is None:
        return record
    texts = {
        "case": record.id,
        "subcase": record.difference.subcase,
        "oracle": record.difference.oracle,
        "executor": str(implementation.environment["executor"]["name"]),
        "implementation": implementation.target or "mlx_assay.impl",
    }
    try:
        kept = keep(record.id, replace(telling.exhibit, texts=texts))
        return msgspec.structs.replace(record, tensors=kept.name, tensors_sha256=kept.sha256)
    except (OSError, ValueError, TypeError) as error:
        return msgspec.structs.replace(record, message=f"{record.message}\n  tensors are not kept: {error}")


def _record(
    trial: Trial, kind: Kind, findings: Sequence[Finding], implementation: Implementation, seconds: float
) -> Record:
    case, panel = trial.case, trial.panel
    replay = replay_command(
        case.id, implementation.target, implementation.executor, implementation.profile, implementation.checked
    )
    verdict = weakest([finding.verdict for finding in findings])
    conforms, telling = verdict in CONFORMING, _telling(findings)
    message, output = "", ""
    if not conforms:
        output = implementation.printed(OUTPUT_LIMIT)
        executor = implementation.environment["executor"]["name"]
        head = title(case, telling.subcase) if telling.subcase else f"{case.operation}[{case.dtype}]"
        separator = "" if telling.difference else ": "
        context = context_line(telling.policy, telling.oracle, executor, replay)
        message = f"{head}{separator}{quoted(telling.message)}\n{context}"
    return Record(
        id=case.id,
        operation=case.operation,
        dtype=case.dtype,
        tags=list(kind.tags),
        why=kind.why,
        verdict=verdict,
        conforms=conforms,
        oracle=panel.names[0] if panel.names else "",
        oracles=panel.names,
        missing=panel.missing,
        subcases=len(trial.subcases),
        seconds=seconds,
        replay=replay,
        relaxations=[name for name in trial.relaxations if any(name in finding.relaxations for finding in findings)],
        message=message,
        output=output,
        difference=None if conforms else telling.difference,
        launches=sum(finding.launches for finding in findings),
    )
