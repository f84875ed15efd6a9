"""A kernel writes one element before the start of its output."""

from bad.stock import through_kernel

normalized_argmax = through_kernel("kernel_writes_before_start", "if (i == 0) out[int(i) - 1] = 0;")
