"""A reason why a gate does not open: what it makes of the verdict, where it lies, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Outcome

NAMED = 3
"""Cases that a reason names; it counts the others."""


class Reason(msgspec.Struct, frozen=True):
    """`where` is a leg, a file or an entry of the policy; `outcome` what the reason alone would make the verdict."""

    outcome: Literal["differs", "incomplete"]
    where: str
    text: str
    mend: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}: {self.mend}"


def incomplete(where: str, text: str, mend: str) -> Reason:
    """Something is missing, damaged or of another run than expected: nothing can be said."""
    return Reason("incomplete", where, text, mend)


def differs(where: str, text: str, mend: str) -> Reason:
    """What ran is not what the policy needs."""
    return Reason("differs", where, text, mend)


def verdict(reasons: Iterable[Reason]) -> Outcome:
    """Incomplete before differs, as in a run; conforms only without any reason."""
    outcomes = {reason.outcome for reason in reasons}
    if "incomplete" in outcomes:
        return "incomplete"
    return "differs" if outcomes else "conforms"


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def named(names: Sequence[str]) -> str:
    """The first few of names that nobody vouches for, and how many more there are."""
    return some([printed(name, 120) for name in names[:NAMED]] + list(names[NAMED:]))


def cases(ids: Sequence[str]) -> str:
    """How many cases, and the first few of them."""
    return f"{counted(len(ids), 'case')}, {named(ids)}"
