"""Consistency: versions and times that a report tells in several places, held against each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from mlx_assay.conformance.gating.reason import some
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Report

RUN = re.compile(r"[0-9a-f]{32}")
STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)
SLACK = 1.0
"""Seconds by which one case's clock may exceed that of the run."""
LIBRARIES = {"stock-mlx": "mlx", "stock-metal": "mlx-metal", "torch-reference": "torch", "numpy-reference": "numpy"}
"""Distributions by the oracle that asks them, whose version begins with the distribution's."""


def contradictions(report: Report) -> Iterator[str]:
    """What of a report does not go together, in a few words each."""
    if not RUN.fullmatch(report.run):
        yield f"expected a run's name of 32 hex digits but got {printed(report.run)!r}"
    if not _moment(report.started):
        yield f"expected the time when it started as a run writes it, in UTC, but got {printed(report.started, 60)!r}"
    if apart := list(_versions(report)):
        yield f"versions that contradict each other: {some(apart)}"
    for name, oracle in report.environment.oracles.items():
        if oracle.state == "ok" and (oracle.reason or not oracle.version):
            yield f"oracle {printed(name, 60)!r} is ok, without a version or with a reason why it is not"
    longest = max((record.seconds for record in report.cases), default=0.0)
    if longest > report.seconds + SLACK:
        yield f"a case took {longest!r} seconds of a run of {report.seconds!r}"


def _moment(text: str) -> bool:
    try:
        return bool(STARTED.fullmatch(text) and datetime.fromisoformat(text))
    except ValueError:
        return False


def _versions(report: Report) -> Iterator[str]:
    packages = report.environment.packages
    told = [
        ("mlx", "the executor", report.executor.details.get("mlx")),
        ("mlx", "the implementation", report.implementation.details.get("mlx")),
        ("mlx-assay", "the suite", report.suite.version if report.suite else None),
        *(
            (package, f"the oracle {name}", report.environment.oracles[name].version.partition(" ")[0])
            for name, package in LIBRARIES.items()
            if name in report.environment.oracles and report.environment.oracles[name].state == "ok"
        ),
    ]
    for package, where, version in told:
        known = packages.get(package)
        if known is not None and version is not None and _public(version) != _public(known):
            yield f"{package} is {printed(known, 60)} but {where} tells {printed(version, 60)}"


def _public(version: str) -> str:
    """Without the local part: a library may name its build where its distribution does not."""
    return version.partition("+")[0]
