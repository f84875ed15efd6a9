"""MLX's stock kernels: compiled from the headers that MLX ships, and launched as MLX launches them.

`StockLibrary().function(name)` makes one by the name that MLX's dispatch uses. `dispatch`, `reduction` and `product`
take that library, or Apple's compiled one.
"""

from mlx_assay.impl.executors.stock.library import StockLibrary, TextKernel, TextLibrary

__all__ = ["StockLibrary", "TextKernel", "TextLibrary"]
