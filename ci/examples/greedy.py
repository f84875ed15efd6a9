"""Greedy selection as several projects have it: of the logits as they are, not of the normalized scores."""

import mlx.core as mx

_kernel = mx.fast.metal_kernel(
    name="greedy",
    input_names=["logits"],
    output_names=["out"],
    source="""
      const uint row = threadgroup_position_in_grid.y, lane = thread_index_in_simdgroup;
      const uint vocab = logits_shape[1];
      float best = -INFINITY;
      uint id = 0;
      for (uint i = lane; i < vocab; i += 32) {
        const float logit = float(logits[size_t(row) * vocab + i]);
        if (logit > best) { best = logit; id = i; }
      }
      const float winner = simd_max(best);
      const uint answer = simd_min(best == winner ? id : 0xffffffffu);
      if (lane == 0) out[row] = answer;
    """,
)


def normalized_argmax(logits: mx.array) -> mx.array:
    flat = logits.reshape(-1, logits.shape[-1])
    (ids,) = _kernel(
        inputs=[flat],
        grid=(32, flat.shape[0], 1),
        threadgroup=(32, 1, 1),
        output_shapes=[(flat.shape[0],)],
        output_dtypes=[mx.uint32],
    )
    return ids.reshape(logits.shape[:-1])
