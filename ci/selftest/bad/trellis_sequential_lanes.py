"""A SIMD group is added one lane after the other."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def order(self):
        return "sequential"


globals().update(operations(Faulty()))
