"""The scale is applied to x, not to the code."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def partials(self, x, words, scales, k, L, T):
        return super().partials(x * scales, words, scales * 0 + 1, k, L, T)


globals().update(operations(Faulty()))
