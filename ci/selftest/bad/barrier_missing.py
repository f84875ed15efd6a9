"""A simdgroup reads what another writes, with no barrier between: one order of running the threads hides it."""

import mlx.core as mx
from bad.stock import scores

KERNEL = mx.fast.metal_kernel(
    name="barrier_missing",
    input_names=["ids"],
    output_names=["out"],
    source="""
        threadgroup uint answer[1];
        const uint tid = thread_position_in_threadgroup.x;
        if (tid == 0) { answer[0] = ids[threadgroup_position_in_grid.x]; }
        if (tid == 32) { out[threadgroup_position_in_grid.x] = answer[0]; }
    """,
)


def normalized_argmax(logits):
    ids = mx.argmax(scores(logits), axis=-1)
    (out,) = KERNEL(
        inputs=[ids.reshape(-1)],
        grid=(64 * ids.size, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(ids.size,)],
        output_dtypes=[mx.uint32],
    )
    return out.reshape(ids.shape)
