"""The verb `check`: kernels run under the checker, and what it finds, told as a compiler does."""
