"""`mlx-assay gate` of ten legs' reports of 10,000 cases, 200 failing in each: seconds from start to exit, memory."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from figure import Figure
from report_rendering import MEASURE, difference

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.record import Record, replay_command
from mlx_assay.conformance.reporting.report import (
    Environment,
    Executor,
    Implementation,
    OracleState,
    Report,
    SelectionRecord,
    Source,
    Totals,
    encode,
    outcome,
)
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import kind_of

LEGS, CASES, FAILING = 10, 10_000, 200
QUERIES = ("logit_softcap", "normalized_argmax")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LEG = """
[legs.m{number}]
implementation = "my_kernels"
device_class = ["g*"]
executor = "metal"
tier = "full"
queries = {queries}
cases = {cases}
"""
POLICY = """
schema = "urn:mlx-assay:policy:1"
age_hours = 24
[packages]
mlx = "==0.32.*"
[[needs]]
query = "*?tag=ties"
verdict = "same-value"
"""


def measure() -> list[Figure]:
    """The cases are this suite's own, so that the gate holds each report against its selection too."""
    queries, cases = list(QUERIES), list(select(QUERIES, "full").cases)
    if len(cases) < CASES:
        raise RuntimeError(f"Expected {CASES} cases or more of {QUERIES} but got {len(cases)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy = folder / "gate.toml"
        legs = [LEG.format(number=number, queries=queries, cases=len(cases)) for number in range(LEGS)]
        policy.write_text(POLICY + "".join(legs))
        plain = report(queries, cases)
        files = [folder / f"m{number}.json" for number in range(LEGS)]
        for number, file in enumerate(files):
            file.write_bytes(encode(of_leg(plain, number)))
        words = ["gate", *map(str, files), "--policy", str(policy), "--commit", COMMIT, "--json", str(folder / "out")]
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if done.returncode != 1:
            raise RuntimeError(f"Expected exit code 1 but got {done.returncode}: {done.stdout[-2000:]}{done.stderr}")
        return [
            Figure(f"gate: {LEGS} reports of {len(cases):,} cases, {FAILING} failing", seconds, "s", "<=", 2),
            Figure("gate: memory", int(done.stdout.split()[-1]) / 2**20, "MiB"),
            Figure("gate: one report's size", files[0].stat().st_size / 1e6, "MB"),
        ]


def report(queries: list[str], cases: list[Case]) -> Report:
    """A run of them, every so many of which differ with all that can be told of it."""
    draw = random.Random(0)
    step = len(cases) // FAILING
    records = [record(case, draw, number % step == 0 and number < step * FAILING) for number, case in enumerate(cases)]
    oracles = {name: OracleState("ok", "0.32.4") for each in records for name in each.oracles}
    return Report(
        schema="urn:mlx-assay:report:1",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=1.0,
        suite=Suite().installed,
        source=Source(commit=COMMIT),
        environment=Environment(
            python="CPython 3.11.7",
            platform="macOS",
            machine="arm64",
            packages={"mlx": "0.32.4"},
            device_class="g16",
            oracles=oracles,
        ),
        implementation=Implementation(name="my_kernels", operations=sorted(contracts())),
        executor=Executor(name="metal", details={"architecture": "applegpu_g16s"}),
        selection=SelectionRecord(queries=queries, tier="full", seed=0),
        totals=Totals.of(len(cases), records),
        complete=True,
        verdict=outcome(len(cases), records, True),
        cases=records,
    )


def of_leg(plain: Report, number: int) -> Report:
    """The run of another leg: other durations, as any two runs have."""
    cases = [msgspec.structs.replace(each, seconds=each.seconds + number / 1024) for each in plain.cases]
    return msgspec.structs.replace(plain, run=f"{number:032x}", leg=f"m{number}", cases=cases)


def record(case: Case, draw: random.Random, fails: bool) -> Record:
    kind = kind_of(case)
    names = [each.oracle.replace("_", "-") for each in contracts()[case.operation].references]
    return Record(
        id=case.id,
        operation=case.operation,
        dtype=case.dtype,
        tags=list(kind.tags),
        why=kind.why,
        verdict=Verdict.DIFFERS if fails else Verdict.SAME_BITS,
        conforms=not fails,
        oracle=names[0],
        oracles=list(dict.fromkeys(names)),
        missing=[],
        subcases=8,
        seconds=draw.random(),
        replay=replay_command(case.id, "my_kernels"),
        message="got 1 want 2" if fails else "",
        difference=difference("float32", draw) if fails else None,
    )
