"""The trellis operations by NumPy, in steps that a planted fault replaces one at a time."""

from functools import cache

import ml_dtypes
import mlx.core as mx
import numpy as np

from mlx_assay.impl import executors
from mlx_assay.oracles import fused, host_lut

FLOATS = {"float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
FORMS = ("precise", "refined", "unrefined", "integer", "bits", "state", "lut-threadgroup", "lut-device")


class Trellis:
    """Sound as it stands."""

    splits = 128
    late = False

    def states(self, words, k, L, T):
        """[rows, cols]: each position's symbol, above it those of the positions before it."""
        symbols, state = self.symbols(np.ascontiguousarray(words), k, T), 0
        for back in range(-(-L // k)):
            state = state | self.before(symbols, back) << back * k
        return (state & (1 << L) - 1).reshape(len(words), -1)

    def symbols(self, words, k, T):
        bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little")
        digits = bits.reshape(len(words), -1, T, k)[:, :, ::-1]
        return (digits << np.arange(k, dtype=np.uint8)).sum(-1, dtype=np.int32)

    def before(self, symbols, back):
        return np.roll(symbols, back, axis=-1)

    def words(self, codes, pairs):
        return codes.transpose(1, 0, 2).reshape(codes.shape[1], -1) if pairs else codes

    def hashed(self, L):
        return np.arange(1 << L, dtype=np.uint32) * np.uint32(34038481) + np.uint32(76625530)

    def sums(self, L):
        return (self.hashed(L)[:, None] >> np.arange(0, 32, 8, dtype=np.uint32) & np.uint32(255)).sum(1) - 510.0

    def values(self, y, form):
        y = y.astype(np.float32)
        if form in ("integer", "state"):
            return y
        if form in ("unrefined", "bits"):
            return y * host_lut.RECIPROCAL
        return y / host_lut.DIVISOR

    @cache  # noqa: B019
    def codes(self, L, form="unrefined"):
        return self.values(np.arange(1 << L) if form == "state" else self.sums(L), form)

    def weight(self, code, scale):
        return fused.multiplied(code, scale, self.flushes())

    def step(self, weight, x, total):
        return fused.fma(weight, x, total, self.flushes())

    @cache  # noqa: B019
    def executor(self):
        return executors.describe(executors.current())

    def flushes(self):
        return self.executor()["f32_denormals"] == "flushed"

    def order(self):
        return self.executor()["simd_sum"]

    def plain(self, array):
        values = np.array(array.astype(mx.float32))
        return fused.flushed(values) if self.flushes() else values

    def rows_of(self, count):
        """Each split's rows in turn: for each step the splits, and their rows."""
        each = -(-count // self.splits)
        return [(np.arange(len(range(first, count, each))), np.arange(first, count, each)) for first in range(each)]

    def partials(self, x, words, scales, k, L, T):
        if self.late:
            x, scales = fused.multiplied(x, scales, self.flushes()), np.ones_like(scales)
        table, total = self.codes(L), np.zeros((128, words.shape[1] * 32 // k), np.float32)
        for splits, rows in self.rows_of(len(words)):
            weight = self.weight(table[self.states(words[rows], k, L, T)], scales[rows, None])
            total[splits] = self.step(weight, np.broadcast_to(x[0, rows, None], weight.shape), total[splits])
        return total

    def fold(self, partials):
        partials = fused.flushed(partials) if self.flushes() else partials
        lanes = np.zeros_like(partials[:32])
        for first in range(0, 128, 32):
            lanes = fused.added(partials[first : first + 32], lanes, self.flushes())
        return fused.simd_sum(lanes, self.order(), self.flushes())

    def rounded(self, values, dtype):
        return mx.array(values[None]).astype(getattr(mx, dtype))

    def row(self, x, codes, scales, k, L, T, axis, rows, cols, interleave, output, layouts):
        self.refuse(codes, scales, k, L, T, axis, rows, cols, interleave)
        expect(axis == 0 and T == 256 and L <= 12 and (k, interleave) in layouts, "a layout")
        expect(floats(scales, (rows,)) and floats(x, (1, rows)), "x")
        expect(output is None or output in FLOATS, "an output")
        words = self.words(np.array(codes), interleave)
        partials = self.partials(self.plain(x), words, self.plain(scales), k, L, T)
        return self.rounded(self.fold(partials), output or name(x))

    def down_codebook_row(self, *call):
        return self.row(*call, ((2, None), (4, None)))

    def down_k3_interleaved_codebook_row(self, *call):
        return self.row(*call, ((3, 2),))

    def scatter_row(self, *call):
        expect(call[-1] in (None, "plain", "balanced"), "a kernel")
        return self.row(*call[:-1], ((2, None), (3, None), (3, 2), (4, None)))

    def factored_row(self, *call):
        """Scales go to x: codes times scales would overflow where the sum does not."""
        self.late = True
        try:
            return self.row(*call, ((2, None), (3, 2), (4, None)))
        finally:
            self.late = False

    def trellis_decode(self, codes, scales, k, L, T, axis, rows, cols, interleave, variant, form):
        self.refuse(codes, scales, k, L, T, axis, rows, cols, interleave)
        expect(whole(variant) and 0 <= variant < 14 and (form is None or form in FORMS), "a variant or a form")
        expect(form != "lut-threadgroup" or L <= 12, "a table")
        usual = (
            ("precise", "refined", "precise", "precise", "state", "refined")[variant] if variant < 6 else "unrefined"
        )
        states = self.states(self.words(np.array(codes), interleave), k, L, T)
        decoded = self.codes(L, form or usual)[states]
        if scales is None:
            return mx.array(decoded)
        weights = self.weight(decoded, self.plain(scales)[:, None])
        return mx.array(weights.astype(FLOATS["bfloat16"]).astype(np.float32) if variant < 4 else weights)

    def trellis_code_values(self, sums, form):
        expect(sums.ndim == 1 and sums.size > 0 and sums.dtype == mx.int32 and form in FORMS[:5], "sums")
        return mx.array(self.values(np.array(sums), form))

    def trellis_fold(self, partial, output):
        expect(partial.ndim == 3 and partial.shape[:2] == (1, 128) and partial.dtype == mx.float32, "partials")
        expect(output in FLOATS, "an output")
        return self.rounded(self.fold(np.array(partial)[0]), output)

    def refuse(self, codes, scales, k, L, T, axis, rows, cols, interleave):
        expect(all(map(whole, (k, L, T, axis, rows, cols))), "whole numbers")
        expect(k in (2, 3, 4) and k <= L <= 24 and axis in (0, 1) and rows > 0 and cols > 0, "numbers")
        expect(T * k % 32 == 0 and T * k >= L and cols % T == 0, "blocks")
        expect(interleave is None or (interleave, k, T, axis, cols % 512) == (2, 3, 256, 0, 0), "an interleave")
        shape = (cols // 512, rows, 48) if interleave else (rows, cols * k // 32)
        expect(isinstance(codes, mx.array) and codes.shape == shape and codes.dtype == mx.uint32, "codes")
        expect(scales is None or floats(scales, (rows,)), "scales")


def name(array):
    return str(array.dtype).removeprefix("mlx.core.")


def floats(array, shape):
    return isinstance(array, mx.array) and array.shape == shape and name(array) in FLOATS


def whole(number):
    return isinstance(number, int) and not isinstance(number, bool)


def expect(fits, what):
    if not fits:
        raise ValueError(f"Expected {what} that fits")


def operations(trellis):
    """The operations of one of these as a module's functions."""
    names = [entry for entry in dir(trellis) if entry.startswith(("trellis_", "down_", "scatter_", "factored_"))]
    return {entry: getattr(trellis, entry) for entry in names}


globals().update(operations(Trellis()))
