"""The rows of a split are added from the last to the first."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def rows_of(self, count):
        return super().rows_of(count)[::-1]


globals().update(operations(Faulty()))
