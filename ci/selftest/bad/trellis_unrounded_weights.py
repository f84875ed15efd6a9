"""Stored weights are not rounded to bfloat16."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def trellis_decode(self, *call):
        *others, variant, form = call
        return super().trellis_decode(*others, 5 if variant < 4 else variant, form)


globals().update(operations(Faulty()))
