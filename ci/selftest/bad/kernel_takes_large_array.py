"""A kernel takes more private memory than a thread has."""

from bad.stock import through_kernel

normalized_argmax = through_kernel(
    "kernel_takes_large_array",
    "uint big[200000]; for (uint j = 0; j < 200000; j++) big[j] = j + n; out[i] += big[n * 77 + i] == 0;",
)
