"""A kernel writes where nothing is."""

from bad.stock import through_kernel

normalized_argmax = through_kernel("kernel_writes_wildly", "*(device uint*)(ulong(i) * 4096 + 8) = 1;")
