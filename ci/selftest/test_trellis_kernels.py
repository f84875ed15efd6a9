"""The trellis kernels against the format and the arithmetic written once more, a block as one Python integer."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from mlx_assay import impl
from mlx_assay.impl import executors, trellis
from mlx_assay.impl.executors import choice, fidelity
from mlx_assay.impl.executors.stock import StockLibrary
from mlx_assay.impl.executors.stock.reduction import reduce_columns
from mlx_assay.impl.trellis import Geometry

DTYPES = {mx.float32: np.dtype(np.float32), mx.float16: np.dtype(np.float16), mx.bfloat16: np.dtype(ml_dtypes.bfloat16)}
RECIPROCAL = np.uint32(0x3BDDB447).view(np.float32)
LUT_SHA256 = "e80d1f7d4e0a4a5f67d49a59ae3402c4117ceddf5a034a986c4f6d394a94aa63"
UNREFINED_SHA256 = "666add5c0a9e1d84cc79ad8b9166dd9dd4f51f010b9c3b4253ecf7a70cdaab10"


@pytest.fixture(autouse=True)
def _host() -> Iterator[None]:
    with executors.use("host"):
        yield


def down(k: int, rows: int, cols: int, L: int = 12, interleaved: bool = False) -> Geometry:
    return Geometry(k, L, 256, 0, rows, cols, rows, cols, 2 if interleaved else None)


def random_codes(geometry: Geometry, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 2**32, geometry.code_shape, np.uint32)


def states_of(codes: np.ndarray[Any, Any], g: Geometry) -> np.ndarray[Any, Any]:
    """int [rows, cols]: every block as one integer, a window of which is a state."""
    bits = g.T * g.k
    if g.block_interleave:
        codes = codes.reshape(-1, g.rows, 2, bits // 32).transpose(1, 0, 2, 3)
    out = np.empty((g.rows, g.cols // g.T, g.T), np.int64)
    blocks = np.ascontiguousarray(codes).reshape(g.rows, g.cols // g.T, bits // 32)
    for row, block in np.ndindex(out.shape[:2]):
        number = int.from_bytes(blocks[row, block].astype("<u4").tobytes(), "little")
        number |= number << bits
        out[row, block] = [(number >> (g.T - 1 - t) * g.k) & ((1 << g.L) - 1) for t in range(g.T)]
    return out.reshape(g.rows, g.cols)


@functools.cache
def sums(L: int) -> np.ndarray[Any, Any]:
    """int [2^L]: the byte sums of 1MAD."""
    mixed = [(s * 34038481 + 76625530) % 2**32 for s in range(1 << L)]
    return np.array([sum(x.to_bytes(4, "little")) - 510 for x in mixed])


def unrefined(L: int) -> np.ndarray[Any, Any]:
    return sums(L).astype(np.float32) * RECIPROCAL


def fma(a: Any, b: Any, c: Any) -> Any:
    """Correctly rounded float32 a * b + c: the product is exact in float64, the sum is rounded to odd there."""
    product, c = np.float64(a) * np.float64(b), np.float64(c)
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    even = total.view(np.int64) & 1 == 0
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even, odd, total).astype(np.float32)


ORDERS = {
    "ascending-butterfly": lambda t: butterfly(t, (1, 2, 4, 8, 16)),
    "descending-butterfly": lambda t: butterfly(t, (16, 8, 4, 2, 1)),
    "sequential": lambda t: functools.reduce(np.add, t),
    "reverse-sequential": lambda t: functools.reduce(np.add, t[::-1]),
}


def butterfly(lanes: np.ndarray[Any, Any], distances: tuple[int, ...]) -> np.ndarray[Any, Any]:
    for distance in distances:
        lanes = lanes + lanes[np.arange(32) ^ distance]
    return lanes[0]


def column_sum(partial: np.ndarray[Any, Any], order: str = "ascending-butterfly") -> np.ndarray[Any, Any]:
    total = np.float32(0) + partial[:32]
    for start in (32, 64, 96):
        total = partial[start : start + 32] + total
    return ORDERS[order](total)


def partials_of(x: np.ndarray[Any, Any], scales: np.ndarray[Any, Any], codes: np.ndarray[Any, Any], g: Geometry) -> Any:
    weights = unrefined(g.L)[states_of(codes, g)] * scales.astype(np.float32)[:, None]
    each = -(-g.rows // 128)
    partial = np.zeros((128, g.cols), np.float32)
    for row in range(g.rows):
        partial[row // each] = fma(weights[row], x.astype(np.float32)[0, row], partial[row // each])
    return partial


def row_of(x: np.ndarray[Any, Any], scales: np.ndarray[Any, Any], codes: np.ndarray[Any, Any], g: Geometry) -> Any:
    return column_sum(partials_of(x, scales, codes, g))


def to_mlx(array: np.ndarray[Any, Any]) -> mx.array:
    if array.dtype == DTYPES[mx.bfloat16]:
        return mx.array(array.view(np.uint16)).view(mx.bfloat16)
    return mx.array(array)


def bits_of(array: mx.array) -> np.ndarray[Any, Any]:
    return np.array(array.view(mx.uint16 if array.dtype != mx.float32 else mx.uint32))


def operands(g: Geometry, x_type: Any, scale_type: Any, seed: int = 1) -> tuple[np.ndarray[Any, Any], ...]:
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((1, g.rows)).astype(DTYPES[x_type])
    scales = (draw.standard_normal(g.rows) * 0.0131).astype(DTYPES[scale_type])
    return x, random_codes(g, seed), scales


def call(row: Any, x: Any, codes: Any, scales: Any, g: Geometry, **options: Any) -> mx.array:
    return row(to_mlx(x), mx.array(codes), to_mlx(scales), g, **options)


def test_codebook_digests() -> None:
    assert hashlib.sha256(trellis.lut_1mad(12).astype("<f4").tobytes()).hexdigest() == LUT_SHA256
    assert hashlib.sha256(unrefined(12).astype("<f4").tobytes()).hexdigest() == UNREFINED_SHA256
    for L in (1, 4, 8, 12, 16):
        assert np.array_equal(trellis.lut_1mad(L), (sums(L) / 147.800537109375).astype(np.float32))
    trellis.lut_for(9)[0] = 7
    assert np.array_equal(np.array(trellis.lut_for(9)), trellis.lut_1mad(9))
    with pytest.raises(ValueError, match="25"):
        trellis.lut_1mad(25)


def test_every_sum_in_every_form() -> None:
    y = np.arange(-510, 511, dtype=np.int32)
    exact = (y / 147.800537109375).astype(np.float32)
    product = y.astype(np.float32) * RECIPROCAL
    expected = {"precise": exact, "refined": exact, "unrefined": product, "bits": product, "integer": np.float32(y)}
    for form, values in expected.items():
        got = np.array(trellis.code_values(mx.array(y), form))
        assert got.tobytes() == values.tobytes(), form
    assert np.count_nonzero(exact != product) == 398


@pytest.mark.parametrize("form", trellis.FORMS)
def test_every_state(form: str) -> None:
    """One tile of blocks whose positions 0 to 255 hold all 4,096 states, one after the other in the bits."""
    g = Geometry(4, 12, 256, 0, 1, 49 * 256, 1, 49 * 256)
    words = np.zeros((4096, 3), np.uint8)
    words[:] = [[s >> 8, s >> 4 & 15, s & 15] for s in range(4096)]
    symbols = np.resize(words.reshape(-1)[:-1], g.cols)
    packed = [sum(int(b) << 4 * (255 - t) for t, b in enumerate(block)) for block in symbols.reshape(-1, 256)]
    codes = np.frombuffer(b"".join(n.to_bytes(128, "little") for n in packed), "<u4").reshape(1, -1)
    states = states_of(codes, g)
    reached = set(states[0].tolist())
    assert len(reached) > 4000
    exact, product = trellis.lut_1mad(12), unrefined(12)
    values = {"unrefined": product, "bits": product, "integer": sums(12), "state": np.arange(4096)}.get(form, exact)
    got = np.array(trellis.decode(mx.array(codes), g, form=form))
    assert got.tobytes() == np.float32(values)[states].tobytes()


GEOMETRIES = [
    Geometry(2, 12, 256, 0, 3, 512, 3, 512),
    Geometry(3, 12, 256, 0, 3, 512, 3, 512),
    Geometry(4, 12, 256, 1, 3, 512, 512, 3),
    Geometry(3, 10, 256, 1, 17, 768, 768, 17),
    Geometry(2, 8, 32, 1, 2, 96, 96, 2),
    Geometry(4, 16, 8, 0, 1, 16, 1, 16),
    Geometry(2, 11, 16, 0, 1, 16, 1, 16),
    Geometry(3, 12, 256, 0, 18, 1024, 18, 1024, 2),
    Geometry(3, 9, 256, 0, 1, 512, 1, 512, 2),
]


@pytest.mark.parametrize("g", GEOMETRIES, ids=str)
def test_decode(g: Geometry) -> None:
    codes = random_codes(g)
    states = states_of(codes, g)
    assert np.array_equal(np.array(trellis.decode(mx.array(codes), g, variant=4)), states.astype(np.float32))
    scales = np.resize(np.float16([0.0131, -1, 0, 127, 3.1e-5]), g.rows)
    exact = trellis.lut_1mad(g.L)[states] * scales.astype(np.float32)[:, None]
    product = unrefined(g.L)[states] * scales.astype(np.float32)[:, None]
    rounded = exact.astype(ml_dtypes.bfloat16).astype(np.float32)
    for variant in (0, 1, 3, 5, 6, 13):
        got = np.array(trellis.decode(mx.array(codes), g, variant, mx.array(scales)))
        assert np.array_equal(got, rounded if variant < 4 else exact if variant == 5 else product), variant
    if g.L <= 12:
        assert np.array_equal(np.array(trellis.decode(mx.array(codes), g, 2, mx.array(scales))), rounded)
    else:
        with pytest.raises(ValueError, match="lut-device"):
            trellis.decode(mx.array(codes), g, 2)


def test_weights_halfway_between_bfloat16_values_round_to_even() -> None:
    """All-zero words hold state 0 alone, and the scales make its product a tie; the last three are NaN and infinity."""
    code = trellis.lut_1mad(12)[0]
    ties = (np.arange(0x3F80, 0x4000, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    scales = (ties / code).astype(np.float32)
    scales = scales[scales * code == ties]
    assert len(scales) > 32
    scales = np.append(scales, np.uint32([0x7FFFFFFF, 0xFF800000, 0x7F7FFFFF]).view(np.float32))
    g = down(2, len(scales), 256)
    got = np.array(trellis.decode(mx.zeros(g.code_shape, mx.uint32), g, 0, mx.array(scales)))[:, 0]
    with np.errstate(over="ignore"):
        expected = (scales * code).astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(got, expected, equal_nan=True)


ROWS = [
    (2, 1, 256, 12, False),
    (4, 2, 256, 12, False),
    (3, 67, 512, 12, True),
    (2, 129, 768, 12, False),
    (4, 256, 1280, 12, False),
    (3, 257, 1536, 12, True),
    (3, 300, 512, 8, True),
    (2, 385, 512, 9, False),
    (4, 640, 256, 10, False),
    (3, 130, 768, 12, False),
]


@pytest.mark.parametrize(("k", "rows", "cols", "L", "interleaved"), ROWS)
def test_rows(k: int, rows: int, cols: int, L: int, interleaved: bool) -> None:
    g = down(k, rows, cols, L, interleaved)
    x, codes, scales = operands(g, mx.float16, mx.float16)
    expected = row_of(x, scales, codes, g)
    for kernel in trellis.KERNELS:
        got = call(trellis.scatter_row, x, codes, scales, g, kernel=kernel, output_dtype=mx.float32)
        assert np.array_equal(bits_of(got)[0], expected.view(np.uint32)), kernel
    if k == 3 and not interleaved:
        return
    row = trellis.down_k3_interleaved_codebook_row if k == 3 else trellis.down_codebook_row
    got = call(row, x, codes, scales, g, output_dtype=mx.float32)
    assert np.array_equal(bits_of(got)[0], expected.view(np.uint32))
    assert np.array_equal(bits_of(call(row, x, codes, scales, g))[0], expected.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("x_type", DTYPES)
@pytest.mark.parametrize("scale_type", DTYPES)
def test_dtypes(x_type: Any, scale_type: Any) -> None:
    g = down(4, 131, 256)
    x, codes, scales = operands(g, x_type, scale_type)
    expected = row_of(x, scales, codes, g)
    for row in (trellis.down_codebook_row, trellis.scatter_row):
        got = call(row, x, codes, scales, g)
        assert got.dtype == x_type
        assert bits_of(got)[0].tobytes() == expected.astype(DTYPES[x_type]).tobytes()


def test_every_order_of_the_sum() -> None:
    g = down(2, 513, 256)
    x, codes, scales = operands(g, mx.float32, mx.float32)
    partials, seen = partials_of(x, scales, codes, g), set()
    for order in fidelity.SWITCHES["simd_sum"]:
        expected = column_sum(partials, order)
        seen.add(expected.tobytes())
        for contraction in fidelity.SWITCHES["contraction"]:
            with fidelity.switched(simd_sum=order, contraction=contraction):
                for row in (trellis.down_codebook_row, trellis.scatter_row):
                    got = call(row, x, codes, scales, g)
                    assert np.array_equal(bits_of(got)[0], expected.view(np.uint32)), (order, contraction)
    assert len(seen) == 4


@pytest.mark.parametrize(("k", "interleaved"), [(2, False), (3, True), (4, False)])
def test_factored_row_within_its_bound(k: int, interleaved: bool) -> None:
    g = down(k, 300, 512, interleaved=interleaved)
    x, codes, scales = operands(g, mx.float32, mx.float32)
    terms = sums(12)[states_of(codes, g)] / 147.800537109375 * scales.astype(np.float64)[:, None] * x.T
    bound = (3 + 13) * 2.0**-24 * np.abs(terms).sum(axis=0)
    codebook = trellis.down_k3_interleaved_codebook_row if k == 3 else trellis.down_codebook_row
    factored = np.array(call(trellis.factored_row, x, codes, scales, g))[0]
    plain = np.array(call(codebook, x, codes, scales, g))[0]
    for got in (factored, plain):
        assert not (np.abs(got - terms.sum(axis=0)) > bound).any()
    assert (factored != plain).any()


def test_column_sum() -> None:
    partial = np.random.default_rng(3).standard_normal((128, 67)).astype(np.float32)
    got = trellis.column_sum(mx.array(partial))
    assert np.array_equal(bits_of(got)[0], column_sum(partial).view(np.uint32))
    assert np.array(trellis.column_sum(mx.array(partial), mx.bfloat16).astype(mx.float32)).shape == (1, 67)
    with pytest.raises(ValueError, match="64"):
        trellis.column_sum(mx.zeros((64, 32)))


@pytest.mark.parametrize("columns", [256, 5120])
def test_the_fold_is_the_column_sum_of_mlx(columns: int) -> None:
    """col_reduce_looped compiled from MLX's own header, at [1, 128, C] over its middle axis, in every order."""
    partial = np.random.default_rng(columns).standard_normal((128, columns)).astype(np.float32)
    partial[64:] -= partial[:64]
    partial[:, 0], partial[:, 1] = -0.0, np.inf
    library = StockLibrary()
    for order in fidelity.SWITCHES["simd_sum"]:
        with fidelity.switched(simd_sum=order):
            want = reduce_columns(library, partial[None])
            got = np.array(trellis.column_sum(mx.array(partial)))
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), order


