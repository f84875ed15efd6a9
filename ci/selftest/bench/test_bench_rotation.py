"""Both rotations of a GPU, run on this CPU: what calls see, how many there are, and what is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlx_assay.conformance.bench.catalogue import selected
from mlx_assay.conformance.bench.measurement import Measurement, Plan
from mlx_assay.conformance.bench.process import Measuring
from mlx_assay.conformance.process.implementation import Implementation

SELFTESTS = Path(__file__).parents[1]


class AsOnAGpu(Measurement):
    """Walks through content as on a GPU with a cache of 64 KiB."""

    def walked(self) -> list[tuple[str, int, int]]:
        """Name, bytes and calls of each rotation."""
        self._executor, self._cache = "metal", 1 << 16
        return [(each.name, each.bytes_read, each.timed) for each in self.rotations()]


@pytest.mark.parametrize("query", ["normalized_argmax/bfloat16?rows=4&vocab=32768", "apply_token_bitmask/bfloat16"])
def test_beyond_the_cache_and_in_it(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SELFTESTS))
    (asked,) = selected([query], "host", "rows=2,vocab=4096")
    with Measuring("bad.stock", "host", 60.0) as measuring:
        plan = Plan(rounds=2, calls=20, checks=4)
        environment = Implementation(None, "host").environment
        measurement = AsOnAGpu(asked, measuring, environment, plan, (), 1e9, ("none",))
        found = measurement.walked()
    assert measurement.alarms == []
    read = asked.moved.read
    assert [name for name, _, _ in found] == ["beyond the cache", "in the cache"]
    calls = found[0][2] // 2
    assert 16 <= calls <= 20
    assert found[0][1] == calls * read
    assert found[1][1] == read
