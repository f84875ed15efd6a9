"""Sums of rows, two simdgroups a row. The numbers come out right, and one barrier is wrong."""

import mlx.core as mx

row_sum = mx.fast.metal_kernel(
    name="row_sum",
    input_names=["rows"],
    output_names=["sums"],
    source="""
      threadgroup float part[2];
      const uint row = threadgroup_position_in_grid.y;
      const uint lane = thread_position_in_threadgroup.x;
      const uint length = rows_shape[1];
      float sum = 0;
      for (uint i = lane; i < length; i += 64) sum += rows[row * length + i];
      sum = simd_sum(sum);
      if (lane % 32 == 0) part[lane / 32] = sum;
      threadgroup_barrier(mem_flags::mem_device);
      if (lane == 0) sums[row] = part[0] + part[1];
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
