"""The trellis cases: complete, drawn from their ids alone, and such as they say that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlx_assay.fixtures import (
    trellis_errors,
    trellis_matrix,
    trellis_real,
    trellis_shapes,
    trellis_sums,
    trellis_values,
)
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.encoding import bits_of, is_denormal, is_nan
from mlx_assay.fixtures.kind import Kind, kinds
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.fixtures.trellis_call import DOWN, FACTORED, PAIRS, SCATTER, Layout
from mlx_assay.fixtures.trellis_encoder import lut
from mlx_assay.fixtures.trellis_words import row_major, states_of
from mlx_assay.oracles import fused, trellis_row
from mlx_assay.oracles.trellis_layout import Packed

MODULES = (trellis_shapes, trellis_values, trellis_real, trellis_matrix, trellis_sums, trellis_errors)
KINDS = [kind for module in MODULES for kind in module.KINDS]
IDS = [f"{kind.operation}/{kind.name}" for kind in KINDS]
ROW_OPERATIONS = (DOWN, PAIRS, SCATTER, FACTORED)


def sample(kind: Kind) -> list[Case]:
    """The smallest case of each dtype, or the only one."""
    cases = list(kind.listed())
    return cases[:: max(1, len(cases) // 2)]


def tensors(subcase: Subcase) -> dict[str, Tensor]:
    return {name: value for name, value in subcase.arguments.items() if isinstance(value, Tensor)}


def shape_of(subcase: Subcase) -> tuple[Any, ...]:
    """What a cache may take for the whole of a call."""
    plain = tuple(value for value in subcase.arguments.values() if not isinstance(value, Tensor))
    return (*plain, *((value.array.shape, value.dtype) for value in tensors(subcase).values()))


def content_of(subcase: Subcase) -> bytes:
    return b"".join(value.array.tobytes() for value in tensors(subcase).values())


def test_all_are_registered() -> None:
    assert {(kind.operation, kind.name) for kind in KINDS} <= set(kinds())
    assert {kind.operation for kind in KINDS} == {
        *ROW_OPERATIONS,
        "trellis_decode",
        "trellis_code_values",
        "trellis_fold",
    }


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_a_case_has_two_calls_that_only_content_tells_apart(kind: Kind) -> None:
    for case in sample(kind):
        subcases = [subcase for subcase in kind.subcases(case) if not subcase.raises]
        assert subcases or "error" in kind.tags
        pairs = [
            (one, other)
            for i, one in enumerate(subcases)
            for other in subcases[:i]
            if shape_of(one) == shape_of(other) and content_of(one) != content_of(other)
        ]
        assert pairs or "error" in kind.tags, case.id


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_a_case_depends_on_its_id_alone(kind: Kind) -> None:
    case = sample(kind)[0]
    for one, again in zip(kind.subcases(case), kind.subcases(Case.parse(case.id)), strict=True):
        assert one.label == again.label
        assert [tensor.base.tobytes() for tensor in tensors(one).values()] == [
            tensor.base.tobytes() for tensor in tensors(again).values()
        ]


@pytest.mark.parametrize("operation", ROW_OPERATIONS)
def test_numbers_fit_the_arrays(operation: str) -> None:
    for kind in KINDS:
        if kind.operation != operation or "error" in kind.tags:
            continue
        for subcase in kind.subcases(sample(kind)[0]):
            call = subcase.arguments
            rows, cols, k = (int(call[name]) for name in ("rows", "cols", "k"))  # type: ignore[arg-type]
            given = {name: tensor.array.shape for name, tensor in tensors(subcase).items()}
            words = (cols // 512, rows, 48) if call["block_interleave"] else (rows, cols * k // 32)
            assert given == {"x": (1, rows), "codes": words, "scales": (rows,)}


def cases_of(operation: str, name: str) -> list[list[Subcase]]:
    kind = kinds()[operation, name]
    return [kind.subcases(case) for case in kind.listed()]


def test_tags_are_true() -> None:
    """Of the specials that a kind is tagged with, the quick tier holds each."""
    for kind in KINDS:
        values = [
            np.asarray(tensor.array)
            for case in kind.listed()
            for subcase in (kind.subcases(case) if set(kind.tags) & {"nan", "inf", "denormal", "strided"} else ())
            for tensor in tensors(subcase).values()
            if tensor.array.dtype.kind not in "iu"
        ]
        if "nan" in kind.tags:
            assert any(is_nan(array).any() for array in values), kind.name
        if "inf" in kind.tags and kind.name != "extreme/overflow":
            assert any(np.isinf(array.astype(np.float32)).any() for array in values), kind.name
        if "strided" in kind.tags:
            strided = [s for case in kind.listed() for s in kind.subcases(case)]
            assert all(any(tensor.steps for tensor in tensors(subcase).values()) for subcase in strided)


def test_every_block_count_is_there() -> None:
    counts = {int(subcase.arguments["cols"]) // 256 for case in cases_of(DOWN, "shape/blocks") for subcase in case}  # type: ignore[arg-type]
    assert counts == set(range(1, 21))
    pairs = {int(subcase.arguments["cols"]) // 512 for case in cases_of(PAIRS, "shape/blocks") for subcase in case}  # type: ignore[arg-type]
    assert pairs == set(range(1, 11))


@pytest.mark.parametrize("operation", [DOWN, PAIRS])
def test_every_state_is_reached_at_every_position(operation: str) -> None:
    for case in cases_of(operation, "state/every"):
        codes = tensors(case[0])["codes"].array
        k = int(case[0].arguments["k"])  # type: ignore[arg-type]
        words = row_major(codes) if operation == PAIRS else codes
        blocks = words.reshape(4096, -1, 8 * k)
        for block in range(blocks.shape[1]):
            states = np.sort(states_of(blocks[:, block], k, 12), axis=0)
            assert np.array_equal(states, np.broadcast_to(np.arange(4096)[:, None], (4096, 256)))


def answer(subcase: Subcase, order: str, **mistake: Any) -> np.ndarray:
    call, given = subcase.arguments, {name: tensor.array for name, tensor in tensors(subcase).items()}
    packed = Packed(given["codes"], int(call["k"]), int(call["L"]), 256, call["block_interleave"] is not None)  # type: ignore[arg-type]
    return trellis_row.down_row(given["x"], packed, given["scales"], np.dtype(np.float32), order, True, **mistake)


@pytest.mark.parametrize("operation", [DOWN, PAIRS])
@pytest.mark.parametrize("name", ["sum/magnitudes", "sum/cancelling"])
def test_each_order_gives_other_bits(operation: str, name: str) -> None:
    """Whatever order an executor declares, every other one fails each of these cases, in float32."""
    for case in cases_of(operation, name):
        answers = {order: b"".join(answer(subcase, order).tobytes() for subcase in case) for order in fused.ORDERS}
        assert len(set(answers.values())) == len(fused.ORDERS)


def test_the_rounding_cases_tell_one_rounding_from_two() -> None:
    for case in cases_of(DOWN, "fma/rounded-once"):
        for name in ("product and sum rounded apart", "a sum in float64, rounded twice"):
            wrong = [answer(subcase, "sequential", **trellis_row.MISTAKES[name]) for subcase in case]
            right = [answer(subcase, "sequential") for subcase in case]
            assert all((one != other).any() for one, other in zip(wrong, right, strict=True)), name


def test_the_ties_are_ties() -> None:
    kind = kinds()["trellis_decode", "variant/ties"]
    (subcase, *_) = kind.subcases(next(iter(kind.listed())))
    weights = tensors(subcase)["scales"].array * trellis_values.FIRST_CODE
    assert (bits_of(weights) & np.uint32(0xFFFF) == 0x8000).sum() > 40


def test_denormal_cases_reach_denormals() -> None:
    for subcase in cases_of(DOWN, "denormal/sums")[0]:
        given = {name: tensor.array for name, tensor in tensors(subcase).items()}
        packed = Packed(given["codes"], int(subcase.arguments["k"]), 12)  # type: ignore[arg-type]
        kept, flushed = (trellis_row.partials(given["x"], packed, given["scales"], flush) for flush in (False, True))
        assert (kept != flushed).any()
    half = [answer(subcase, "sequential").astype(np.float16) for subcase in cases_of(DOWN, "denormal/half")[0]]
    assert any(is_denormal(values).any() for values in half)


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("2", Layout(2)),
        ("3-pairs", Layout(3, True)),
        ("3-pairs-plain", Layout(3, True, "plain")),
        ("4-balanced", Layout(4, False, "balanced")),
    ],
)
def test_layouts_are_read_from_their_names(name: str, layout: Layout) -> None:
    assert Layout.named(name) == layout


def test_metamorphic_relations_hold_for_the_oracle() -> None:
    """Blocks permuted permute columns, blocks behind change nothing, and powers of two scale exactly."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**32, (131, 4 * 16), dtype=np.uint64).astype(np.uint32)
    x, scales = rng.standard_normal((1, 131)).astype(np.float32), rng.uniform(0.01, 0.02, 131).astype(np.float32)
    f32 = np.dtype(np.float32)
    for order in fused.ORDERS:
        row = trellis_row.down_row(x, Packed(words, 2, 12), scales, f32, order)
        turned = words.reshape(131, 4, 16)[:, [2, 0, 3, 1]].reshape(131, -1)
        moved = trellis_row.down_row(x, Packed(turned, 2, 12), scales, f32, order)
        assert np.array_equal(moved.reshape(4, 256), row.reshape(4, 256)[[2, 0, 3, 1]])
        fewer = trellis_row.down_row(x, Packed(words[:, :32].copy(), 2, 12), scales, f32, order)
        assert np.array_equal(fewer, row[:, :512])
        larger = trellis_row.down_row(x * 8, Packed(words, 2, 12), scales / 32, f32, order)
        assert np.array_equal(larger * 4, row)


