"""Threads beyond the last column return before they have filled their part of the threadgroup's table."""

import mlx.core as mx
from bad.trellis_stock import Trellis, operations

SOURCE = """
    threadgroup float table[4096];
    const uint column = thread_position_in_grid.x;
    const uint row = thread_position_in_grid.y;
    const uint width = 8 * K;
    const uint columns = codes_shape[1] * 32 / K;
    if (column >= columns) { return; }
    for (uint i = thread_position_in_threadgroup.x; i < 4096; i += 512) {
        const uint x = i * 34038481u + 76625530u;
        const int y = int((x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24)) - 510;
        table[i] = float(y) * (1.0f / 147.800537109375f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const device uint* block = codes + row * codes_shape[1] + column / 256 * width;
    const uint bit = (255 - column % 256) * K;
    const ulong pair = ulong(block[bit / 32]) | ulong(block[(bit / 32 + 1) % width]) << 32;
    out[row * columns + column] = table[uint(pair >> (bit % 32)) & 4095] * float(scales[row]);
"""
KERNEL = mx.fast.metal_kernel("returns_early", ["codes", "scales"], ["out"], SOURCE)


class Faulty(Trellis):
    def trellis_decode(self, *call):
        codes, scales, k, L, T, _, rows, cols, interleave, variant, form = call
        usual = scales is not None and L == 12 and T == 256 and interleave is None and variant > 5 and form is None
        if not usual or rows < 8 or codes.shape != (rows, cols * k // 32) or codes.dtype != mx.uint32:
            return super().trellis_decode(*call)
        (out,) = KERNEL(
            inputs=[codes, scales],
            template=[("K", k)],
            grid=(-(-cols // 512) * 512, rows, 1),
            threadgroup=(512, 1, 1),
            output_shapes=[(rows, cols)],
            output_dtypes=[mx.float32],
        )
        return out


globals().update(operations(Faulty()))