def test_strided_operands() -> None:
    g = down(2, 129, 512)
    x, codes, scales = operands(g, mx.float32, mx.float32)
    expected = bits_of(call(trellis.down_codebook_row, x, codes, scales, g))
    wide_x, wide_codes = mx.array(np.repeat(x, 2, axis=1)), mx.array(np.repeat(codes, 2, axis=0))
    wide_scales = mx.array(np.repeat(scales, 3))
    for row in (trellis.down_codebook_row, trellis.scatter_row):
        got = row(wide_x[:, ::2], wide_codes[::2], wide_scales[1::3], g)
        assert np.array_equal(bits_of(got), expected)


def test_nonfinite_values_pass_through() -> None:
    g = down(4, 5, 256)
    x, codes, scales = operands(g, mx.float32, mx.float32)
    x[0, 1], scales[3] = np.inf, np.nan
    for row in (trellis.down_codebook_row, trellis.scatter_row):
        assert np.isnan(np.array(call(row, x, codes, scales, g))).all()
    scales[3] = 1
    got = np.array(call(trellis.down_codebook_row, x, codes, scales, g))[0]
    signs = sums(12)[states_of(codes, g)[1]] * np.sign(scales[1])
    assert np.array_equal(got[signs != 0], np.where(signs > 0, np.inf, -np.inf)[signs != 0])


