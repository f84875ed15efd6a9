"""Copies of a launch's arrays that lie as on a GPU, where kernels may ask for the alignment of an address."""

import ctypes
from collections.abc import Sequence

from mlx_assay.impl.executors.checker.memory import displaced
from mlx_assay.impl.executors.checker.run import Argument
from mlx_assay.impl.executors.counting.request import Span

_ALIGNMENT = 256


class Placement:
    """The arrays of one launch. An output's copy holds what it held, and goes back by `finish`."""

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self._held: list[ctypes.Array[ctypes.c_char]] = []
        self._outputs: list[tuple[int, int, int]] = []
        self._placed = [self._place(argument) for argument in arguments]

    def _place(self, argument: Argument) -> tuple[int, int]:
        """The addresses of the begin and of the first element."""
        if not argument.address:
            return 0, 0
        source = argument.address - argument.before
        self._held.append(ctypes.create_string_buffer(argument.size + 2 * _ALIGNMENT))
        begin = -(-ctypes.addressof(self._held[-1]) // _ALIGNMENT) * _ALIGNMENT
        if argument.output:
            self._outputs.append((source, begin, argument.size))
        else:
            begin += displaced(source, argument.residue)
        ctypes.memmove(begin, source, argument.size)
        return begin, begin + argument.before

    @property
    def addresses(self) -> list[int]:
        """Of the first elements; 0 for an array that is not bound."""
        return [address for _, address in self._placed]

    def spans(self, arguments: Sequence[Argument], spaces: Sequence[int]) -> list[Span]:
        """The bytes of the arrays that are bound, each with its space."""
        each = zip(arguments, self._placed, spaces, strict=True)
        return [Span(begin, argument.size, space) for argument, (begin, _), space in each if begin]

    def finish(self) -> None:
        """Gives outputs what the launch has made of them."""
        for source, begin, size in self._outputs:
            ctypes.memmove(source, begin, size)
