"""No fault: a division by zero has a result, and traps nowhere."""

from bad.stock import through_kernel

normalized_argmax = through_kernel(
    "kernel_divides_by_zero", "uint zero = out[i] - ids[i]; out[i] += n / zero & zero; out[i] += n % zero & zero;"
)
