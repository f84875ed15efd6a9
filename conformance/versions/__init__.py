"""The verb `versions`: what MLX's own operations answer in several of its releases, and where the answers drift."""