def test_the_byte_offset_window_is_right_only_where_loads_are_aligned() -> None:
    """The lane's first window alone has two zero bits below it."""
    g = down(2, 3, 256)
    x, codes, scales = operands(g, mx.float32, mx.float32)
    portable = bits_of(call(trellis.down_codebook_row, x, codes, scales, g))
    offset = bits_of(call(trellis.down_codebook_row, x, codes, scales, g, window="byte-offset"))
    assert np.array_equal(portable, offset) == trellis.probe_misaligned_window()
    assert np.array_equal(portable[0, 15::16], offset[0, 15::16])
    clear = codes & 0
    assert np.array_equal(
        bits_of(call(trellis.down_codebook_row, x, clear, scales, g)),
        bits_of(call(trellis.down_codebook_row, x, clear, scales, g, window="byte-offset")),
    )


G2, G3 = down(2, 4, 256), down(3, 4, 512, interleaved=True)


@pytest.mark.parametrize(
    ("error", "message", "change"),
    [
        (ValueError, "one activation row", {"x": mx.zeros((2, 4))}),
        (ValueError, "one activation row", {"x": mx.zeros(4)}),
        (ValueError, "x of float32, float16 or bfloat16 but got mlx.core.int32", {"x": mx.zeros((1, 4), mx.int32)}),
        (TypeError, "x as an mx.array", {"x": np.zeros((1, 4), np.float32)}),
        (ValueError, "codes of uint32", {"codes": mx.zeros((4, 16), mx.int32)}),
        (ValueError, r"codes of shape \(4, 16\)", {"codes": mx.zeros((4, 15), mx.uint32)}),
        (ValueError, "one a stored row", {"scales": mx.zeros(5)}),
        (ValueError, "one a stored row", {"scales": mx.zeros((4, 1))}),
        (ValueError, "scales of float32", {"scales": mx.zeros(4, mx.uint32)}),
        (ValueError, "axis 1", {"geometry": Geometry(2, 12, 256, 1, 4, 256, 256, 4)}),
        (ValueError, "T 128", {"geometry": Geometry(2, 12, 128, 0, 4, 256, 4, 256)}),
        (ValueError, "L 13", {"geometry": down(2, 4, 256, 13)}),
        (ValueError, "row-major codes with k 3", {"geometry": down(3, 4, 512)}),
        (ValueError, "block-interleaved codes with k 3", {"geometry": G3}),
        (ValueError, "window of portable", {"window": "aligned"}),
        (ValueError, "output_dtype", {"output_dtype": mx.int32}),
        (TypeError, "an mx.Dtype but got 'float32' .type str.", {"output_dtype": "float32"}),
    ],
)
def test_guards(error: type[Exception], message: str, change: dict[str, Any]) -> None:
    arguments = {"x": mx.zeros((1, 4)), "codes": mx.zeros((4, 16), mx.uint32), "scales": mx.zeros(4), "geometry": G2}
    assert trellis.down_codebook_row(**arguments).shape == (1, 256)
    with pytest.raises(error, match=message):
        trellis.down_codebook_row(**{**arguments, **change})


