"""Probes of a device: what they tell apart, and what the host executor answers under every switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.capture import recording, sums
from mlx_assay.conformance.capture.comparison import differences
from mlx_assay.conformance.capture.machine import Refused, asked
from mlx_assay.conformance.capture.question import REFUSED, UNKNOWN, Question, canonical
from mlx_assay.conformance.capture.questions import BY_NAME, QUESTIONS, switches
from mlx_assay.impl.executors import fidelity, use
from mlx_assay.oracles.accumulation import same_bits
from mlx_assay.oracles.trees import known

LISTED = [question for question in QUESTIONS if not callable(question.answers)]
SETTINGS = [
    {},
    *({name: value} for name, values in fidelity.SWITCHES.items() for value in values[1:]),
    {"contraction": "off", "f32_denormals": "kept", "simd_sum": "sequential"},
]


def answers(questions: tuple[Question, ...] = QUESTIONS) -> dict[str, str]:
    with use("host"):
        return {
            question.name: REFUSED if isinstance(results, Refused) else question.answer(results)
            for question, results in asked(questions)
        }


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: ",".join(setting.values()) or "default")
def test_host_answers_every_probe_as_the_switches_say(setting: Mapping[str, str]) -> None:
    with fidelity.switched(**setting):
        held = fidelity.current().described()
        got = answers()
    assert got == {question.name: question.predicted(held) for question in QUESTIONS}
    assert switches(got) == held


def test_what_follows_a_switch_moves_with_each_of_its_values() -> None:
    for question in QUESTIONS:
        if question.follows:
            values = fidelity.SWITCHES[question.follows]
            told = {question.predicted({question.follows: value}) for value in values}
            assert len(told - {UNKNOWN}) == len(values), question.name
            assert question.predicted({question.follows: UNKNOWN}) == ""
        else:
            assert isinstance(question.host, str), question.name


def test_names_are_unique_and_every_question_has_results() -> None:
    assert len(BY_NAME) == len(QUESTIONS)
    assert all(question.count > 0 and question.operands and question.about for question in QUESTIONS)


@pytest.mark.parametrize("question", LISTED, ids=lambda question: question.name)
def test_known_answers_have_bits_of_their_own(question: Question) -> None:
    assert isinstance(question.answers, Mapping)
    for answer, results in question.answers.items():
        assert len(results) == question.count
        assert all(0 <= word < 16**question.digits for word in results)
        assert question.answer(results) == answer
        flipped = (results[0] ^ 1 << 4 * question.digits - 3, *results[1:])
        assert question.answer(flipped) != answer
    plain = [canonical(question.kind, results) for results in question.answers.values()]
    assert len(set(plain)) == len(plain)
    hosts = [question.host] if isinstance(question.host, str) else list(question.host.values())
    assert set(hosts) <= {*question.answers, REFUSED}


def test_a_nan_is_one_whatever_its_payload_and_sign() -> None:
    question = BY_NAME["nan.fmax.f32"]
    assert question.answer((0x7F800001, 0xFFC12345)) == "the NaN"
    assert question.answer((0x7F800000, 0x7FC00000)) == UNKNOWN
    assert canonical("u32", (0x7F800001,)) == (0x7F800001,)


def test_rounding_is_as_an_independent_conversion_has_it() -> None:
    for name, dtype in (("rounding.f32-to-bf16", ml_dtypes.bfloat16), ("rounding.f32-to-f16", np.float16)):
        question = BY_NAME[name]
        with np.errstate(all="ignore"):
            narrow = np.array(question.operands, np.uint32).view(np.float32).astype(dtype)
        assert question.answer(tuple(int(word) for word in narrow.view(np.uint16))) == "nearest even"


def test_the_fma_of_halves_stands_where_two_roundings_show() -> None:
    a, b, c = (Fraction(float(np.array([word], np.uint16).view(np.float16)[0])) for word in BY_NAME["fma.f16"].operands)
    exact = a * b + c
    midpoint = 1 + Fraction(3, 2**11)
    assert 0 < midpoint - exact < Fraction(1, 2**25)
    single = np.float32(float(exact))
    assert Fraction(float(single)) == midpoint
    assert BY_NAME["fma.f16"].answer((int(np.float16(single).view(np.uint16)),)) == "rounded twice"
    below = np.float16(1 + 2.0**-10)
    assert BY_NAME["fma.f16"].answer((int(below.view(np.uint16)),)) == "rounded once"


def everything(kind: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Each known tree's sums of the operands, and of other numbers on which trees that are not equal differ."""
    other = np.random.default_rng(1).standard_normal((64, 32)) * np.exp2(
        np.random.default_rng(2).integers(-9, 9, (64, 32))
    )
    values = sums.addends(kind)  # type: ignore[arg-type]
    more = other.astype(np.float32).astype(values.dtype)
    for tree in known(32, False, kind == "bf16"):
        yield tree.name, tree.total(values), tree.total(more)


def test_the_operands_tell_every_known_tree_of_floats_apart() -> None:
    trees = list(everything("f32"))
    assert len({plain.tobytes() for _, plain, _ in trees}) == len({more.tobytes() for _, _, more in trees}) > 25


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_the_orders_of_switches_differ_in_both_widths(kind: str) -> None:
    values = sums.addends(kind)  # type: ignore[arg-type]
    found = {sums._plain(values, order, wide).tobytes() for order in sums.SWITCH_ORDERS for wide in (False, True)}
    assert len(found) == 2 * len(sums.SWITCH_ORDERS)


