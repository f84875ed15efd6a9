"""A kernel that writes every element but those of the last thread, which keep what the memory held."""

import mlx.core as mx
from bad.stock import scores

KERNEL = mx.fast.metal_kernel(
    name="unwritten_output",
    input_names=["ids", "count"],
    output_names=["out"],
    source="uint i = thread_position_in_grid.x; if (i + 1 < uint(count)) { out[i] = ids[i]; }",
)


def normalized_argmax(logits):
    ids = mx.argmax(scores(logits), axis=-1)
    (out,) = KERNEL(
        inputs=[ids.reshape(-1), mx.array(ids.size)],
        grid=(ids.size, 1, 1),
        threadgroup=(32, 1, 1),
        output_shapes=[(ids.size,)],
        output_dtypes=[mx.uint32],
    )
    return out.reshape(ids.shape)
