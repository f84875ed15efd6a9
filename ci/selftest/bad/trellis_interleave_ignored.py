"""Interleaved codes are read row by row."""

from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def words(self, codes, pairs):
        return codes.reshape(codes.shape[1], -1) if pairs else codes


globals().update(operations(Faulty()))
