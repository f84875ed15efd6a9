"""A sweep: every input of a range, in blocks of one call each, made from the block's number alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlx_assay.fixtures.case import Case, Subcase


def nothing(subcase: Subcase, index: tuple[int, ...]) -> str:
    """Names no input."""
    return ""


@dataclass(frozen=True)
class Sweep:
    """One range of inputs of one operation.

    `case` gives it an id of the form that cases have. `make(block)` makes the call that covers inputs number
    `block * size` on, `size` of them; it depends on nothing else. `told(subcase, index)` names the input behind a place
    of the output. `step` is how many blocks a chunk has. `rounds` are those of process/exchange.py in which each block
    is called; none: one, by turns from block to block. `sieved`: what is surely right is let through by
    oracles/softcap_sieve.py, and the rest goes to the contract's whole panel.
    """

    case: Case
    why: str
    blocks: int
    size: int
    make: Callable[[int], Subcase]
    told: Callable[[Subcase, tuple[int, ...]], str] = nothing
    step: int = 1
    rounds: tuple[int, ...] = ()
    sieved: bool = False

    @property
    def id(self) -> str:
        """The name by which it is asked for and reported."""
        return self.case.id

    @property
    def inputs(self) -> int:
        """How many inputs it has."""
        return self.blocks * self.size

    @property
    def chunks(self) -> int:
        """How many chunks it has."""
        return -(-self.blocks // self.step)

    def rounds_of(self, block: int) -> tuple[int, ...]:
        """The rounds in which a block is called."""
        return self.rounds or (block % 2,)

    def span(self, chunk: int) -> range:
        """The blocks of a chunk. IndexError: there is none of that number."""
        if not 0 <= chunk < self.chunks:
            raise IndexError(f"Expected a chunk of {self.id}, 0 to {self.chunks - 1}, but got {chunk}")
        return range(chunk * self.step, min(self.blocks, (chunk + 1) * self.step))
