"""Exhaustive sweeps: the sieve lets nothing wrong through, one wrong input is found, and chunks are what they say."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.contracts.normalized_argmax import denormals_decide
from mlx_assay.conformance.judging.judge import applicable
from mlx_assay.conformance.process.exchange import Outcome
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.sweeping import argmax, chunk, mask, report, softcap, trellis
from mlx_assay.conformance.sweeping.catalogue import chosen, sweep_of, sweeps
from mlx_assay.conformance.sweeping.chunk import Chunk
from mlx_assay.conformance.sweeping.examiner import Examiner
from mlx_assay.conformance.sweeping.progress import Lines
from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.encoding import is_denormal
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.fixtures.trellis_words import states_of
from mlx_assay.oracles import numpy_reference, precise_softcap, softcap_sieve, stock_mlx
from mlx_assay.oracles.rounding import ranks

CAPS = (30.0, 50.0, 1 / 3, 0.1, 29.9999981, 128**-0.5, -30.0, 1.0, 1e-30, 1e30, 1.9999999, 1.00000012)
WIDE = replace(softcap.wide("compiled_logit_softcap", 30), blocks=4, step=1)


@pytest.fixture(scope="module")
def sound() -> Iterator[Implementation]:
    with Implementation(None, "host") as implementation:
        yield implementation


def performed(sweep: Sweep, implementation: Implementation, index: int = 0) -> Chunk:
    """A chunk of a sweep."""
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


def test_one_wrong_encoding_is_found() -> None:
    with Implementation("sweep_faults:OneEncoding", "host") as implementation:
        found, other = (performed(WIDE, implementation, block) for block in (1, 2))
    assert (found.verdict, found.differing, other.verdict) == (Verdict.DIFFERS, 1, Verdict.SAME_BITS)
    (spot,) = found.places
    assert (spot.block, spot.index, spot.input) == (1, [65537], "x 0x40004001, cap 30")
    assert int(spot.got, 16) == int(spot.want, 16) + 1


def one(sweep_id: str) -> Sweep:
    """A sweep in chunks of one block."""
    return replace(sweep_of(sweep_id), step=1)


def test_one_wrong_byte_is_found() -> None:
    """Of the 256 calls of an offset one has byte 0x9c at place 2051."""
    sweep = one("apply_token_bitmask/float16/every/byte")
    call = next(call for call in range(256) if mask.byte_words(call).view(np.uint8)[2051] == 0x9C)
    with Implementation("sweep_faults:OneByte", "host") as implementation:
        found = performed(sweep, implementation, 5 * 256 + call)
        others = [performed(sweep, implementation, block) for block in (5 * 256 + call + 1, 6 * 256 + call)]
    assert (found.verdict, found.differing) == (Verdict.DIFFERS, 2)
    assert [spot.input.rpartition(", word")[0] for spot in found.places] == [
        f"offset-5-call-{call}, row {row}, id {8 * 2051}" for row in (0, 1)
    ]
    assert {other.verdict for other in others} == {Verdict.SAME_BITS}


@pytest.mark.parametrize("name", ["OneScore", "OneScoreLess"])
def test_one_wrong_score_is_found(name: str) -> None:
    """The lse is 8.3125, where the logit's score has neighbours of the same score."""
    sweep, order = one("argmax_given/bfloat16/every/pair"), argmax.ranked()
    place = int(np.flatnonzero(order == 0x3C3F)[0])
    block = 0x4105 * argmax.PARTS + place // argmax.SIZE
    with Implementation(f"sweep_faults:{name}", "host") as implementation:
        found, other = (performed(sweep, implementation, at) for at in (block, block + argmax.PARTS))
    assert (found.verdict, other.verdict) == (Verdict.DIFFERS, Verdict.SAME_BITS)
    assert 1 <= found.differing <= 3
    assert all("0x3c3f" in spot.input and "lse 0x4105" in spot.input for spot in found.places)


def test_one_wrong_state_is_found() -> None:
    """As often as it comes, which is once at its own place, and between others by chance."""
    sweep, parts = one("trellis_decode/float32/every/state?form=refined"), list(trellis.parts("refined"))
    with Implementation("sweep_faults:OneState", "host") as implementation:
        for first in (32768, 0):
            found = performed(sweep, implementation, parts.index((3, 16, first)))
            comes = np.count_nonzero(states_of(trellis.words_of(3, 16, first), 3, 16) == 40503)
            assert found.differing == comes
            assert (found.verdict is Verdict.DIFFERS, "state 40503" in found.message) == (comes > 0, comes > 0)
            assert comes or first == 0


