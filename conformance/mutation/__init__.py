"""Faults planted in kernels one at a time, and who notices."""
