"""What a check is asked for: the words of options, checked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlx_assay.conformance.checking.report import Asked
from mlx_assay.conformance.checking.rules import RULES

SCHEDULES = ("in-order", "reverse", "round-robin", "pct")
"""Schedules of the checker; behind pct stands a seed."""

SEED = 1
LIMIT = 600.0
"""Seconds that the whole may take."""

LAUNCH_LIMIT = 60.0
"""Seconds that a launch may take under one schedule."""

_SCHEDULE = re.compile(r"in-order|reverse|round-robin|pct:\d{1,10}")


def asked(
    target: str,
    arguments: Sequence[str] = (),
    *,
    kernels: Sequence[str] = (),
    ignore: Sequence[str] = (),
    schedules: Sequence[str] = SCHEDULES,
    seed: int = SEED,
    limit: float = LIMIT,
    launch_limit: float = LAUNCH_LIMIT,
    warnings_as_errors: bool = False,
    sensitivity: bool = False,
    profile: str = "",
) -> Asked:
    """The request; ValueError says which word came and which were expected."""
    for text in (target, *arguments, *words(kernels)):
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ValueError(f"Expected text in UTF-8 but got {text!r}")
    return Asked(
        target=target,
        arguments=list(arguments),
        kernels=list(words(kernels)),
        ignored=[_kind(name) for name in words(ignore)],
        schedules=_schedules(words(schedules), seed),
        limit=limit,
        launch_limit=launch_limit,
        warnings_as_errors=warnings_as_errors,
        sensitivity=sensitivity,
        profile=profile,
    )


def words(given: Sequence[str]) -> Sequence[str]:
    """A list of words, which may be given as one text with commas."""
    return given.split(",") if isinstance(given, str) else given


def _schedules(names: Sequence[str], seed: int) -> list[str]:
    seeded = [f"pct:{seed}" if name == "pct" else name for name in names]
    for name in seeded:
        if not _SCHEDULE.fullmatch(name):
            raise ValueError(f"Expected schedules, {', '.join(SCHEDULES)} or pct:SEED, but got {name!r}")
    if not seeded:
        raise ValueError(f"Expected a schedule, {', '.join(SCHEDULES)} or pct:SEED, but got none")
    return list(dict.fromkeys(seeded))


def _kind(name: str) -> str:
    if name not in RULES:
        raise ValueError(f"Expected a kind of finding, one of {', '.join(RULES)}, but got {name!r}")
    return name
