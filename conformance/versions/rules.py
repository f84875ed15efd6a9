"""What libraries promise by release, where no kernel's contract says it; docs/versions.md has the same."""

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
    "XGrammar's masks": (
        Rule(
            1,
            "The MLX kernel adds 0 or -inf by int32 words [rows, ceil(V / 32)], and raises for fewer words.",
            "mlc-ai/xgrammar#287",
            since="0.1.18",
        ),
        Rule(
            2,
            "The CPU kernel takes rows to lie as far apart as they are long, whatever the strides.",
            "mlc-ai/xgrammar#390",
            until="0.1.22",
        ),
        Rule(3, "The CPU kernel goes by the strides of logits and masks.", "mlc-ai/xgrammar#390", since="0.1.23"),
        Rule(4, "The CPU kernel takes float32 alone.", "mlc-ai/xgrammar#469", until="0.1.27"),
        Rule(5, "The CPU kernel takes float16 and bfloat16 too.", "mlc-ai/xgrammar#469", since="0.1.28"),
        Rule(
            6,
            "In place, logits past the last word of a mask stay as they are without a word.",
            "mlc-ai/xgrammar#611",
            until="0.2.3",
        ),
        Rule(
            7,
            "In place, logits past the last word of a mask stay as they are, with a warning.",
            "mlc-ai/xgrammar#694",
            since="0.2.4",
        ),
    ),
}
"""Rules by what they are about, numbered from 1 in each. Releases are MLX's; those of XGrammar's masks, XGrammar's."""


def rules(subject: str) -> tuple[Rule, ...]:
    """The rules of a contract, by its operation, or of a subject of STOCK."""
    return STOCK[subject] if subject in STOCK else contracts()[subject].rules


def dated() -> dict[str, list[Rule]]:
    """Every rule that names releases, by subject; contracts first."""
    subjects = (*contracts(), *STOCK)
    found = {subject: [rule for rule in rules(subject) if rule.since or rule.until] for subject in subjects}
    return {subject: these for subject, these in found.items() if these}
