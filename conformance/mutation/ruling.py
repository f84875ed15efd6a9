"""A ruling: what came of one mutant."""

from __future__ import annotations

import msgspec

KILLED, EQUIVALENT, SURVIVED = "killed", "equivalent", "survived"
"""Outcomes."""

CHECKER, COMPILATION, TEST = "checker", "compilation", "test"
"""What `killed_by` begins with where no case killed, before a colon."""


class Ruling(msgspec.Struct, frozen=True):
    """An outcome, who killed the mutant (a case, a test, the checker or compilation), or why it is equivalent.

    `also` are other cases that were tried and kill it too.
    """

    id: str
    outcome: str
    killed_by: str = ""
    reason: str = ""
    seconds: float = 0.0
    also: tuple[str, ...] = ()
