"""A kernel reads one element past the end of its input."""

from bad.stock import through_kernel

normalized_argmax = through_kernel("kernel_reads_past_end", "if (ids[i + 1] == 0xffffffffu) out[i] = 0;")
