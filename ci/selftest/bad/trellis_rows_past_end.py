"""A split without rows takes those of the last."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def partials(self, x, words, scales, k, L, T):
        total = super().partials(x, words, scales, k, L, T)
        filled = -(-len(words) // -(-len(words) // 128))
        total[filled:] = total[filled - 1]
        return total


globals().update(operations(Faulty()))