def test_the_other_guards() -> None:
    x, words, scales = mx.zeros((1, 4)), mx.zeros((4, 16), mx.uint32), mx.zeros(4)
    with pytest.raises(ValueError, match="row-major codes with k 2"):
        trellis.down_k3_interleaved_codebook_row(x, words, scales, G2)
    with pytest.raises(ValueError, match="row-major codes with k 3"):
        trellis.factored_row(x, words, scales, down(3, 4, 512))
    with pytest.raises(ValueError, match="kernel of plain"):
        trellis.scatter_row(x, words, scales, G2, kernel="codebook")
    for variant in (-1, 14, True):
        with pytest.raises(ValueError, match="variant 0 to 13"):
            trellis.decode(words, G2, variant)
    with pytest.raises(ValueError, match="forms"):
        trellis.decode(words, G2, form="exact")
    with pytest.raises(ValueError, match="'state'"):
        trellis.code_values(mx.zeros(4, mx.int32), "state")
    with pytest.raises(RuntimeError, match=r"outside of mx\.compile"):
        mx.compile(lambda a: trellis.decode(a, G2))(words)


def test_decoder_variant() -> None:
    assert [trellis.decoder_variant(v) for v in range(15)] == [0, 1, 2, 3, 4, 5, 6, *[6] * 7, 14]


