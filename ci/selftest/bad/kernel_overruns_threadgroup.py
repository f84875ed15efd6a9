"""A kernel writes beyond its threadgroup memory."""

from bad.stock import through_kernel

normalized_argmax = through_kernel(
    "kernel_overruns_threadgroup", "threadgroup uint s[4]; s[i + 4] = n; if (s[0] == 1) out[i] = 0;"
)
