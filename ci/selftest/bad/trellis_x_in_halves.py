"""x is rounded to bfloat16."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def row(self, x, *rest):
        import mlx.core as mx

        return super().row(x if x.dtype != mx.float32 else x.astype(mx.bfloat16).astype(mx.float32), *rest)


globals().update(operations(Faulty()))
