"""The fold's SIMD groups read each other's sums before they are written: a barrier is missing."""

import mlx.core as mx

SOURCE = """
    threadgroup float lanes[4][32];
    const uint lane = thread_position_in_threadgroup.x % 32;
    const uint group = thread_position_in_threadgroup.x / 32;
    const uint column = threadgroup_position_in_grid.x;
    const uint columns = partial_shape[2];
    lanes[group][lane] = partial[(32 * group + lane) * columns + column];
    if (group == 3) {
        float total = 0.0f;
        for (uint k = 0; k < 4; ++k) { total = lanes[k][lane] + total; }
        total = simd_sum(total);
        if (lane == 0) { out[column] = T(total); }
    }
"""
KERNEL = mx.fast.metal_kernel("fold_without_barrier", ["partial"], ["out"], SOURCE)


def trellis_fold(partial, output_dtype):
    columns = partial.shape[2]
    (out,) = KERNEL(
        inputs=[partial],
        template=[("T", getattr(mx, output_dtype))],
        grid=(128 * columns, 1, 1),
        threadgroup=(128, 1, 1),
        output_shapes=[(1, columns)],
        output_dtypes=[getattr(mx, output_dtype)],
    )
    return out
