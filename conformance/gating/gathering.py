"""Gathering: which report belongs to which leg, and none twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mlx_assay.conformance.gating.policy import Leg, Policy
from mlx_assay.conformance.gating.reason import Reason, incomplete, some
from mlx_assay.conformance.reporting.intake import Taken, printed

Gathered = list[Taken]
"""The reports of one leg: one, or the shards of one run."""

SHARED = 0.25
"""Part of a report's durations that two runs may have in common: clocks tick in steps, and short cases are many."""


def gather(taken: Sequence[Taken], policy: Policy) -> tuple[dict[str, Gathered], list[Reason]]:
    """Reports by leg, every leg of the policy among them, and which reports belong nowhere or came before."""
    legs: dict[str, Gathered] = {name: [] for name in policy.legs}
    reasons = repeated(taken)
    for one in taken:
        if one.report.leg in legs:
            legs[one.report.leg].append(one)
        else:
            text = f"it is of leg {printed(one.report.leg, 60)!r}, which the policy does not have"
            reasons.append(
                incomplete(printed(one.file), text, f"run it with --leg {' or '.join(legs)}, or name the leg there")
            )
    return legs, reasons


def repeated(taken: Sequence[Taken]) -> list[Reason]:
    """Reports that are one: the same bytes, the same run, or most durations the same, which no two runs have."""
    reasons: list[Reason] = []
    named: dict[str, str] = {}
    timed: dict[tuple[str, float], str] = {}
    for one in taken:
        keys = (one.sha256, f"run {one.report.run}")
        # A case that was lost has no duration.
        times = [(case.id, case.seconds) for case in one.report.cases if case.seconds]
        alike = Counter(timed[time] for time in times if time in timed)
        earlier = next((named[key] for key in keys if key in named), None)
        for file, count in alike.most_common(1):
            if count > len(times) * SHARED:
                earlier = earlier or file
        if earlier is not None:
            text = f"it is the same run as {printed(earlier)}"
            reasons.append(incomplete(printed(one.file), text, "give each report once, of a run of its own"))
        for key in keys:
            named.setdefault(key, one.file)
        for time in times:
            timed.setdefault(time, one.file)
    return reasons


def leg_of(name: str, leg: Leg, parts: Gathered) -> list[Reason]:
    """Why a leg's reports are not one run: none, or several that are no shards."""
    if not parts and leg.required:
        where = f"on {' or '.join(leg.device_class)}"
        return [incomplete(name, "it has no report", f"mlx-assay run --leg {name} {where}, and give its report")]
    whole = [part.file for part in parts if part.report.shard is None]
    if len(parts) > 1 and whole:
        files = some([printed(part.file) for part in parts])
        return [incomplete(name, f"it has several reports, {files}", "give one, or the shards of one run")]
    return []
