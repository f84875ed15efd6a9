"""The decision: reports of several legs held against a policy, as one document from which every rendering is made."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from mlx_assay.conformance.gating import reason
from mlx_assay.conformance.gating.audit import audit
from mlx_assay.conformance.gating.coverage import covered, known
from mlx_assay.conformance.gating.gathering import Gathered, gather, leg_of
from mlx_assay.conformance.gating.mutants import noticed
from mlx_assay.conformance.gating.presence import present
from mlx_assay.conformance.gating.reading import PolicyFile
from mlx_assay.conformance.gating.reason import Reason, incomplete, named
from mlx_assay.conformance.gating.sharding import merged
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.gating.waiving import Judged, WaiverState, failures, judged, unmet, waive
from mlx_assay.conformance.reporting.intake import LARGEST, Damaged, Taken, printed, read, take
from mlx_assay.conformance.reporting.report import EXIT_CODES, Outcome, Report
from mlx_assay.conformance.reporting.report import Suite as Judging

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
SCHEMA: Literal["urn:mlx-assay:gate:1"] = "urn:mlx-assay:gate:1"


class Digested(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file and SHA-256 of its bytes; of a report, its leg and the name of its run."""

    file: str
    sha256: str
    leg: str = ""
    run: str = ""


class Artefact(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be released: its name, empty where only its digest is known, and SHA-256 of its bytes."""

    name: str
    sha256: str


class LegRow(msgspec.Struct, frozen=True, kw_only=True):
    """One leg in numbers. `verdict` is of this leg alone; `absent` is a leg that is not required and has no report."""

    leg: str
    verdict: Literal["conforms", "differs", "incomplete", "absent"]
    bits: bool
    device_class: str = ""
    executor: str = ""
    cases: int = 0
    waived: int = 0
    warned: int = 0
    failing: int = 0


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """An operation and dtype in one leg: cases by verdict; how many fail, are waived, or differ in a smoke leg."""

    leg: str
    operation: str
    dtype: str
    cases: int
    verdicts: dict[str, int]
    waived: int
    warned: int
    failing: int


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate says, of what, by which policy, and every reason against opening. `now` is UTC, ISO 8601."""

    schema: Literal["urn:mlx-assay:gate:1"]
    verdict: Outcome
    now: str
    commit: str
    policy: Digested
    suite: Judging
    artefact: Artefact | None
    reports: list[Digested]
    legs: list[LegRow]
    operations: list[GroupRow]
    waivers: list[WaiverState]
    mutants: Digested | None = None
    reasons: list[Reason]

    @property
    def exit_code(self) -> int:
        """What the gate's process returns."""
        return EXIT_CODES[self.verdict]


def decide(
    file: PolicyFile,
    files: Sequence[str],
    now: datetime,
    commit: str = "",
    artefact: Artefact | None = None,
    suite: Suite | None = None,
    mutants: str | None = None,
) -> Decision:
    """Reads the reports, works out anew what they say, and holds them against the policy; never raises for a report.

    `mutants` is the file of a report of `mlx-assay mutate`.
    """
    suite = suite or Suite()
    policy = file.policy
    taken, reasons = _taken(files)
    gathered, strange = gather(taken, policy)
    reasons += [*strange, *_one_source(taken)]
    legs: list[Judged] = []
    met: set[int] = set()
    unsound: set[str] = set()
    for name, parts in gathered.items():
        found, told = _leg(name, parts, file, now, commit, suite)
        reasons += told
        if told or found is None:
            unsound.add(name)
        if found is not None:
            legs.append(judged(name, policy.legs[name], found, policy, suite, met))
    states, wrong = waive(policy, legs, now.date(), suite, unsound)
    reasons += [*wrong, *unmet(policy, met, unsound)]
    reasons += [told for made in legs for told in failures(made)]
    reasons += noticed(mutants, policy.mutants)
    return Decision(
        schema=SCHEMA,
        verdict=reason.verdict(reasons),
        now=now.isoformat(timespec="seconds"),
        commit=commit,
        policy=Digested(file=file.file, sha256=file.sha256),
        suite=suite.installed,
        artefact=artefact,
        reports=[Digested(file=one.file, sha256=one.sha256, leg=one.report.leg, run=one.report.run) for one in taken],
        legs=[_row(name, file, legs, gathered, reasons) for name in policy.legs],
        operations=[row for made in legs for row in _groups(made)],
        waivers=states,
        mutants=_digested(mutants) if policy.mutants else None,
        reasons=reasons,
    )


def _taken(files: Sequence[str]) -> tuple[list[Taken], list[Reason]]:
    taken: list[Taken] = []
    reasons: list[Reason] = []
    for file in files:
        try:
            taken.append(take(file))
        except Damaged as error:
            reasons.append(incomplete(printed(file), str(error), "take the file as the run wrote it, or run again"))
    return taken, reasons


def _digested(file: str | None) -> Digested | None:
    """A file with its digest, None where it cannot be read, which is a reason elsewhere."""
    try:
        return None if file is None else Digested(file=file, sha256=digest(read(Path(file), LARGEST)))
    except Damaged:
        return None


def _one_source(taken: Sequence[Taken]) -> list[Reason]:
    """Legs of one release are of one commit, whichever it is."""
    if nameless := [one.file for one in taken if not COMMIT.fullmatch(one.report.source.commit)]:
        text = f"they name no commit, so nothing tells that they are of one: {named(nameless)}"
        return [incomplete("reports", text, "run every leg in a checkout, or where GITHUB_SHA names the commit")]
    commits = {one.report.source.commit for one in taken}
    if len(commits) < 2:
        return []
    told = ", ".join(sorted(printed(commit, 64) or "none" for commit in commits))
    return [incomplete("reports", f"they are of several commits: {told}", "run every leg on one")]


def _leg(
    name: str, parts: Gathered, file: PolicyFile, now: datetime, commit: str, suite: Suite
) -> tuple[Report | None, list[Reason]]:
    """A leg's report, whole, and why it cannot be relied on; no report where there is none."""
    policy, leg = file.policy, file.policy.legs[name]
    reasons = list(leg_of(name, leg, parts))
    if reasons or not parts:
        return None, reasons
    if known(parts[0].report, suite):
        suite.prepare(parts[0].report)
    for part in parts:
        where = name if len(parts) == 1 else f"{name}, {printed(part.file)}"
        reasons += audit(part.report, where, suite)
        reasons += present(part.report, policy, leg, where, now, commit, suite)
    report: Report | None = parts[0].report
    if parts[0].report.shard is not None or len(parts) > 1:
        if reasons:
            return None, reasons
        report, reasons = merged(parts, name, suite)
    if report is not None:
        reasons += covered(report, leg, name, suite)
    return report, reasons


def _row(
    name: str, file: PolicyFile, legs: Sequence[Judged], gathered: dict[str, Gathered], reasons: Sequence[Reason]
) -> LegRow:
    leg = file.policy.legs[name]
    own = [told for told in reasons if told.where == name or told.where.startswith(f"{name}, ")]
    verdict = reason.verdict(own)
    made = next((made for made in legs if made.name == name), None)
    if made is None:
        return LegRow(leg=name, bits=leg.bits, verdict=verdict if own or gathered.get(name) else "absent")
    return LegRow(
        leg=name,
        verdict=verdict,
        bits=leg.bits,
        device_class=printed(made.report.environment.device_class, 60),
        executor=printed(made.report.executor.name, 60),
        cases=len(made.report.cases),
        waived=len(made.waived),
        warned=len(made.warned),
        failing=len(made.failing),
    )


def _groups(made: Judged) -> list[GroupRow]:
    found: dict[tuple[str, str], Counter[str]] = {}
    for (*key, verdict), count in Counter((one.operation, one.dtype, one.verdict) for one in made.report.cases).items():
        found.setdefault((key[0], key[1]), Counter())[verdict.value] = count
    counts = [
        Counter((one.operation, one.dtype) for one in made.report.cases if one.id in ids) if ids else Counter()
        for ids in (made.failing, made.waived, made.warned)
    ]
    return [
        GroupRow(
            leg=made.name,
            operation=printed(key[0], 60),
            dtype=printed(key[1], 60),
            cases=verdicts.total(),
            verdicts=dict(verdicts),
            failing=counts[0][key],
            waived=counts[1][key],
            warned=counts[2][key],
        )
        for key, verdicts in sorted(found.items())
    ]


def digest(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def schema() -> dict[str, Any]:
    """The JSON Schema of a decision, as published in decision.schema.json."""
    generated = msgspec.json.schema(Decision)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **generated}
