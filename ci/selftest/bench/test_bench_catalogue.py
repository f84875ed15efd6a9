"""The catalogue: what contracts declare, and what a command line means."""

from __future__ import annotations

import pytest

from mlx_assay.conformance.bench.benchmark import contenders
from mlx_assay.conformance.bench.catalogue import declared, selected, shape_of
from mlx_assay.conformance.query import QueryError

NAMED = {
    "normalized_argmax/bfloat16?rows=64&vocab=262144": 64 * 262144 * 2 + 64 * 4,
    "normalized_argmax/bfloat16?rows=512&vocab=151936": 512 * 151936 * 2 + 512 * 4,
    "normalized_argmax/float32?rows=512&vocab=151936": 512 * 151936 * 4 + 512 * 4,
    "normalized_argmax/bfloat16?rows=1&vocab=262144": 262144 * 2 + 4,
    "apply_token_bitmask/bfloat16?rows=64&vocab=262144": 2 * 64 * 262144 * 2 + 32768,
    "apply_token_bitmask/float32?rows=64&vocab=262144": 2 * 64 * 262144 * 4 + 32768,
    "compiled_logit_softcap/bfloat16?rows=64&vocab=262144": 2 * 64 * 262144 * 2,
    "compiled_logit_softcap/float32?rows=64&vocab=262144": 2 * 64 * 262144 * 4,
    "down_codebook_row/bfloat16?cols=5120&k=2&rows=17408": 17408 * 5120 * 2 // 8 + 17408 * 4 + 5120 * 2,
    "down_codebook_row/bfloat16?cols=5120&k=4&rows=17408": 17408 * 5120 * 4 // 8 + 17408 * 4 + 5120 * 2,
    "down_k3_interleaved_codebook_row/bfloat16?cols=5120&k=3&rows=17408": 17408 * 5120 * 3 // 8 + 17408 * 4 + 5120 * 2,
}
"""Bytes that must move, counted by hand."""


def test_the_benchmarks_are_these_and_move_these_bytes() -> None:
    assert {one.id: one.moved.total for one in declared("cuda")} == NAMED


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("normalized_argmax", 4),
        ("normalized_argmax/*", 4),
        ("*/float32", 3),
        ("normalized_argmax/bfloat16?rows=1", 1),
        ("down_codebook_row?k=4", 1),
        ("normalized_argmax/bfloat16?rows=64&vocab=262144", 1),
        ("*", 11),
    ],
)
def test_queries(query: str, count: int) -> None:
    assert len(selected([query], "cuda")) == count


def test_another_shape_and_dtype() -> None:
    (one,) = selected(["apply_token_bitmask/bfloat16"], "cuda", "rows=3,vocab=1000", "float16")
    assert one.id == "apply_token_bitmask/float16?rows=3&vocab=1000"
    assert one.moved.total == 2 * 3 * 1000 * 2 + 4 * 32


@pytest.mark.parametrize("text", ["64x262144", "rows", "rows=0", "rows=1,rows=2", "rows=-1", "rows=99999999", ""])
def test_bad_shapes(text: str) -> None:
    with pytest.raises(QueryError, match=r"Expected (a shape|sizes)"):
        shape_of(text)


def test_bad_requests() -> None:
    with pytest.raises(QueryError, match="Expected a benchmark such as"):
        selected(["nothing"], "cuda")
    with pytest.raises(QueryError, match="Expected axes of normalized_argmax, rows, vocab, but got cols"):
        selected(["normalized_argmax"], "cuda", "cols=3")
    with pytest.raises(QueryError, match="Expected a dtype of apply_token_bitmask"):
        selected(["apply_token_bitmask"], "cuda", None, "int8")


def test_contenders_by_executor_and_by_name() -> None:
    (asked,) = selected(["apply_token_bitmask/bfloat16"], "cuda")
    names = [one.name for one in contenders(asked, "cuda")]
    assert names == ["stock", "stock, compiled", "xgrammar-mlx", "xgrammar cuda", "xgrammar triton"]
    assert [one.name for one in contenders(asked, "metal")] == names[:3]
    assert [one.name for one in contenders(asked, "cuda", ["xgrammar t*"])] == ["stock", "xgrammar triton"]
