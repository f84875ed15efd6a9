"""Faults planted in the kernels that a module of others launches."""
