"""Stored weights are made with the rounded reciprocal."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def values(self, y, form):
        return super().values(y, "unrefined" if form in ("precise", "refined") else form)


globals().update(operations(Faulty()))