@pytest.mark.parametrize(("k", "rows", "cols"), [(2, 1536, 256), (3, 384, 1024), (4, 1536, 256)])
def test_recorded_codes_are_a_models_weights(k: int, rows: int, cols: int) -> None:
    """Rows as bell-shaped as the codebook, of scales that vary: nothing that random words or a constant would be."""
    words, scales = trellis_real.coded(k)
    assert (words.shape, scales.shape, scales.dtype) == ((rows, cols * k // 32), (rows,), np.float16)
    states = states_of(words.reshape(-1, 8 * k), k, 12).reshape(rows, -1)
    values = lut(12)[states]
    assert abs(np.median(np.sqrt((values**2).mean(axis=1))) - 1) < 0.1
    assert scales.min() > 0
    assert np.std(scales.astype(np.float32)) > 0.05 * np.mean(scales.astype(np.float32))
    assert len(np.unique(states)) > 4000
    tokens = trellis_real.activations(k, "float32")
    assert tokens.shape == (6, rows)
    assert len(np.unique(tokens, axis=0)) == 6


def test_a_new_recording_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    try:
        import transformers  # noqa: F401
        from record_real_input import model_folder

        folder = model_folder()
    except (RuntimeError, ImportError) as error:
        pytest.skip(f"NOT RUN: a new recording of the trellis weights, python ci/record_trellis.py --check ({error})")
    import record_trellis

    assert record_trellis.differences(folder) == []