@pytest.mark.parametrize(("k", "interleaved"), [(2, False), (3, True), (4, False)])
def test_every_block_count_in_every_schedule(k: int, interleaved: bool) -> None:
    """Three kernels with three maps from lanes to columns agree, in both orders of threads and on any memory."""
    for blocks in range(2 if interleaved else 1, 21, 2 if interleaved else 1):
        g = down(k, 130, blocks * 256, interleaved=interleaved)
        x, codes, scales = operands(g, mx.float32, mx.float32)
        codebook = trellis.down_k3_interleaved_codebook_row if k == 3 else trellis.down_codebook_row
        expected = bits_of(call(trellis.scatter_row, x, codes, scales, g, kernel="plain"))
        assert np.count_nonzero(expected) == expected.size
        for schedule, poison in (("in-order", 0), ("reverse", 0x7FC0_1234)):
            with choice.schedule(schedule), executors.poison(poison):
                balanced = call(trellis.scatter_row, x, codes, scales, g, kernel="balanced")
                assert np.array_equal(bits_of(balanced), expected)
                assert np.array_equal(bits_of(call(codebook, x, codes, scales, g)), expected)


@pytest.mark.parametrize("given", [mx.float16, "float64", "array"])
def test_operations_take_a_dtype_by_its_name(given: Any) -> None:
    arrays = mx.zeros((1, 4)), mx.zeros((4, 16), mx.uint32), mx.zeros(4)
    with pytest.raises(ValueError, match=r"Expected output_dtype as a name, 'float32', 'float16', 'bfloat16', or None"):
        impl.down_codebook_row(*arrays, 2, 12, 256, 0, 4, 256, None, given)
