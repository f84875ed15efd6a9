"""A kernel stores in a loop without end, which C++ lets a compiler leave out."""

from bad.stock import through_kernel

normalized_argmax = through_kernel("kernel_stores_forever", "while (true) { out[0] = 0; }")