def test_every_pair_has_a_row() -> None:
    """Of four lse, all 65,536 logits stand at the place that the right id names, but for NaN and what it beats."""
    for lse in (0x4105, 0x0000, 0xC2F7, 0x7F80):
        won = []
        for part in range(argmax.PARTS):
            given = argmax.pairs(lse * argmax.PARTS + part).arguments
            ids = numpy_reference.argmax_given(given["logits"].base, given["lse"].base)
            won.append(given["logits"].base.view(np.uint16)[np.arange(argmax.SIZE), ids])
        scores = numpy_reference.scores(
            argmax.ranked().view(argmax.BFLOAT16), np.array([lse], np.uint16).view(argmax.BFLOAT16)
        )
        number = ~np.isnan(scores.astype(np.float32))
        inner = number & np.roll(number, 1)
        assert (np.concatenate(won)[inner] == argmax.ranked()[inner]).all()


def test_denormals_decide_no_pair() -> None:
    """Where logits, lse or scores are denormals, in a device's reading of them or another; and such rows there are."""
    met = 0
    for lse in (0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x0081, 0x80FF, 0x0180, 0x047F, 0x8480, 0x4105):
        for part in range(argmax.PARTS):
            given = {name: held.base for name, held in argmax.pairs(lse * argmax.PARTS + part).arguments.items()}
            assert not denormals_decide(given)
            scores = numpy_reference.scores(given["logits"], given["lse"])
            met += int((is_denormal(scores)).sum())
    assert met > 1000


def test_every_byte_and_word_and_state_comes() -> None:
    octets = np.stack([mask.byte_words(call).view(np.uint8) for call in range(256)])
    assert (np.sort(octets, axis=0) == np.arange(256)[:, None]).all()
    assert {int(word).bit_count() for word in mask.FEW_BITS} == {1, 2}
    assert len(set(mask.FEW_BITS.tolist())) == 528
    for k, L in ((2, 7), (3, 13), (4, 16)):
        starts = [first for width, bits, first in trellis.parts("bits") if (width, bits) == (k, L)]
        found = np.unique(np.concatenate([states_of(trellis.words_of(k, L, first), k, L).ravel() for first in starts]))
        assert found.size == 1 << L


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


@pytest.mark.parametrize(
    ("name", "verdict", "text"),
    [
        ("sweep_faults:Ends", Verdict.CRASHED, "was killed by SIGABRT"),
        ("sweep_faults:OneState", Verdict.UNSUPPORTED, "has no function compiled_logit_softcap"),
        ("bad.copy_of_input", Verdict.DIFFERS, ""),
        ("bad.nowhere", Verdict.ERROR, "No module named 'bad.nowhere'"),
    ],
)
def test_what_fails_is_told_and_counted(name: str, verdict: Verdict, text: str) -> None:
    """A chunk ends where its process does; where answers are wrong, all are counted and a few told."""
    with Implementation(name, "host") as implementation:
        found = performed(replace(WIDE, step=2), implementation)
    assert found.verdict is verdict
    assert text in found.message
    assert found.judged == (found.inputs if verdict is Verdict.DIFFERS else 0)
    if verdict is Verdict.DIFFERS:
        assert found.differing > 1000
        assert len(found.places) == 10


def test_lines_tell_share_rate_and_time_left() -> None:
    now = 100.0
    written = io.StringIO()
    lines = Lines(written, lambda: now)
    lines.started(1000, 500)
    for number in range(3):
        now += 1.0
        lines.judged(msgspec.structs.replace(NONE, inputs=60, differing=number % 2))
    assert written.getvalue().splitlines() == [
        "620 of 1,000 inputs (62.0 %), 1 place differs, 60 inputs/s, 6 s left",
    ]


NONE = Chunk(
    sweep="", index=0, first=0, blocks=0, inputs=0, judged=0, verdict=Verdict.SAME_BITS, differing=0, doubtful=0,
    worst_ulp=0, digest="", identity="", seconds=0,
)  # fmt: skip


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
