"""There are 64 splits."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    splits = 64


globals().update(operations(Faulty()))
