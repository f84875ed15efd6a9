"""Denormals are kept on a unit that flushes them."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def flushes(self):
        return False


globals().update(operations(Faulty()))
