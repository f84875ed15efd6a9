"""The same kernel text on an NVIDIA GPU: clang makes PTX of it, and MLX's CUDA back end runs that."""
