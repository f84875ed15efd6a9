"""A SIMD group is added from the farthest lane."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def order(self):
        return "descending-butterfly"


globals().update(operations(Faulty()))
