"""A kernel writes one element past the end of its output."""

from bad.stock import through_kernel

normalized_argmax = through_kernel("kernel_writes_past_end", "if (i == 0) out[n] = 0;")
