"""Gathering: which report belongs to which leg, and none twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from mlx_assay.conformance.gating.intake import Taken, printed
from mlx_assay.conformance.gating.policy import Leg, Policy
from mlx_assay.conformance.gating.reason import Reason, incomplete, some

Gathered = list[Taken]
"""The reports of one leg: one, or the shards of one run."""


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
    """Reports that are one: the same bytes, the same run, or the same results under another name."""
    reasons: list[Reason] = []
    seen: dict[str, str] = {}
    for one in taken:
        for key in (one.sha256, f"run {one.report.run}", _results(one)):
            if key in seen:
                text = f"it is the same run as {printed(seen[key])}"
                reasons.append(incomplete(printed(one.file), text, "give each report once, of a run of its own"))
                break
        for key in (one.sha256, f"run {one.report.run}", _results(one)):
            seen.setdefault(key, one.file)
    return reasons


def _results(one: Taken) -> str:
    """A digest of when a run took place and how long each of its cases took, which no two runs have in common."""
    content = msgspec.json.encode((one.report.started, one.report.seconds, [case.seconds for case in one.report.cases]))
    return hashlib.sha256(content).hexdigest()


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
