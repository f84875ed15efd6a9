"""The verb `order`: numbers and their sums from a file, and the orders of addition that give these bits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from mlx_assay.conformance.contract import contracts, seen
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.judging.order import Candidate, Diagnosis, diagnose
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.selection import replayed
from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor, refusing
from mlx_assay.conformance.verbs.replay import outcomes_of, subcases_of
from mlx_assay.conformance.verdict import EXIT_DIFFERS, EXIT_INCOMPLETE
from mlx_assay.fixtures.codec import load
from mlx_assay.oracles.accumulation import described

SIZE_LIMIT = 1 << 30


class Match(msgspec.Struct, frozen=True):
    """An order that gives every bit, as `order --json` shows it."""

    name: str
    steps: str
    fused: bool
    sums_in_float32: bool


class Answer(msgspec.Struct, frozen=True):
    """The diagnosis of a file; `nearest` and how many results it gives, where nothing gives all of them."""

    results: int
    numbers: int
    matches: list[Match]
    nearest: Match
    agreeing: int
    probed: int


def order(path: str, as_json: bool = False) -> int:
    """Prints the diagnosis; 0 if some known order gives every bit, 1 if none does."""
    result, operands = read(Path(path))
    try:
        found = diagnose(result, *operands)
    except ValueError as error:
        raise Refusal(f"{path}: {error}") from error
    answer = _answer(found, result, operands)
    print(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() if as_json else _told(answer))
    return 0 if found.matches else EXIT_DIFFERS


def order_of_case(text: str, target: str | None, executor: str | None, limit: float, as_json: bool = False) -> int:
    """Runs a case of an operation that sums, and prints the diagnosis of each subcase; 1 if any has none."""
    with refusing():
        case = replayed(text)
    contract = contracts()[case.operation]
    if contract.addends is None:
        summing = ", ".join(name for name, known in contracts().items() if known.addends)
        raise Refusal(f"Expected a case of an operation that is a sum, {summing}, but got {case.operation}")
    checked_executor(executor)
    subcases = subcases_of(case)
    with Implementation(target, executor, limit) as implementation:
        try:
            outcomes = outcomes_of(contract, subcases, implementation)
        except ImplementationError as error:
            raise Refusal(str(error)) from error
        declared = implementation.environment["executor"]
    answers: dict[str, Answer] = {}
    for subcase, outcome in zip(subcases, outcomes, strict=False):
        if outcome.array is not None:
            operands = list(contract.addends(seen(subcase, declared)))
            result = outcome.array.reshape(-1)
            answers[subcase.label] = _answer(diagnose(result, *operands), result, operands)
    if not answers:
        raise Refusal(f"Expected sums to come from {case.id} but none did: mlx-assay replay tells why", EXIT_INCOMPLETE)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(answers), indent=2).decode())
    else:
        print("\n".join(f"{label}: {_told(answer)}" for label, answer in answers.items()))
    return 0 if all(answer.matches for answer in answers.values()) else EXIT_DIFFERS


def read(path: Path) -> tuple[np.ndarray, list[np.ndarray]]:
    """`result` [m], and `values` [m, n] or the factors `a` and `b`; Refusal says what is wrong with the file."""
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise Refusal(f"{path}: expected at most {SIZE_LIMIT} bytes but got {path.stat().st_size}")
        tensors = load(path).tensors
    except OSError as error:
        raise Refusal(f"{path}: expected a file to read but: {error.strerror}") from error
    except ValueError as error:
        raise Refusal(str(error)) from error
    for names in (("values",), ("a", "b")):
        if tensors.keys() == {"result", *names}:
            result, *operands = (tensors[name] for name in ("result", *names))
            rows = [operand[None] if operand.ndim == 1 else operand for operand in operands]
            return result.reshape(-1), rows
    raise Refusal(
        f"{path}: expected the tensors 'result' and 'values', or 'result', 'a' and 'b', but got "
        f"{', '.join(map(repr, tensors)) or 'none'}"
    )


def _answer(found: Diagnosis, result: np.ndarray, operands: list[np.ndarray]) -> Answer:
    return Answer(
        results=len(result),
        numbers=operands[0].shape[-1],
        matches=[_match(candidate) for candidate in found.matches],
        nearest=_match(found.nearest),
        agreeing=found.agreeing,
        probed=found.results,
    )


def _match(candidate: Candidate) -> Match:
    tree = candidate.tree
    return Match(candidate.name, described(tree.steps), tree.fused, candidate.wide)


def _told(answer: Answer) -> str:
    head = f"{counted(answer.results, 'sum')} of {counted(answer.numbers, 'number')}"
    if not answer.matches:
        near = f"the nearest, {answer.nearest.name}, gives {answer.agreeing} of {answer.probed} probed"
        return f"{head}: no known order gives these bits; {near}"
    lines = [f"{head}: the bits of"]
    for match in answer.matches:
        lines += [f"  {match.name}", f"    {match.steps}"]
    return "\n".join(lines)
