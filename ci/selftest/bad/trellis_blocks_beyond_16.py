"""Blocks beyond the sixteenth are left at zero."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def fold(self, partials):
        sums = super().fold(partials)
        sums[4096:] = 0
        return sums


globals().update(operations(Faulty()))
