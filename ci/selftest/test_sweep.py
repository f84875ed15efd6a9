"""Exhaustive sweeps: the sieve lets nothing wrong through, one wrong input is found, and chunks are what they say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.judging.judge import applicable
from mlx_assay.conformance.process.exchange import Outcome
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.sweeping import chunk, report, softcap
from mlx_assay.conformance.sweeping.catalogue import chosen, sweep_of, sweeps
from mlx_assay.conformance.sweeping.chunk import Chunk
from mlx_assay.conformance.sweeping.examiner import Examiner
from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.oracles import precise_softcap, softcap_sieve, stock_mlx
from mlx_assay.oracles.rounding import ranks

CAPS = (30.0, 50.0, 1 / 3, 0.1, 29.9999981, 128**-0.5, -30.0, 1.0, 1e-30, 1e30, 1.9999999, 1.00000012)
WIDE = replace(softcap.wide("compiled_logit_softcap", 30), blocks=4, step=1)


@pytest.fixture(scope="module")
def sound() -> Iterator[Implementation]:
    with Implementation(None, "host") as implementation:
        yield implementation


def performed(sweep: Sweep, implementation: Implementation, index: int = 0) -> Chunk:
    """A chunk, judged by the oracles that need no library but MLX and mpmath."""
    environment = implementation.environment
    relaxations = applicable(contracts()[sweep.case.operation].relaxations, environment)
    return chunk.perform(Examiner(sweep, environment["executor"], relaxations), index, implementation, "")


@pytest.mark.parametrize("cap", CAPS)
def test_the_sieve_admits_nothing_that_the_interval_does_not(cap: float) -> None:
    """Around every kind of place where spacing changes, and up to seven encodings off, each way."""
    draw, bound = np.random.default_rng(7), np.float32(cap)
    quotients = np.concatenate(
        [np.exp2(draw.uniform(-126, 4.5, 3000)), np.exp2(np.arange(-110, 5.0)), [0.5493061, 9.01]]
    )
    near = quotients.astype(np.float32).view(np.int32)
    quotients = np.unique(np.concatenate([near + step for step in (-2, -1, 0, 1, 2)])).view(np.float32)
    with np.errstate(all="ignore"):
        x = quotients * bound
        x = np.concatenate([x, -x, draw.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)])
        right = precise_softcap.product(np.tanh((x / bound).astype(np.float64)).astype(np.float32), cap)
    low, high = precise_softcap.interval(x, cap, False)
    admitted = 0
    for step in range(-7, 8):
        got = (right.view(np.int32) + np.int32(step)).view(np.float32)
        sure = softcap_sieve.admitted(x, cap, got)
        nan = np.isnan(got) | np.isnan(right)
        inside = np.where(nan, np.isnan(got) & np.isnan(right), (low <= ranks(got)) & (ranks(got) <= high))
        assert not (sure & ~inside).any()
        admitted += int(sure.sum())
    assert admitted > x.size


@pytest.mark.parametrize("cap", [0.0, 1e-40, float("inf"), float("nan")])
def test_the_sieve_has_no_answer_for_odd_caps(cap: float) -> None:
    x = np.arange(100, dtype=np.float32)
    assert not softcap_sieve.admitted(x, cap, x).any()


def test_blocks_hold_every_encoding_once() -> None:
    """Of the first and the last block every place is known, and no two blocks can meet."""
    words = [softcap.wide_block(30, block).arguments["x"].base.view(np.uint32) for block in (0, softcap.BLOCKS - 1)]
    assert [int(words[0][0]), int(words[1][-1])] == [0, 2**32 - 1]
    assert all((np.diff(one.astype(np.int64)) == softcap.BLOCKS).all() for one in words)
    assert softcap.wide("logit_softcap", 30).inputs == 2**32


def test_a_sound_implementation_conforms(sound: Implementation) -> None:
    """The digest is that of the outputs, which MLX itself gives."""
    found = performed(WIDE, sound, 3)
    assert (found.verdict, found.judged, found.differing) == (Verdict.SAME_BITS, softcap.BLOCK, 0)
    want = stock_mlx.logit_softcap(softcap.wide_block(30, 3).arguments["x"].base, 30)
    want.view(np.uint32)[np.isnan(want)] = 0x7FC00000
    assert found.digest == hashlib.sha256(want.tobytes()).hexdigest()


@pytest.mark.parametrize(("name", "block", "place", "text"), [("Raised", 1, 65537, "x 0x40004001, cap 30")])
def test_one_wrong_encoding_is_found(name: str, block: int, place: int, text: str) -> None:
    with Implementation(f"sweep_faults:{name}", "host") as implementation:
        found = performed(WIDE, implementation, block)
        other = performed(WIDE, implementation, block + 1)
    assert (found.verdict, found.differing, other.verdict) == (Verdict.DIFFERS, 1, Verdict.SAME_BITS)
    (spot,) = found.places
    assert (spot.block, spot.index, spot.input) == (block, [place], text)
    assert int(spot.got, 16) == int(spot.want, 16) + 1


def test_an_oracle_out_of_its_bound_is_no_pass(sound: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """What equals the primary oracle and breaks the rule of the other is the oracles' disagreement."""
    examiner = Examiner(WIDE, sound.environment["executor"], ("nan-any",))
    subcase = softcap.wide_block(30, 0)
    stock = stock_mlx.logit_softcap(subcase.arguments["x"].base, 30)
    broken = stock.copy()
    broken[70000] *= np.float32(1.001)
    monkeypatch.setattr(stock_mlx, "logit_softcap", lambda x, cap: broken[x.view(np.uint32) // softcap.BLOCKS])
    found = examiner.examine(subcase, [Outcome(array=broken)], (1,))
    assert (found.verdict, found.doubtful) == (Verdict.ORACLES_DISAGREE, 1)


def test_an_unwritten_output_cannot_pass(sound: Implementation) -> None:
    examiner = Examiner(WIDE, sound.environment["executor"], ("nan-any",))
    given = replace_x(softcap.wide_block(30, 0), np.full(3, np.nan, np.float32))
    outcome = Outcome(array=np.full(3, np.nan, np.float32))
    assert examiner.examine(given, [outcome], (0,)).verdict is Verdict.NOT_RUN
    assert examiner.examine(given, [outcome], (1,)).verdict is Verdict.SAME_BITS


def replace_x(subcase: Subcase, x: np.ndarray) -> Subcase:
    return replace(subcase, arguments={**subcase.arguments, "x": Tensor(x)})


def test_names() -> None:
    assert {"compiled_logit_softcap/float32/every/encoding?cap=30", "logit_softcap/bfloat16/every/encoding"} <= set(
        sweeps()
    )
    assert sweep_of("logit_softcap/float32/every/encoding?cap=0x1.8p4").make(0).arguments["cap"] == 24.0
    with pytest.raises(KeyError):
        sweep_of("logit_softcap/float32/every/encoding?cap=24.0x")
    assert len(chosen(["logit_softcap/float16"])) == 1


def test_the_schema_is_published() -> None:
    published = Path(report.__file__).with_name("sweeps.schema.json")
    assert json.loads(published.read_text()) == report.schema(), "regenerate conformance/sweeping/sweeps.schema.json"
