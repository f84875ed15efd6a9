"""All questions, in the order of a capture."""

from __future__ import annotations

from collections.abc import Mapping

from mlx_assay.conformance.capture import arithmetic, denormals, extremes, integers, lanes, limits, sums
from mlx_assay.conformance.capture.question import UNKNOWN, Question

QUESTIONS: tuple[Question, ...] = (
    *sums.QUESTIONS,
    *arithmetic.QUESTIONS,
    *denormals.QUESTIONS,
    *extremes.QUESTIONS,
    *integers.QUESTIONS,
    *lanes.QUESTIONS,
    *limits.QUESTIONS,
)
BY_NAME: Mapping[str, Question] = {question.name: question for question in QUESTIONS}

_VALUES = {
    "contraction": (("contraction.f32", "contraction.f16"), {"fused": "on", "rounded": "off"}),
    "f32_denormals": (
        ("denormals.f32.operand", "denormals.f32.result", "denormals.f32.sum"),
        {"kept": "kept", "flushed": "flushed"},
    ),
    "simd_sum": (("simd-sum.f32",), {order: order for order in sums.SWITCH_ORDERS}),
}
"""Switch -> the probes that decide it together, and what their answer says."""


def switches(answers: Mapping[str, str]) -> dict[str, str]:
    """Each switch's value by the answers; "unknown" where the probes disagree or say something else."""
    found = {}
    for switch, (names, values) in _VALUES.items():
        said = {answers.get(name, UNKNOWN) for name in names}
        found[switch] = values.get(said.pop(), UNKNOWN) if len(said) == 1 else UNKNOWN
    return found
