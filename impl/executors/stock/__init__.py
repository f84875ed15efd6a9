"""MLX's stock kernels: which one for which shape, and how MLX launches it."""
