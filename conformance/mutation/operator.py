"""An operator of mutation: a kind of fault, and every place of a text where it can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Edit(NamedTuple):
    """One change of a text: what stands from `start` to `end` becomes `new`."""

    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """The changed text."""
        return text[: self.start] + self.new + text[self.end :]


@dataclass(frozen=True)
class Operator(Generic[T]):
    """A kind of fault. `find` gives every edit of a text that makes it, of Metal's tokens or of Python's tree.

    `same_code`: whether the same machine code shows that nothing changed. It does not for what a processor that runs
    one thread after another cannot show, such as what a barrier orders.
    """

    name: str
    fault: str
    find: Callable[[T], Iterable[Edit]]
    same_code: bool = True

    def edits(self, code: T, text: str) -> Iterator[Edit]:
        """The edits in their order, each once, without those that change nothing."""
        found = {edit for edit in self.find(code) if text[edit.start : edit.end] != edit.new}
        yield from sorted(found)
