"""Which operators a campaign was asked for: what is not known, and what finds no place, is told by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

NEAREST = 3


class Planted(Protocol):
    """A mutant, as far as its operator goes."""

    @property
    def operator(self) -> str:
        """The operator's name."""


Fault = TypeVar("Fault", bound=Planted)


def check_known(operators: Sequence[str], known: Sequence[str], what: str = "an operator") -> None:
    """Refusal: one that is not known, with the nearest that are."""
    for name in operators:
        if name not in known:
            near = get_close_matches(name, known, n=NEAREST)
            told = f"the nearest of {len(known)} {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
            raise Refusal(f"Expected {what} but got {name!r}: {told if near else 'there are ' + ', '.join(known)}")


def met(
    choose: Callable[[], list[Fault]],
    operators: Sequence[str],
    where: str,
    say: Callable[[str], object],
    since: str | None = None,
) -> list[Fault]:
    """The mutants of a choice; operators that make none are said. Refusal: there are none, though all texts count."""
    found = choose()
    where += "" if since is None else f", as far as changed since {since}"
    without = [name for name in dict.fromkeys(operators) if name not in {fault.operator for fault in found}]
    told = f"{' and '.join(without)} {'finds' if len(without) == 1 else 'find'} no place in {where}"
    if not found and since is None:
        if not without:
            raise Refusal(f"Expected mutants of {where} but there are none", EXIT_INCOMPLETE)
        raise Refusal(
            f"Expected a fault that can be planted but {told}: name others, or leave them out", EXIT_INCOMPLETE
        )
    if without:
        say(told)
    return found
