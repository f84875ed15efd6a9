"""Every row operation takes every layout."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def row(self, *call):
        return super().row(*call[:-1], ((2, None), (3, None), (3, 2), (4, None)))


globals().update(operations(Faulty()))