def test_products_of_orders_that_are_not_equal_differ() -> None:
    products = dict(sums.products())
    distinct = {product.tobytes() for product in products.values()}
    # Two halves joined either way, and a butterfly over strided or contiguous parts, are one tree under more names.
    assert len(products) - len(distinct) == 3 + 3 + 1 + 1
    assert len({products[order].tobytes() for order in sums.SWITCH_ORDERS}) == 4


@pytest.mark.parametrize("name", [question.name for question in QUESTIONS if callable(question.answers)])
def test_sums_of_no_known_order_are_unknown(name: str) -> None:
    question = BY_NAME[name]
    assert question.answer((0x3F80,) * question.count) == UNKNOWN


def test_a_sum_in_an_order_without_a_switch_is_named() -> None:
    (tree,) = (tree for tree in known(32) if tree.name.startswith("stride 4, sequential"))
    total = tree.total(sums.addends("f32"))
    results = sums.words(np.repeat(total[:, None], 32, axis=1))
    assert BY_NAME["simd-sum.f32"].answer(results).startswith("stride 4, sequential")
    assert switches({"simd-sum.f32": "stride 4, sequential"})["simd_sum"] == UNKNOWN
    strided = dict(sums.products())["stride 4, sequential"]
    assert BY_NAME["simd-product.f32"].answer(sums.words(np.repeat(strided[:, None], 32, axis=1))) == (
        "stride 4, sequential"
    )


def test_lanes_that_differ_are_said_so() -> None:
    total = np.repeat(sums.ordered(sums.addends("f32"), "sequential", np.add)[:, None], 32, axis=1)
    assert BY_NAME["simd-sum.f32"].answer(sums.words(total)) == "sequential"
    total[2, 31] += np.float32(1)
    assert BY_NAME["simd-sum.f32"].answer(sums.words(total)) == "the lanes' results differ"


def test_ordered_is_the_order_of_the_oracles() -> None:
    from mlx_assay.oracles.fused import simd_sum

    values = sums.addends("f32")
    for order in sums.SWITCH_ORDERS:
        assert np.all(same_bits(sums.ordered(values, order, np.add), simd_sum(values.T, order)))


def test_probes_that_disagree_leave_their_switch_unknown() -> None:
    assert switches({})["contraction"] == UNKNOWN
    assert switches({"contraction.f32": "fused", "contraction.f16": "rounded"})["contraction"] == UNKNOWN
    assert switches({"contraction.f32": "fused", "contraction.f16": "fused"})["contraction"] == "on"
    denormals = dict.fromkeys(("denormals.f32.operand", "denormals.f32.result", "denormals.f32.sum"), "kept")
    assert switches(denormals)["f32_denormals"] == "kept"
    assert switches(denormals | {"denormals.f32.sum": "flushed"})["f32_denormals"] == UNKNOWN


def question(name: str, source: str) -> Question:
    return Question(name, name, "u32", (7,), 1, source, {"seven": (7,)}, "seven")


def test_a_question_that_does_not_compile_is_refused_alone() -> None:
    good, bad = question("good", "r[0] = a[0];"), question("bad", "r[0] = nobody_knows(a[0]);")
    with use("host"):
        found = dict(asked([good, bad]))
    assert found[good] == (7,)
    refusal = found[bad]
    assert isinstance(refusal, Refused)
    assert "nobody_knows" in str(refusal)
    assert not {"/", "\n"} & set(str(refusal))
    assert len(str(refusal)) <= 300


def test_a_result_that_no_kernel_writes_is_unknown() -> None:
    with use("host"):
        ((_, results),) = asked([question("silent", "if (a[0] == 1u) { r[0] = 7u; }")])
    assert results == (0xA5A5A500,)
    for one in LISTED:
        assert one.answer((0xA5A5A500 & 16**one.digits - 1,) * one.count) == UNKNOWN


def test_what_is_left_out_is_said_and_not_compared() -> None:
    whole = recording.capture("host", ["sweeps"])
    part = recording.capture("host", ["sweeps", "limits.*", "nan.fmax.f32"])
    found = {probe.name for probe in part.probes if probe.answer == "left out"}
    assert found == {"nan.fmax.f32"} | {name for name in BY_NAME if name.startswith("limits.")}
    assert differences(whole, part) == []
    assert part.beyond_host == whole.beyond_host == []
    assert not whole.hardware
    with pytest.raises(ValueError, match=r"to leave out, but got 'limit\.\*'"):
        recording.checked(["limit.*"])


def test_nothing_private_is_recorded() -> None:
    made = recording.capture("host", ["*"])
    words = [*made.device.values(), *made.executor.values(), *made.system.values()]
    assert not [word for word in words if "/" in word]
    assert "compiler" not in made.executor


def test_the_class_of_a_device_is_its_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    import mlx.core as mx

    assert recording.device_class("host") == "host"
    for said, expected in (
        ({"architecture": "applegpu_g15s"}, "applegpu_g15s"),
        ({"architecture": "A b"}, "a-b"),
        ({}, "metal"),
    ):
        monkeypatch.setattr(mx, "device_info", lambda said=said: said)
        assert recording.device_class("metal") == expected
