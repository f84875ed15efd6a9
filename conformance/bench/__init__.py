"""The benchmark of an implementation: against stock MLX, peers and what the memory allows, and hard to fool."""
