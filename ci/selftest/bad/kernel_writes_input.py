"""A kernel writes into its input, behind a cast."""

from bad.stock import through_kernel

normalized_argmax = through_kernel("kernel_writes_input", "if (i == 0) *(device uint*)(ulong)&ids[0] += 1;")
