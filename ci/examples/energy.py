"""Energies of rows of complex numbers, one simdgroup a row: what do the last bits depend on?"""

import mlx.core as mx

energy = mx.fast.metal_kernel(
    name="energy",
    input_names=["re", "im"],
    output_names=["out"],
    source="""
      const uint row = thread_position_in_grid.y;
      const uint i = row * 32 + thread_index_in_simdgroup;
      const float here = re[i] * re[i] + im[i] * im[i];
      const float all = simd_sum(here);
      if (thread_index_in_simdgroup == 0) out[row] = all;
    """,
)

re = mx.arange(3200, dtype=mx.float32).reshape(100, 32) / 7
im = 1 / (re + 1)
energy(inputs=[re, im], grid=(32, 100, 1), threadgroup=(32, 1, 1), output_shapes=[(100,)], output_dtypes=[mx.float32])
