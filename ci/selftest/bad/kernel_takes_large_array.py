"""A kernel takes more private memory than a thread has, in two functions that have enough for one."""

from bad.stock import through_kernel

FILLED = "uint big[40000]; for (uint j = 0; j < 40000; j++) big[j] = j + n;"
normalized_argmax = through_kernel(
    "kernel_takes_large_array",
    f"{FILLED} out[i] += big[n * 77 + i] == large(n, i);",
    f"__attribute__((noinline)) static uint large(uint n, uint i) {{ {FILLED} return big[n + i] == 0; }}",
)
