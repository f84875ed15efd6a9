"""The partials of a lane are added in pairs."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def fold(self, partials):
        partials = partials.copy()
        partials[:32] = (partials[:32] + partials[32:64]) + (partials[64:96] + partials[96:])
        partials[32:] = 0
        return super().fold(partials)


globals().update(operations(Faulty()))
