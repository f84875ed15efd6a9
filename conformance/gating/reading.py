"""The policy's file: bounded, strict, and every name in it one that this suite knows. What is wrong is usage."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mlx_assay.conformance.gating import presence
from mlx_assay.conformance.gating.policy import PARAVIRTUAL, Leg, Policy
from mlx_assay.conformance.gating.suite import checked
from mlx_assay.conformance.query import QueryError
from mlx_assay.conformance.reporting.environment import PACKAGES
from mlx_assay.conformance.reporting.intake import Damaged, printed, read
from mlx_assay.conformance.selection import check_oracles, operations

LARGEST = 2**20
EXECUTORS = ("metal", "cuda", "host")


class PolicyError(ValueError):
    """A policy that cannot be meant; the message says what came, and what was expected."""


class PolicyFile(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, the file that it was read from, and SHA-256 of that file's bytes."""

    file: str
    sha256: str
    policy: Policy


def load(file: str) -> PolicyFile:
    """Reads a policy; PolicyError says why it cannot be meant."""
    try:
        document = read(Path(file), LARGEST)
        policy = msgspec.convert(tomllib.loads(document.decode("utf-8")), Policy)
        _check(policy)
    except (Damaged, QueryError, ValueError, RecursionError) as error:
        raise PolicyError(f"policy {printed(file)}: {printed(error, 600)}") from None
    return PolicyFile(file=file, sha256=hashlib.sha256(document).hexdigest(), policy=policy)


def _check(policy: Policy) -> None:
    for text in _queries(policy):
        checked(text)
    _check_rules(policy.packages, policy.allowed)
    if policy.suite.version != "installed":
        presence.check(policy.suite.version)
    for name, leg in policy.legs.items():
        try:
            _check_leg(leg)
            _check_rules({**policy.packages, **leg.packages}, {**policy.allowed, **leg.allowed})
        except ValueError as error:
            raise ValueError(f"{error} - at `legs.{name}`") from None
    if not any(leg.required for leg in policy.legs.values()):
        raise ValueError("Expected a leg that is required but every one has required = false")
    for waiver in policy.waivers:
        if waiver.leg and waiver.leg not in policy.legs:
            raise ValueError(f"Expected a leg, {', '.join(policy.legs)}, but got {waiver.leg!r} in a waiver")


def _queries(policy: Policy) -> Iterator[str]:
    yield from (need.query for need in policy.needs)
    yield from (waiver.query for waiver in policy.waivers)
    for leg in policy.legs.values():
        yield from (*leg.queries, *leg.least)


def _check_leg(leg: Leg) -> None:
    _check_rules(leg.packages, leg.allowed)
    check_oracles(leg.without)
    if leg.executor not in EXECUTORS:
        raise ValueError(f"Expected an executor, {', '.join(EXECUTORS)}, but got {leg.executor!r}")
    if leg.bits and PARAVIRTUAL in leg.device_class:
        raise ValueError(f"Expected a real device class for a leg with bits but got {PARAVIRTUAL}: set bits = false")
    if unknown := set(leg.not_asked) - set(operations()):
        raise ValueError(f"Expected operations, {', '.join(operations())}, but got {', '.join(sorted(unknown))}")


def _check_rules(needed: dict[str, str], allowed: dict[str, str]) -> None:
    """ValueError for a rule that is none, and for a package that reports do not tell of, or that has two rules."""
    known = {presence.canonical(name): name for name in PACKAGES}
    for rules in (needed, allowed):
        for name, rule in rules.items():
            presence.check(rule)
            if presence.canonical(name) not in known:
                raise ValueError(f"Expected a package that reports tell of, {', '.join(PACKAGES)}, but got {name!r}")
        if len({presence.canonical(name) for name in rules}) < len(rules):
            raise ValueError(f"Expected each package once but one stands in two spellings in {', '.join(rules)}")
    both = {presence.canonical(name) for name in needed} & {presence.canonical(name) for name in allowed}
    if both:
        raise ValueError(f"Expected a package in packages or in allowed but got {min(both)} in both")
