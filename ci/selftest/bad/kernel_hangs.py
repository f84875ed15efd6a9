"""A kernel loops without end."""

from bad.stock import through_kernel

normalized_argmax = through_kernel("kernel_hangs", "volatile uint go = 1; while (go) {}")
