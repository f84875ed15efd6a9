"""The last row of a split with an odd number of rows is left out."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def rows_of(self, count):
        steps = super().rows_of(count)
        return steps if len(steps) % 2 == 0 or len(steps) == 1 else steps[:-1]


globals().update(operations(Faulty()))
