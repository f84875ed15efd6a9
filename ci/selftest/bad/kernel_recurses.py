"""A kernel calls itself without end."""

from bad.stock import through_kernel

normalized_argmax = through_kernel(
    "kernel_recurses",
    "if (down(n)) out[i] = 0;",
    "static uint down(uint n) { volatile uint v[64]; v[n % 64] = n; return down(n + 1) + v[n % 64]; }",
)
