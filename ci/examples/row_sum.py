"""A sum over rows with two simdgroups a row, and a race: the partial sums are read before they are all written."""

import mlx.core as mx

row_sum = mx.fast.metal_kernel(
    name="row_sum",
    input_names=["rows"],
    output_names=["sums"],
    source="""
      threadgroup float partial[2];
      const uint row = threadgroup_position_in_grid.y, lane = thread_position_in_threadgroup.x;
      const uint length = rows_shape[1];
      float sum = 0;
      for (uint i = lane; i < length; i += 64) sum += rows[row * length + i];
      sum = simd_sum(sum);
      if (thread_index_in_simdgroup == 0) partial[simdgroup_index_in_threadgroup] = sum;
      if (lane == 0) sums[row] = partial[0] + partial[1];
    """,
)

rows = mx.arange(300, dtype=mx.float32).reshape(3, 100)
(sums,) = row_sum(
    inputs=[rows],
    grid=(64, rows.shape[0], 1),
    threadgroup=(64, 1, 1),
    output_shapes=[(rows.shape[0],)],
    output_dtypes=[mx.float32],
)
print("sums:", sums.tolist())
