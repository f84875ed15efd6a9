"""Which rule says that an answer changes between two releases, and whether both answers are as it says.

A rule explains nothing by its releases alone: each answer must be the one that the rule asks of its release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from mlx_assay.conformance.contract import Rule, contracts
from mlx_assay.conformance.contracts.normalized_argmax import nan_rule_of
from mlx_assay.conformance.versions.exchange import Answer
from mlx_assay.conformance.versions.inputs import Input
from mlx_assay.conformance.versions.release import crossed, order
from mlx_assay.conformance.versions.report import DoorName
from mlx_assay.conformance.versions.rules import rules
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import denormal

FIXED = "0.32.3"
"""The release that sums halves in float32 and prints constants of compiled graphs with all their digits."""


class Change(NamedTuple):
    """Rules that changed, and whose."""

    subject: str
    rules: list[Rule]


NOTHING = Change("", [])
Holds = Callable[[Input, DoorName, str, Answer], np.ndarray]
"""bool, of the result's shape or with an axis more at its end: where an answer is as the rule of its release asks."""


def any_nan(operation: str) -> bool:
    """Whether an operation's contract lets any NaN equal any NaN; MLX's own operations have none."""
    contract = contracts().get(operation)
    return contract is not None and "nan-any" in contract.relaxations


def changed(subject: str, old: str, new: str) -> list[Rule]:
    """The rules of a contract or of a subject of the library's that begin or cease to hold between two releases."""
    return [rule for rule in rules(subject) if crossed(rule, old, new)]


def explain(given: Input, door: DoorName, releases: tuple[str, str], old: Answer, new: Answer) -> Change:
    """The rules that explain why one input's answers differ; NOTHING where none does."""
    subject, holds = DECIDED.get(given.operation, ("", None))
    if holds is None or old.fault or new.fault or (subject == "sum on the CPU" and door != "cpu"):
        return NOTHING
    before, after = old.arrays["result"], new.arrays["result"]
    found = changed(subject, *releases)
    if not found or before.shape != after.shape:
        return NOTHING
    differs = before != after
    sides = zip(releases, (old, new), strict=True)
    held = all(holds(given, door, release, answer)[differs].all() for release, answer in sides)
    return Change(subject, found) if held else NOTHING


def _first_nan(given: Input, door: DoorName, release: str, answer: Answer) -> np.ndarray:
    """Which rows have a NaN score, and the id that the NaN rule of the release asks for."""
    ids, rule = answer.arrays["result"], nan_rule_of(release)
    scores = _scores(given, answer.arrays)
    missing = np.isnan(scores.astype(np.float32))
    if ids.shape != missing.shape[:-1]:
        return np.zeros(ids.shape, np.bool_)
    winners = load("numpy_reference").winners
    right = ids == winners(scores, rule)
    if door == "metal" and scores.dtype != np.float16 and scores.dtype.kind not in "iu":
        right |= ids == winners(np.where(denormal(scores), scores.dtype.type(0), scores), rule)
    if rule == "skipped":
        # A leading NaN is left to the device, but never an id beyond the row.
        right |= missing[..., 0] & (ids < scores.shape[-1])
    ruled: np.ndarray = right & missing.any(axis=-1)
    return ruled


def _scores(given: Input, answered: Mapping[str, np.ndarray]) -> np.ndarray:
    if given.operation == "argmax":
        return given.arrays["x"]
    lse = answered["lse"] if given.operation == "normalized_argmax" else given.arrays["lse"]
    scores: np.ndarray = load("numpy_reference").scores(given.arrays["logits"], lse)
    return scores


def _printed_cap(given: Input, door: DoorName, release: str, answer: Answer) -> np.ndarray:
    """Where a compiled graph gives the bits of its operations one by one, with the cap that its text has."""
    name = "exact" if order(release) >= order(FIXED) else "printed"
    result, want = answer.arrays["result"], answer.arrays[name]
    same: np.ndarray = (result == want) | (np.isnan(result) & np.isnan(want))
    return same


def _wide_sum(given: Input, door: DoorName, release: str, answer: Answer) -> np.ndarray:
    """Where a sum of halves may come from sums in float32; before, nothing is promised of a sum of halves.

    n additions in float32 lie within n 2^-24 of the sum of sizes (Higham, 3.1), and are then rounded to the dtype.
    """
    x, total = given.arrays["x"], answer.arrays["result"]
    if x.dtype.itemsize != 2:
        return np.zeros(total.shape, np.bool_)
    if order(release) < order(FIXED):
        return np.ones(total.shape, np.bool_)
    axis = {"sum_rows": -1, "sum_columns": 0, "sum_all": None}[given.operation]
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = np.asarray(wide.sum(axis=axis))
        room = np.asarray(np.abs(wide).sum(axis=axis)) * (x.size if axis is None else x.shape[axis]) * 2.0**-24
        low, high = ((exact + sign * room).astype(x.dtype).astype(np.float64) for sign in (-1, 1))
    found = total.astype(np.float64)
    within: np.ndarray = ((low <= found) & (found <= high)) | (np.isnan(found) & np.isnan(exact))
    return within


DECIDED: Mapping[str, tuple[str, Holds]] = {
    "argmax": ("argmax_given", _first_nan),
    "argmax_given": ("argmax_given", _first_nan),
    "normalized_argmax": ("normalized_argmax", _first_nan),
    "compiled_logit_softcap": ("compiled_logit_softcap", _printed_cap),
    **dict.fromkeys(("sum_rows", "sum_columns", "sum_all"), ("sum on the CPU", _wide_sum)),
}
"""Operations whose answers a rule decides by release: whose rule, and where it holds."""
