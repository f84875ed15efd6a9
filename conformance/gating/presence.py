"""Presence: whether a report is of the run that the policy expects: when, of which commit, on what, asked for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.gating.policy import PARAVIRTUAL, Leg, Policy, Rules
from mlx_assay.conformance.gating.reason import Reason, incomplete
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Report

SKEW = timedelta(minutes=5)
"""How far two machines' clocks may lie apart."""


def present(
    report: Report, policy: Policy, leg: Leg, where: str, now: datetime, commit: str, suite: Suite
) -> list[Reason]:
    """What of a report is not as the policy expects; `commit` is empty where any will do."""
    told = [
        *_when(report, leg.age_hours or policy.age_hours, now),
        *_source(report, policy, commit),
        *_suite(report, policy.suite, suite),
        *_where(report, leg),
        *_asked(report, leg),
        *_packages(report, {**policy.packages, **leg.packages}, {**policy.allowed, **leg.allowed}),
    ]
    return [incomplete(where, text, mend) for text, mend in told]


def moment(text: str) -> datetime:
    """A moment with its offset from UTC; ValueError for one without, or for none."""
    made = datetime.fromisoformat(text)
    if made.tzinfo is None:
        raise ValueError(f"Expected a time with its offset, as 2026-01-31T12:00:00+00:00, but got {text!r}")
    return made.astimezone(UTC)


def _when(report: Report, hours: int, now: datetime) -> Iterator[tuple[str, str]]:
    try:
        started = moment(report.started)
        ended = started + timedelta(seconds=max(report.seconds, 0))
        age = now - started
    except (ValueError, OverflowError):
        yield f"expected the time when it started but got {printed(report.started, 60)!r}", "run it again"
        return
    if ended - now > SKEW:
        yield f"it is from the future: it ended {ended.isoformat()} but it is {now.isoformat()}", "set the clocks"
    if age > timedelta(hours=hours):
        yield f"it is older than {hours} hours: it started {started.isoformat()}", "run it again"


def _source(report: Report, policy: Policy, commit: str) -> Iterator[tuple[str, str]]:
    if commit and report.source.commit != commit:
        yield f"expected commit {commit} but it is of {printed(report.source.commit, 64) or 'none'}", "run it there"
    if report.source.dirty and not policy.dirty:
        yield "files differed from the commit when it ran", "run it in a clean checkout"


def _suite(report: Report, rules: Rules, suite: Suite) -> Iterator[tuple[str, str]]:
    told = report.suite
    if told is None:
        yield "it does not tell which suite judged", "run it with a suite that does"
        return
    installed = suite.installed
    version = f"=={installed.version}" if rules.version == "installed" else rules.version
    if not satisfies(told.version, version):
        yield f"expected version {version} of the suite but got {printed(told.version, 60)!r}", "run with that suite"
    for name, rule, got, own in (
        ("fixtures", rules.fixtures, told.fixtures, installed.fixtures),
        ("judge", rules.judge, told.judge, installed.judge),
    ):
        wanted = own if rule == "installed" else rule
        if rule != "any" and got != wanted:
            yield f"expected digest {wanted} of the {name} but got {printed(got, 64)!r}", "run with that suite"


def _where(report: Report, leg: Leg) -> Iterator[tuple[str, str]]:
    device = report.environment.device_class
    if leg.bits and device == PARAVIRTUAL:
        yield "a paravirtual device has no bits to rely on", "run it on real hardware, or make the leg smoke"
    if not device or not any(fnmatchcase(device, glob) for glob in leg.device_class):
        wanted = " or ".join(leg.device_class)
        yield f"expected device class {wanted} but got {printed(device, 60) or 'none'}", "run it on such a device"
    if report.executor.name != leg.executor:
        yield f"expected executor {leg.executor} but got {printed(report.executor.name, 60) or 'none'}", "run it there"
    launches = sum(record.launches for record in report.cases)
    if leg.checked and (report.executor.details.get("checked") != "yes" or launches < 1):
        yield (
            f"its kernels did not run under the checker ({counted(launches, 'launch', 'launches')} did)",
            "run it with --checked",
        )


def _asked(report: Report, leg: Leg) -> Iterator[tuple[str, str]]:
    name, asked = report.implementation.name, report.selection
    if name != leg.implementation:
        yield f"expected implementation {leg.implementation} but got {printed(name)!r}", "judge that one"
    if asked.tier != leg.tier:
        yield f"expected tier {leg.tier} but got {printed(asked.tier, 60)!r}", f"run it with --tier {leg.tier}"
    if leg.seed != "any" and (asked.seed == 0 if leg.seed == "nonzero" else asked.seed != leg.seed):
        yield f"expected seed {leg.seed} but got {asked.seed}", "run it with that --seed"
    if sorted(asked.queries) != sorted(leg.queries):
        wanted = ", ".join(leg.queries) or "none: the whole tier"
        yield f"expected queries {wanted} but got {printed(', '.join(asked.queries)) or 'none'}", "ask for these"
    if left := sorted(set(asked.without) - set(leg.without)):
        yield f"oracles were left out: {printed(', '.join(left))}", "run with them, or allow it by without = [...]"
    if lacking := sorted(set(asked.not_asked) - set(leg.not_asked)):
        text = f"operations that the implementation lacks were not asked: {printed(', '.join(lacking))}"
        yield text, "implement them, or allow it by not_asked = [...]"


def _packages(report: Report, needed: Mapping[str, str], allowed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    there = {canonical(name): version for name, version in report.environment.packages.items()}
    for name, rule in {**allowed, **needed}.items():
        found = there.get(canonical(name))
        if found is None:
            if name in needed:
                yield f"package {name} {rule} is needed but it is not there", f"pip install '{name}{pinned(rule)}'"
        elif not satisfies(found, pinned(rule)):
            got = printed(found, 60)
            yield f"expected {name} {rule} but got {got}", f"pip install '{name}{pinned(rule)}'"


def canonical(name: str) -> str:
    """The one spelling of a distribution's name, by PEP 503."""
    return str(canonicalize_name(name))


def pinned(rule: str) -> str:
    """A specifier as it stands; a bare version as the exact one, its local part included."""
    return rule if any(sign in rule for sign in "<>=!~") else f"==={rule}"


def satisfies(version: str, rule: str) -> bool:
    """Whether a version keeps to a PEP 440 specifier, pre-releases included; what is no version keeps to nothing."""
    try:
        return SpecifierSet(rule).contains(Version(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def check(rule: str) -> None:
    """ValueError for a rule that is neither a version nor a specifier."""
    try:
        made = SpecifierSet(pinned(rule))
        if rule == pinned(rule) and len(made) > 0:
            return
        Version(rule)
    except (InvalidSpecifier, InvalidVersion):
        raise ValueError(f"Expected a version, as 0.32.4, or a specifier, as >=0.32, but got {rule!r}") from None
