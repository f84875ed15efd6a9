"""Undefined behaviour of kernels, found while they run."""
