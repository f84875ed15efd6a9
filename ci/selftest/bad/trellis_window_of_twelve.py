"""The window has twelve bits, whatever the states have."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def states(self, words, k, L, T):
        return super().states(words, k, 12, T) % (1 << L) if L < 12 else super().states(words, k, L, T) // 2 * 2


globals().update(operations(Faulty()))
