"""The nearest wrong rule of each tag: what an implementation gets wrong that takes the tag's oddity for nothing odd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mlx_assay.conformance.contract import Arguments, contracts, seen
from mlx_assay.conformance.judging.panel import Disagreement, Expected, Panel
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import kind_of
from mlx_assay.oracles.registry import load

NEAREST: Mapping[str, Mapping[str, Sequence[str]]] = {
    "normalized_argmax": {
        "ties": (
            "the last id on ties",
            "scores that are not rounded before they are compared",
            "scores cut to bfloat16",
        ),
        "nan": ("NaN that loses to every number", "the last NaN"),
    },
    "argmax_given": {
        "ties": (
            "the last id on ties",
            "scores that are not rounded before they are compared",
            "scores cut to bfloat16",
        ),
        "nan": ("NaN that loses to every number", "the last NaN"),
        "signed-zero": ("+0 above -0", "the last id on ties"),
        "denormal": ("denormals taken for zero",),
    },
    "apply_token_bitmask": {
        "inf": ("a product in place of a sum",),
        "signed-zero": ("a product in place of a sum",),
    },
    "logit_softcap": {"signed-zero": ("+0 for -0",), "nan": ("a clamped tanh", "a clamp in place of tanh")},
    "compiled_logit_softcap": {"signed-zero": ("+0 for -0",), "nan": ("a clamped tanh", "a clamp in place of tanh")},
}
"""Suspects of contracts, of which a case of the tag has to fail one at least."""

_DRAWN = "Drawn as models give them: in some of the draws the scores that are equal once rounded are not the best ones."
_EDGES = "All edge encodings stand against each other, so that the denormal is seldom the best: it hunts another order."
ELSEWHERE: Mapping[tuple[str, str, str], str] = {
    ("normalized_argmax", "ties", "near-ties/normal"): _DRAWN,
    ("argmax_given", "ties", "near-ties/normal"): _DRAWN,
    ("normalized_argmax", "ties", "real/tied"): _DRAWN,
    ("argmax_given", "ties", "real/rows"): _DRAWN,
    ("argmax_given", "denormal", "extreme/edges"): _EDGES,
    ("argmax_given", "denormal", "lse/edges"): _EDGES,
    ("argmax_given", "denormal", "random/bits"): _EDGES,
    ("argmax_given", "denormal", "denormal/zeros"): (
        "Denormals that rounding makes zeros already: it hunts logits that are compared before that."
    ),
    ("argmax_given", "denormal", "denormal/neighbours"): (
        "Denormals beside a larger number, which wins with them flushed too: it hunts a winner that they disturb."
    ),
    ("argmax_given", "signed-zero", "signed-zero/score"): (
        "One score is zero and no other: it hunts a zero that loses to what lies below it."
    ),
    ("argmax_given", "signed-zero", "exhaustive/neighbours"): (
        "Each neighbour of a number against it, the two zeros as one pair of thousands."
    ),
    ("logit_softcap", "signed-zero", "sweep/zero"): (
        "Every small number of one sign: it hunts a polynomial that gives way near zero."
    ),
    ("compiled_logit_softcap", "signed-zero", "sweep/zero"): (
        "Every small number of one sign: it hunts a polynomial that gives way near zero."
    ),
}
"""Kinds of a tag with cases that fail none of its rules, and what they are there for."""

EXECUTOR: Mapping[str, str] = {"name": "host", "f32_denormals": "kept"}


def tested(operation: str) -> Mapping[str, Sequence[str]]:
    """The rules of an operation's tags."""
    return NEAREST.get(operation, {})


def noticed(case: Case, rules: Sequence[str]) -> bool:
    """Whether a case tells one of these wrong rules from the right one, in one of its subcases.

    It does too where an exception is expected of all subcases: a wrong rule does not raise.
    """
    contract = contracts()[case.operation]
    panel = Panel(contract, load, contract.relaxations)
    judged = False
    for subcase in kind_of(case).subcases(case):
        if subcase.raises:
            continue
        arguments = seen(subcase, EXECUTOR)
        expected = panel.expect(arguments)
        if not expected:
            continue
        judged = True
        if any(_differs(made, expected, contract.relaxations) for made in _made(case, arguments, rules)):
            return True
    return not judged


def _made(case: Case, arguments: Arguments, rules: Sequence[str]) -> Iterator[np.ndarray]:
    contract = contracts()[case.operation]
    assert contract.suspects is not None
    with np.errstate(all="ignore"):
        try:
            found = contract.suspects(contract.prepare(arguments))
        except Exception as error:
            raise Disagreement(f"The suspects of {case.id} cannot be made: {error}") from error
        yield from (found[name]() for name in rules if name in found)


def _differs(made: np.ndarray, expected: Sequence[Expected], relaxations: Sequence[str]) -> bool:
    want = expected[0].output
    if made.shape != want.shape or made.dtype != want.dtype:
        return True
    return not all(one.reached(one.compare(made, relaxations)) for one in expected)
