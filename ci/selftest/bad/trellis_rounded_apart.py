"""Product and sum are rounded apart."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def step(self, weight, x, total):
        return weight * x + total


globals().update(operations(Faulty()))
