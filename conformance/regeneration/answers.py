"""Answers: what an oracle says today of the calls of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mlx_assay.conformance.contract import EXECUTOR, Arguments, contracts, seen
from mlx_assay.conformance.judging.panel import standing
from mlx_assay.conformance.regeneration.machine import Absent
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.goldens.document import Call, Entry
from mlx_assay.fixtures.goldens.group import EXPECTED, Group, Member, canonical, digest, inputs, plain
from mlx_assay.fixtures.goldens.store import tensor_name
from mlx_assay.oracles.registry import load

Loader = Callable[[str], object]


@dataclass(frozen=True)
class Answered:
    """A case as it is today: its entry of a document and its tensors by their names in the file."""

    entry: Entry
    tensors: Mapping[str, np.ndarray]


def _given(group: Group, arguments: Arguments, oracle: str) -> np.ndarray:
    rule = group.settings["nan_rule"]
    ids: np.ndarray = load(oracle).argmax_given(arguments["logits"], arguments["lse"], rule)
    return ids


def _scores(group: Group, arguments: Arguments, oracle: str) -> np.ndarray:
    values: np.ndarray = load(oracle).scores(arguments["logits"], arguments["lse"])
    return values


def _codebook(group: Group, arguments: Arguments, oracle: str) -> np.ndarray:
    states: np.ndarray = arguments["states"]
    table: np.ndarray = getattr(load(oracle), arguments["form"])(16)
    values: np.ndarray = table[states].astype(np.int32 if arguments["form"] == "sums" else np.float32)
    return values


def _logsumexp(group: Group, arguments: Arguments, oracle: str) -> np.ndarray:
    sums: np.ndarray = load(oracle).logsumexp(arguments["logits"])
    return sums


def _contract(group: Group, arguments: Arguments, oracle: str) -> np.ndarray:
    """What the operation's contract asks of the oracle, unprepared: no other oracle has a say."""
    references = contracts()[group.operation].references
    reference = next(reference for reference in references if reference.oracle == oracle)
    return np.asarray(reference.compute(arguments))


ANSWERS: Mapping[str, Callable[[Group, Arguments, str], np.ndarray]] = {
    "argmax_given": _given,
    "scores": _scores,
    "codebook": _codebook,
    "logsumexp": _logsumexp,
    "contract": _contract,
}
"""What a group may ask of its oracle, by the name that stands in its document."""


def release(group: Group) -> str:
    """The release of a group's oracle after its self-test; Absent where its library is missing.

    RuntimeError where the self-test finds a fault: nothing is recorded by a broken oracle.
    """
    known = standing(group.oracle, load)
    if known.missing:
        raise Absent(f"{known.name} is missing: {known.missing}")
    if known.fault:
        raise RuntimeError(f"oracle fault: the self-test of {known.name} {known.version} failed: {known.fault}")
    return known.version


def answered(group: Group, members: Iterable[Member]) -> dict[str, Answered]:
    """Each member as it is today, by id, in the order of ids: nothing depends on the order in which they come."""
    members = list(members)
    if not members or len({member.id for member in members}) != len(members):
        raise ValueError(f"Expected cases for the group {group.name}, each once, but got {len(members)} of them")
    found = {member.id: _answered(group, member) for member in sorted(members, key=lambda member: member.id)}
    return dict(sorted(found.items()))


def _answered(group: Group, member: Member) -> Answered:
    calls: list[Call] = []
    tensors: dict[str, np.ndarray] = {}
    for subcase in sorted(member.calls(), key=lambda subcase: subcase.label):
        given, answer = inputs(subcase), _asked(group, subcase)
        said = plain(subcase)
        calls.append(Call(subcase.label, digest(given, said), digest({EXPECTED: answer}), said))
        if group.form == "values":
            for name, array in (*given.items(), (EXPECTED, answer)):
                tensors[tensor_name(member.id, subcase.label, name)] = array
    labels = [call.label for call in calls]
    if len(set(labels)) != len(labels):
        raise ValueError(f"Expected each label once in {member.id} but got {labels}: name them apart in its kind")
    return Answered(Entry(member.id, member.why, list(member.flags), group.generator, group.version, calls), tensors)


def _asked(group: Group, subcase: Subcase) -> np.ndarray:
    arguments = {**seen(subcase, group.settings), EXECUTOR: group.settings}
    with np.errstate(all="ignore"):
        answer = ANSWERS[group.answer](group, arguments, group.oracle)
    return canonical(answer)
