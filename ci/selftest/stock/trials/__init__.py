"""Launches of MLX's stock kernels, each with the CPU operation of MLX that it is held against."""
