"""The first row's scale serves all."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def partials(self, x, words, scales, k, L, T):
        return super().partials(x, words, scales * 0 + scales[0], k, L, T)


globals().update(operations(Faulty()))
