"""Drift: which answers of two neighbouring releases differ in any bit, by operation, door, dtype and reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from mlx_assay.conformance.contract import Rule
from mlx_assay.conformance.versions.exchange import Answer
from mlx_assay.conformance.versions.explanation import Change, any_nan, explain
from mlx_assay.conformance.versions.inputs import Input
from mlx_assay.conformance.versions.report import DoorName, Drift, Example, Explanation, Fault

Answers = Sequence[Answer | None]
"""One answer an input; None where the door does not have the operation."""


@dataclass
class _Group:
    example: Example
    change: Change
    inputs: int = 0


@dataclass
class _Tally:
    compared: dict[tuple[str, str], int] = field(default_factory=dict)
    groups: dict[tuple[str, str, tuple[int, ...]], _Group] = field(default_factory=dict)
    faults: dict[tuple[str, str, str], int] = field(default_factory=dict)


def drifts(inputs: Sequence[Input], door: DoorName, answers: Mapping[str, Answers]) -> tuple[list[Drift], list[Fault]]:
    """What drifted between neighbours among the releases that answered, from old to new, and what both refused."""
    found: list[Drift] = []
    refused: list[Fault] = []
    for old, new in pairwise(answers):
        tally = _compared(inputs, door, (old, new), answers[old], answers[new])
        for (operation, dtype, _), group in tally.groups.items():
            found.append(
                Drift(
                    operation=operation,
                    door=door,
                    dtype=dtype,
                    old_release=old,
                    new_release=new,
                    inputs=group.inputs,
                    compared=tally.compared[operation, dtype],
                    example=group.example,
                    explanations=[_explanation(group.change.subject, rule) for rule in group.change.rules],
                )
            )
        for (operation, dtype, message), count in tally.faults.items():
            refused.append(
                Fault(
                    operation=operation,
                    door=door,
                    dtype=dtype,
                    old_release=old,
                    new_release=new,
                    inputs=count,
                    message=message,
                )
            )
    return found, refused


def _compared(
    inputs: Sequence[Input], door: DoorName, releases: tuple[str, str], olds: Answers, news: Answers
) -> _Tally:
    tally = _Tally()
    for given, old, new in zip(inputs, olds, news, strict=True):
        if old is None or new is None:
            continue
        place = given.operation, given.dtype
        if old.fault and _name(old) == _name(new):
            tally.faults[*place, old.fault] = tally.faults.get((*place, old.fault), 0) + 1
            continue
        tally.compared[place] = tally.compared.get(place, 0) + 1
        example = difference(given, old, new)
        if example is None:
            continue
        change = explain(given, door, releases, old, new)
        group = tally.groups.setdefault((*place, tuple(rule.number for rule in change.rules)), _Group(example, change))
        group.inputs += 1
    return tally


def difference(given: Input, old: Answer, new: Answer) -> Example | None:
    """The first place where two answers differ, None where they are the same.

    Encodings are compared; any NaN equals any NaN where the operation's contract says so, and nowhere else.
    """
    if old.fault or new.fault:
        told = [answer.fault or _form(answer.arrays["result"]) for answer in (old, new)]
        return None if _name(old) == _name(new) else _example(given, told)
    before, after = old.arrays["result"], new.arrays["result"]
    if _form(before) != _form(after):
        return _example(given, [_form(before), _form(after)])
    differs = (_bits(before) != _bits(after)).any(axis=-1).reshape(before.shape)
    if any_nan(given.operation):
        differs &= ~(np.isnan(before.astype(np.float32)) & np.isnan(after.astype(np.float32)))
    if not differs.any():
        return None
    place = tuple(int(index) for index in np.argwhere(differs)[0])
    values = before[place], after[place]
    return _example(given, [str(value) for value in values], list(place), [_hex(value) for value in values])


def _name(answer: Answer) -> str:
    """An exception's name: its words are no promise."""
    return answer.fault.partition(":")[0]


def _form(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _bits(array: np.ndarray) -> np.ndarray:
    """uint8 [elements, bytes of an element]."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.dtype.itemsize)


def _hex(value: np.generic) -> str:
    return f"0x{int.from_bytes(value.tobytes(), 'little'):0{2 * value.dtype.itemsize}x}"


def _example(given: Input, told: Sequence[str], place: Sequence[int] = (), bits: Sequence[str] = ("", "")) -> Example:
    return Example(
        case=given.case.id,
        label=given.label,
        shape=list(next(iter(given.arrays.values())).shape),
        place=list(place),
        old_bits=bits[0],
        new_bits=bits[1],
        old=told[0],
        new=told[1],
    )


def _explanation(contract: str, rule: Rule) -> Explanation:
    return Explanation(
        contract=contract,
        rule=rule.number,
        text=rule.text,
        since=rule.since,
        until=rule.until,
        source=rule.source,
    )
