"""Planted trellis implementations: each wrong in one way, each caught by the kinds of case that hunt its fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from fault_patterns import TRELLIS_PATTERNS

from mlx_assay.conformance.judging.finding import CONFORMING
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.kind import kinds
from mlx_assay.impl.executors import fidelity

FOLDER = Path(__file__).parent
DOWN, PAIRS, SCATTER, FACTORED = (
    "down_codebook_row",
    "down_k3_interleaved_codebook_row",
    "scatter_row",
    "factored_row",
)
DECODE, VALUES, FOLD = "trellis_decode", "trellis_code_values", "trellis_fold"
DIFFERS, ERROR = Verdict.DIFFERS, Verdict.ERROR


class Fault(NamedTuple):
    """An operation, the kinds that must catch a planted implementation of it, and words of the message."""

    operation: str
    kinds: tuple[str, ...]
    words: str = ""
    verdict: Verdict = DIFFERS


FAULTS: dict[str, tuple[Fault, ...]] = {
    "wrap_lost": (
        Fault(DECODE, ("state/every", "bit/one", "shape/block-length")),
        Fault(DOWN, ("shape/rows", "bit/one")),
        Fault(PAIRS, ("shape/rows", "state/every")),
        Fault(FACTORED, ("shape/rows",)),
    ),
    "wrap_into_next": (Fault(DECODE, ("shape/blocks", "shape/pairs")), Fault(DOWN, ("shape/blocks", "block/order"))),
    "time_forward": (Fault(DECODE, ("bit/one", "state/bits")), Fault(DOWN, ("bit/one",)), Fault(SCATTER, ("bit/one",))),
    "bits_reversed": (Fault(DECODE, ("bit/one", "variant/all")), Fault(PAIRS, ("shape/rows",))),
    "words_swapped": (Fault(DECODE, ("bit/one",)), Fault(DOWN, ("shape/rows",))),
    "interleave_ignored": (Fault(PAIRS, ("shape/blocks", "block/order")), Fault(DECODE, ("shape/pairs",))),
    "interleave_swapped": (Fault(PAIRS, ("shape/rows", "block/order")), Fault(DECODE, ("shape/pairs",))),
    "window_of_twelve": (Fault(DOWN, ("state/every",)), Fault(DECODE, ("state/every", "state/bits"))),
    "refined_codes": (
        Fault(DOWN, ("shape/rows", "sum/magnitudes"), "codes that are correctly rounded"),
        Fault(PAIRS, ("shape/rows",)),
        Fault(SCATTER, ("kernel/each",)),
    ),
    "unrefined_weights": (
        Fault(DECODE, ("state/forms", "variant/all"), "the unrefined form's value"),
        Fault(VALUES, ("sum/every",), "the value of unrefined"),
    ),
    "table_of_halves": (Fault(DECODE, ("state/every",)), Fault(DOWN, ("shape/rows",)), Fault(VALUES, ("sum/every",))),
    "hash_unwrapped": (Fault(DECODE, ("state/every",)), Fault(DOWN, ("shape/rows",)), Fault(FACTORED, ("shape/rows",))),
    "fma_in_float64": (Fault(DOWN, ("fma/rounded-once",), "a sum in float64"), Fault(PAIRS, ("fma/rounded-once",))),
    "rounded_apart": (
        Fault(DOWN, ("fma/rounded-once", "sum/magnitudes"), "product and sum rounded apart"),
        Fault(PAIRS, ("shape/rows",)),
    ),
    "scale_late": (Fault(DOWN, ("shape/rows", "scale/listed")), Fault(SCATTER, ("shape/rows", "kernel/each"))),
    "first_scale": (Fault(DOWN, ("shape/rows", "scale/listed")), Fault(FACTORED, ("scale/listed",))),
    "descending_rows": (Fault(DOWN, ("sum/magnitudes", "shape/rows")), Fault(PAIRS, ("sum/magnitudes",))),
    "strided_splits": (Fault(DOWN, ("sum/magnitudes",)), Fault(SCATTER, ("sum/magnitudes",))),
    "splits_of_64": (Fault(DOWN, ("sum/magnitudes",)), Fault(SCATTER, ("sum/magnitudes",))),
    "odd_row_lost": (Fault(DOWN, ("sum/magnitudes",)), Fault(SCATTER, ("kernel/each",))),
    "rows_past_end": (Fault(DOWN, ("shape/rows",)), Fault(PAIRS, ("shape/rows",)), Fault(FACTORED, ("shape/rows",))),
    "last_block_lost": (Fault(DOWN, ("shape/blocks",)), Fault(FACTORED, ("shape/blocks",))),
    "blocks_beyond_16": (Fault(DOWN, ("shape/blocks",)), Fault(PAIRS, ("shape/blocks",))),
    "descending_butterfly": (
        Fault(DOWN, ("sum/magnitudes", "sum/cancelling"), "descending-butterfly order"),
        Fault(PAIRS, ("shape/rows",)),
        Fault(FOLD, ("sum/magnitudes", "sum/pairs"), "descending-butterfly order"),
    ),
    "sequential_lanes": (Fault(SCATTER, ("sum/cancelling",), "sequential order"), Fault(FOLD, ("sum/pairs",))),
    "total_first": (Fault(DOWN, ("sum/magnitudes",)), Fault(FOLD, ("sum/magnitudes", "sum/pairs"))),
    "fold_in_halves": (Fault(DOWN, ("shape/rows",)), Fault(FOLD, ("sum/magnitudes", "value/rounding"))),
    "truncated": (Fault(DOWN, ("shape/rows",)), Fault(FOLD, ("value/rounding",))),
    "denormals_kept": (
        Fault(DOWN, ("denormal/sums", "x/denormal"), "as denormals otherwise would give"),
        Fault(DECODE, ("denormal/weights",)),
        Fault(FOLD, ("value/denormal",)),
    ),
    "infinity_clamped": (Fault(DOWN, ("x/special", "scale/special")), Fault(DECODE, ("scale/listed",))),
    "x_in_halves": (Fault(DOWN, ("shape/rows",)), Fault(PAIRS, ("state/every",))),
    "unrounded_weights": (Fault(DECODE, ("variant/all", "variant/form")),),
    "weights_rounded_up": (Fault(DECODE, ("variant/ties",)),),
    "anything_accepted": (
        Fault(DOWN, ("error/geometry", "error/arrays"), "", ERROR),
        Fault(DECODE, ("error/geometry", "error/arrays"), "", ERROR),
    ),
    "rows_accepted": (Fault(DOWN, ("error/arrays",), "expected ValueError or TypeError", ERROR),),
    "layout_accepted": (Fault(DOWN, ("error/layout",), "expected ValueError or TypeError", ERROR),
                        Fault(PAIRS, ("error/layout",), "expected ValueError or TypeError", ERROR)),
    "fold_without_barrier": (Fault(FOLD, ("sum/magnitudes",)),),
    "returns_early": (Fault(DECODE, ("shape/blocks",)),),
}  # fmt: skip


@contextmanager
def planted(target: str) -> Iterator[Implementation]:
    with pytest.MonkeyPatch.context() as patch, Implementation(target, "host", 60.0) as implementation:
        patch.syspath_prepend(FOLDER)
        yield implementation


def caught(fault: Fault, kind: str, implementation: Implementation) -> str:
    """What is told of a case that gets the verdict and the words; no case gets another that does not conform."""
    told = []
    for case in kinds()[fault.operation, kind].cases("quick"):
        record = judge(case, implementation)
        assert record.verdict in (fault.verdict, *CONFORMING), record.message
        if record.verdict is fault.verdict and fault.words in record.message:
            return record.message
        told.append(f"{record.verdict} {record.id} {record.message}")
    raise AssertionError(f"Expected {fault.verdict} with {fault.words!r} from {kind} but got\n" + "\n".join(told))


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught(name: str) -> None:
    with planted(f"bad.trellis_{name}") as implementation:
        told = [caught(fault, kind, implementation) for fault in FAULTS[name] for kind in fault.kinds]
    if name in TRELLIS_PATTERNS:
        lines = [line for text in told for line in text.splitlines() if line.startswith("  pattern: ")]
        assert any(TRELLIS_PATTERNS[name] in line for line in lines), told


def test_every_planted_trellis_file_is_in_the_table() -> None:
    names = {path.stem.removeprefix("trellis_") for path in (FOLDER / "bad").glob("trellis_*.py")}
    assert names - {"stock"} == set(FAULTS)


@pytest.mark.parametrize("order", fidelity.SWITCHES["simd_sum"])
def test_the_judge_follows_the_executors_order(order: str) -> None:
    """The kernels conform whatever order the executor declares, and one that adds in another order does not."""
    (case, *_) = kinds()[DOWN, "sum/magnitudes"].cases("quick")
    wrong = "descending_butterfly" if order != "descending-butterfly" else "sequential_lanes"
    with fidelity.switched(simd_sum=order):
        with Implementation(None, "host", 60.0) as implementation:
            assert judge(case, implementation).conforms
        with planted(f"bad.trellis_{wrong}") as implementation:
            record = judge(case, implementation)
    assert record.verdict is DIFFERS
    assert "order of a SIMD group's sum" in record.message


def test_an_executor_that_does_not_say_its_order_has_no_expected_bits() -> None:
    (case, *_) = kinds()[FOLD, "sum/pairs"].cases("quick")
    with Implementation(None, "host", 60.0) as implementation:
        implementation.environment["executor"]["simd_sum"] = "unknown"
        record = judge(case, implementation)
    assert record.verdict is Verdict.ORACLES_DISAGREE
    assert "its order is 'unknown'" in record.message
