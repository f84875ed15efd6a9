"""A release of MLX: its text, its order among others, and which of a contract's rules changed between two."""

from __future__ import annotations

import re

from mlx_assay.conformance.contract import Rule

_PATTERN = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def order(release: str) -> tuple[int, int, int]:
    """What releases are sorted by: ("0.9.10" stands before "0.31.2"); ValueError where it is no release."""
    found = _PATTERN.fullmatch(release)
    if found is None:
        raise ValueError(f"Expected a release of MLX 'major.minor.patch', as 0.32.4, but got {release!r}")
    major, minor, patch = (int(number) for number in found.groups())
    return major, minor, patch


def sequence(releases: list[str]) -> list[str]:
    """The releases from old to new, each once; ValueError says which is none."""
    return sorted(set(releases), key=order)


def crossed(rule: Rule, old: str, new: str) -> bool:
    """Whether a rule begins to hold behind `old` and up to `new`, or ceases to."""
    begins = bool(rule.since) and order(old) < order(rule.since) <= order(new)
    ends = bool(rule.until) and order(old) <= order(rule.until) < order(new)
    return begins or ends
