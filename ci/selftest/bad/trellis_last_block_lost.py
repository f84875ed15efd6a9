"""The last of an odd number of blocks is left at zero."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def fold(self, partials):
        sums = super().fold(partials)
        if len(sums) // 256 % 2:
            sums[-256:] = 0
        return sums


globals().update(operations(Faulty()))
