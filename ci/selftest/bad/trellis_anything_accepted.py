"""No guard refuses anything."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def refuse(self, *call):
        return None


globals().update(operations(Faulty()))
