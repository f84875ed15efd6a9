"""What MLX's own operations promise by release, where no kernel's contract says it; docs/versions.md has the same."""

from __future__ import annotations

from collections.abc import Mapping

from mlx_assay.conformance.contract import Rule, contracts

STOCK: Mapping[str, tuple[Rule, ...]] = {
    "sum on the CPU": (
        Rule(
            1,
            "Sums of bfloat16 and float16 are added in their own type, in an order that is not promised.",
            "ml-explore/mlx#4379",
            until="0.32.2",
        ),
        Rule(
            2,
            "Sums of bfloat16 and float16 are added in float32, in an order that is not promised, and rounded once.",
            "ml-explore/mlx#4387",
            since="0.32.3",
        ),
    ),
    "logsumexp": (
        Rule(
            1,
            "Some spellings of one reduction over the last axis take other kernels than others, with other bits.",
            "ml-explore/mlx#2474",
            until="0.28.0",
        ),
        Rule(
            2,
            "Every spelling of a reduction over the last axis takes the fused kernel.",
            "ml-explore/mlx#2474",
            since="0.29.0",
        ),
    ),
    "metal_kernel": (
        Rule(
            1,
            "Kernels are kept by name: of two with one name and other source, evaluated together, the first runs for "
            "both.",
            "ml-explore/mlx#3832",
            until="0.32.0",
        ),
        Rule(2, "Kernels are kept by name and source.", "ml-explore/mlx#3833", since="0.32.1"),
    ),
}
"""Rules of the library by what they are about, numbered from 1 in each."""


def rules(subject: str) -> tuple[Rule, ...]:
    """The rules of a contract, by its operation, or of a subject of STOCK."""
    return STOCK[subject] if subject in STOCK else contracts()[subject].rules


def dated() -> dict[str, list[Rule]]:
    """Every rule that names releases, by subject; contracts first."""
    subjects = (*contracts(), *STOCK)
    found = {subject: [rule for rule in rules(subject) if rule.since or rule.until] for subject in subjects}
    return {subject: these for subject, these in found.items() if these}
