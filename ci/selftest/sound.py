"""Sound reports and a policy that they keep to, made from the installed suite without running anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from mlx_assay.conformance import cli
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.seal import digests
from mlx_assay.conformance.record import Difference, Place, Record, replay_command
from mlx_assay.conformance.reporting.report import (
    SCHEMA,
    Environment,
    Executor,
    Implementation,
    OracleState,
    Report,
    SelectionRecord,
    Shard,
    Source,
    Suite,
    Totals,
    encode,
    outcome,
)
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import kind_of

NOW = "2026-06-01T12:00:00+00:00"
VERSIONS = {
    "stock-mlx": "0.32.4 cpu",
    "stock-metal": "0.32.4 bitcode",
    "torch-reference": "2.13.0+cpu",
    "numpy-reference": "2.4.6 with ml_dtypes 0.6.0",
}
"""Of oracles, as the policies here ask for their distributions."""
COMMIT = "0123456789abcdef0123456789abcdef01234567"
QUERY = "normalized_argmax/bfloat16/ties/*"
POLICY = f"""\
schema = "urn:mlx-assay:policy:1"
age_hours = 24

[packages]
mlx = "==0.32.*"

[legs.host]
implementation = "kernels"
device_class = ["host-*"]
executor = "host"
queries = ["{QUERY}"]
cases = 20
"""
FAILING = (Verdict.DIFFERS, Verdict.ERROR, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.UNSUPPORTED)
Verdicts = dict[str, Verdict]


def record(case: Case, verdict: Verdict, seconds: float) -> Record:
    """What a judge would say of a case."""
    kind = kind_of(case)
    names = [one.oracle.replace("_", "-") for one in contracts()[case.operation].references]
    names = list(dict.fromkeys(names))
    failing = verdict in FAILING
    place = Difference("a", "stock-mlx", 1, 3, None, [Place([0, 1], "0x0400", "0x001f")], "tie lost")
    return Record(
        id=case.id,
        operation=case.operation,
        dtype=case.dtype,
        tags=list(kind.tags),
        why=kind.why,
        verdict=verdict,
        conforms=verdict.on_ladder and not failing,
        oracle=names[0],
        oracles=names,
        missing=[],
        subcases=2,
        seconds=seconds,
        replay="",
        message=f"{case.id}: got 1 want 2" if failing else "",
        difference=place if verdict is Verdict.DIFFERS else None,
    )


def report(
    leg: str = "host",
    queries: Sequence[str] = (QUERY,),
    verdicts: Verdicts | None = None,
    device: str = "host-x86_64",
    ids: Sequence[str] | None = None,
    shard: Shard | None = None,
    run: str | None = None,
    minutes: int = 60,
    **fields: Any,
) -> Report:
    """A whole run that ended before NOW; `verdicts` by id, `ids` those of the selection that are in it."""
    chosen = [case for case in selected(tuple(queries)) if ids is None or case.id in ids]
    given = verdicts or {}
    name = sha256((run or f"{leg}.{device}.{shard.index if shard else 0}").encode()).hexdigest()[:32]
    pace = 0.25 + crc32(name.encode()) / 2**40
    cases = [record(case, given.get(case.id, Verdict.SAME_BITS), pace * place) for place, case in enumerate(chosen)]
    fixtures, judge = digests()
    oracles = sorted({name for case in cases for name in case.oracles})
    executor = "host" if device.startswith("host") else "metal"
    plain: dict[str, Any] = {
        "schema": SCHEMA,
        "run": name,
        "leg": leg,
        "started": (datetime.fromisoformat(NOW) - timedelta(minutes=minutes)).astimezone(UTC).isoformat(),
        "seconds": 2000.5,
        "suite": Suite(version=version("mlx-assay"), fixtures=fixtures, judge=judge),
        "source": Source(commit=COMMIT),
        "shard": shard,
        "environment": Environment(
            python="CPython 3.12.1",
            platform="Linux",
            machine="x86_64",
            packages={"mlx": "0.32.4", "torch": "2.13.0"},
            device_class=device,
            oracles={name: OracleState("ok", VERSIONS.get(name, "1")) for name in oracles},
        ),
        "implementation": Implementation(name="kernels", operations=sorted(contracts())),
        "executor": Executor(name=executor, details=describes(device)),
        "selection": SelectionRecord(queries=list(queries), tier="quick", seed=0),
        "totals": Totals.of(len(cases), cases),
        "complete": True,
        "verdict": outcome(len(cases), cases, True),
        "cases": cases,
    }
    return replaying(Report(**{**plain, **fields}))


def replaying(made: Report) -> Report:
    """The report with the commands that its own run would have written."""
    name, checked = made.implementation.name, made.executor.details.get("checked") == "yes"
    cases = [
        msgspec.structs.replace(
            one, replay=replay_command(one.id, None if name == "mlx_assay.impl" else name, checked=checked)
        )
        for one in made.cases
    ]
    return msgspec.structs.replace(made, cases=cases)


def describes(device: str) -> dict[str, str]:
    """What an executor says of itself on a device of a class."""
    if device.startswith("host"):
        return {"executor": "host"}
    name, architecture = ("Apple Paravirtual device", "air64_v26") if device == "paravirtual" else ("Apple M", device)
    return {"executor": "metal", "device_name": name, "architecture": f"applegpu_{architecture}s"}


def ids(queries: Sequence[str] = (QUERY,)) -> list[str]:
    """The case ids that queries select."""
    return [case.id for case in selected(tuple(queries))]


@cache
def selected(queries: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases that queries select."""
    return select(queries).cases


def document(made: Report) -> dict[str, Any]:
    """A report as JSON values, to be edited."""
    found: dict[str, Any] = json.loads(encode(made))
    return found


class Gate:
    """The verb in a folder of its own: writes reports and a policy, calls, and keeps what was printed."""

    def __init__(self, folder: Path, read: Callable[[], Any]) -> None:
        self.folder = folder
        self._read = read
        self.text = ""

    def file(self, name: str, content: Report | dict[str, Any] | bytes | str) -> str:
        """Writes a file; its path."""
        if isinstance(content, Report):
            content = encode(content)
        elif isinstance(content, dict):
            content = msgspec.json.encode(content)
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def __call__(
        self, *reports: Report | dict[str, Any] | bytes, policy: str = POLICY, options: Sequence[str] = ()
    ) -> int:
        """The exit code of `mlx-assay gate` over these reports."""
        files = [self.file(f"report-{number}.json", one) for number, one in enumerate(reports)]
        told = ["--policy", self.file("gate.toml", policy), "--now", NOW]
        if "--commit" not in options:
            told += ["--commit", COMMIT]
        return self.call("gate", *files, *told, *options)

    def call(self, *words: str) -> int:
        """The exit code of a verb; argparse's own exits too."""
        try:
            code = cli.main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
        sys.stdout.flush()
        captured = self._read()
        self.text = captured.out + captured.err
        return code
