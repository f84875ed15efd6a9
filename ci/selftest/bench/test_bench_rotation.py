"""The rotations of a GPU, run on this CPU: what calls see, how many there are, and what is checked."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from mlx_assay.conformance.bench import message
from mlx_assay.conformance.bench.catalogue import selected
from mlx_assay.conformance.bench.measurement import Plan
from mlx_assay.conformance.bench.process import Measuring
from mlx_assay.conformance.bench.report import Copied
from mlx_assay.conformance.bench.session import Session, Side
from mlx_assay.conformance.process.implementation import Implementation

SELFTESTS = Path(__file__).parents[1]
CASES = ("normalized_argmax/bfloat16/real/masked", "apply_token_bitmask/bfloat16/real/*")


@pytest.mark.parametrize("query", ["normalized_argmax/bfloat16?rows=4&vocab=32768", "apply_token_bitmask/bfloat16"])
def test_beyond_the_cache_in_it_and_next_to_nothing(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SELFTESTS))
    (asked,) = selected([query], "host", "rows=2,vocab=4096")
    copy = Copied(way="by hand", size=1 << 20, bytes_a_second=1e9, spread=0.0)
    with Implementation("bad.stock", "host") as implementation, Measuring("bad.stock", "host", 60.0) as measuring:
        measuring.device |= {"executor": "metal", "cache_bytes": str(1 << 16)}
        session = Session(Plan(rounds=2, calls=40, checks=4), CASES, beside=("none",), copy=copy)
        result = session.result(asked, Side("stock", implementation, measuring))
    assert (result.outcome, result.message) == ("measured", "")
    beyond, near, tiny = result.rotations
    assert [each.name for each in result.rotations] == ["beyond the cache", "in the cache", "next to nothing"]
    read = asked.moved.read
    for rotation, rounds in ((beyond, 2), (near, 2), (tiny, 5)):
        assert 32 <= rotation.timed // rounds <= 256
        # On a busy machine queues are asked for once more, to confirm what looked like a trick.
        assert rotation.compared >= rotation.timed
        assert (rotation.compared - rotation.timed) % (rotation.timed // rounds) == 0
        assert rotation.checked == rounds + (2 if rounds == 2 else 0)
        assert [entry.name for entry in rotation.entries] == ["", "stock"]
        assert all(entry.figure is not None and entry.lazy for entry in rotation.entries)
    assert beyond.bytes_read == beyond.timed // 2 * read
    assert near.bytes_read == read
    assert beyond.limit == pytest.approx(asked.moved.total)
    assert tiny.limit is None


def test_contenders_may_take_longer_to_be_made_than_a_queue() -> None:
    class Slow:
        """Takes an order, and remembers until when its reply is waited for."""

        def send(self, order: message.Order, deadline: float) -> None:
            self.until = deadline

        def receive(self, deadline: float) -> message.Reply:
            return message.Seated({"a peer": "no compiler"})

    measuring, child = Measuring.__new__(Measuring), Slow()
    measuring._limit, measuring.child = 1.0, child  # type: ignore[assignment]
    began = monotonic()
    assert measuring.prepare(message.Prepare("operation", "float32", {}, [])) == {"a peer": "no compiler"}
    assert child.until - began >= 599.0
