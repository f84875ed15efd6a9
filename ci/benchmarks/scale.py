"""Synthetic cases, 100,000 of them: list, select, split, a report written and read; and a staged run of a fifth.

The figures are of what is around the judge, which does nothing here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figure import Figure
from quick_run import Sampler

STAGE = Path(__file__).resolve().parents[1] / "selftest"
COUNT = 100_000
RUN = 20_000
WORKERS = 2
EXACT = 100
PEAK = f"""
import json, resource, sys, time
sys.path.insert(0, {str(STAGE)!r})
import synthetic
synthetic.install({COUNT})
"""
SELECT = """
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.splitting import split
cases = select([]).cases
told = {}
for name, call in {
    "glob": lambda: select(["*/bfloat16/*?vocab=1025"]),
    "exact": lambda: select([case.id for case in cases[:: len(cases) // EXACT]]),
    "split": lambda: split(cases, 8),
}.items():
    began = time.perf_counter()
    call()
    told[name] = time.perf_counter() - began
print(json.dumps(told))
""".replace("EXACT", str(EXACT))
REPORT = """
from pathlib import Path
import msgspec
from mlx_assay.conformance.reporting.intake import take
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.record import Record, replay_command
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.session import Session
from mlx_assay.conformance.verdict import Verdict
cases = select([]).cases
session = Session(Options(report=sys.argv[1]))
session.declare([case.id for case in cases])
for case in cases:
    record = Record(
        id=case.id, operation=case.operation, dtype=case.dtype, tags=["scale", "odd-shape"], why="A case of scale",
        verdict=Verdict.SAME_BITS, conforms=True, oracle="stock-mlx", oracles=["stock-mlx", "torch-reference"],
        missing=[], subcases=12, seconds=0.0123, replay=replay_command(case.id),
    )
    session.add(msgspec.json.encode(record).decode())
began = time.perf_counter()
session._write()
told = {"write": time.perf_counter() - began}
session.finish()
told["held"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
del session
began = time.perf_counter()
take(sys.argv[1])
told["read"] = time.perf_counter() - began
told["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT
print(json.dumps(told))
""".replace("UNIT", "1" if sys.platform == "darwin" else "1024")
LIST = "from mlx_assay.conformance.cli import main; sys.exit(main(['list']))"


def measure() -> list[Figure]:
    """Each in a process of its own, whose peak memory it then is."""
    began = time.perf_counter()
    listed = subprocess.run([sys.executable, "-c", PEAK + LIST], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - began
    selected = _told(SELECT)
    with tempfile.TemporaryDirectory() as folder:
        report = _told(REPORT, f"{folder}/report.json")
        run, rate, controller, worker = _run(Path(folder))
    return [
        Figure("list: cases", len(listed.stdout.splitlines()), "cases", ">=", COUNT),
        Figure(f"list {COUNT:,} cases, from start to exit", seconds, "s", "<=", 3),
        Figure("select by a glob and a filter", selected["glob"], "s", "<=", 3),
        Figure(f"select {EXACT} whole ids", selected["exact"], "s", "<=", 3),
        Figure("split into 8 shards", selected["split"], "s", "<=", 3),
        Figure(f"report of {COUNT:,} cases: write", report["write"], "s", "<=", 3),
        Figure("report: read and checked", report["read"], "s", "<=", 10),
        Figure("report: peak memory while gathered and written", report["held"] / 2**20, "MiB", "<=", 512),
        Figure("report: peak memory with reading", report["peak"] / 2**20, "MiB", "<=", 1024),
        Figure(f"staged run, {WORKERS} workers: cases", run, "cases", ">=", RUN),
        Figure("staged run: cases a second", rate, "cases/s"),
        Figure("staged run: peak memory of the controller", controller / 2**20, "MiB", "<=", 512),
        Figure("staged run: peak memory of a worker", worker / 2**20, "MiB", "<=", 512),
    ]


def _told(script: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", PEAK + script, *arguments], capture_output=True, text=True, check=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def _run(folder: Path) -> tuple[int, float, int, int]:
    """Cases, cases a second by the report, and peak resident bytes of the controller and of the largest worker."""
    staged = {"PYTHONPATH": str(STAGE), "PYTEST_PLUGINS": "staged", "MLX_ASSAY_STAGE": json.dumps({"cases": RUN})}
    command = [sys.executable, str(STAGE / "staged.py"), "run", "-n", str(WORKERS)]
    with subprocess.Popen(command, env=os.environ | staged, stdout=subprocess.DEVNULL, cwd=folder) as run:
        sampler = Sampler(run.pid)
        sampler.start()
        _, _, used = os.wait4(run.pid, 0)
        sampler.stopped.set()
        sampler.join()
    report = json.loads((folder / "mlx-assay-report.json").read_bytes())
    if not report["complete"]:
        raise RuntimeError(f"Expected a complete run but got {report['totals']}")
    own = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return report["totals"]["executed"], report["totals"]["executed"] / report["seconds"], own, sampler.peak
