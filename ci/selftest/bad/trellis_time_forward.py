"""Positions are taken from the block's first bit upward."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def symbols(self, words, k, T):
        return super().symbols(words, k, T)[..., ::-1]


globals().update(operations(Faulty()))
