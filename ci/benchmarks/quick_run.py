"""`mlx-assay run --tier quick -n 2`, caches warm and cold: cases, seconds, and the memory of a worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from figure import Figure

WORKERS = 2
SAMPLE_SECONDS = 0.25


def measure() -> list[Figure]:
    """A run that fills the caches and is not measured, a warm run, and a cold one with a cache folder of its own."""
    _run("argmax_given/*/ties/*", "apply_token_bitmask/*/mask/*")
    cases, seconds, memory = _run()
    with tempfile.TemporaryDirectory() as cache:
        _, cold, _ = _run(cache=cache)
    full = subprocess.run([*_command("list"), "--tier", "full"], capture_output=True, text=True, check=True)
    return [
        Figure("quick tier: cases", cases, "cases", ">=", 1500),
        Figure(f"quick tier, {WORKERS} workers, warm caches", seconds, "s", "<=", 60),
        Figure(f"quick tier, {WORKERS} workers, cold cache", cold, "s", "<=", 300),
        Figure("peak memory a worker, judge and implementation", memory / 2**20, "MiB", "<=", 1536),
        Figure("full tier: cases", len(full.stdout.splitlines()), "cases", ">=", 10000),
    ]


def _command(verb: str) -> list[str]:
    return [sys.executable, "-m", "mlx_assay.conformance.cli", verb]


def _run(*queries: str, cache: str = "") -> tuple[int, float, int]:
    """Cases executed, wall seconds from start to exit, and peak resident bytes of the largest worker."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *_command("run"),
            *queries,
            "--tier",
            "quick",
            "-n",
            str(WORKERS),
            "--report",
            f"{folder}/report.json",
        ]
        environment = os.environ | ({"MLX_ASSAY_CACHE": cache} if cache else {})
        began = time.perf_counter()
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as run:
            sampler = Sampler(run.pid)
            sampler.start()
            run.wait()
            sampler.stopped.set()
            sampler.join()
        seconds = time.perf_counter() - began
        report = json.loads(Path(folder, "report.json").read_bytes())
    if not report["complete"]:
        raise RuntimeError(f"Expected a complete run but got {report['totals']}")
    return report["totals"]["executed"], seconds, sampler.peak


class Sampler(threading.Thread):
    """Watches resident memory: a worker is a child of the run, with all that it has started."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self.peak = 0
        self._root = root

    def run(self) -> None:
        while not self.stopped.wait(SAMPLE_SECONDS):
            children, resident = _processes()
            for worker in children.get(self._root, []):
                self.peak = max(self.peak, _with_descendants(worker, children, resident))


def _processes() -> tuple[dict[int, list[int]], dict[int, int]]:
    """Children by parent, and resident bytes by process."""
    listed = subprocess.run(["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for line in listed.stdout.splitlines():
        process, parent, kibibytes = map(int, line.split())
        children.setdefault(parent, []).append(process)
        resident[process] = kibibytes * 1024
    return children, resident


def _with_descendants(process: int, children: dict[int, list[int]], resident: dict[int, int]) -> int:
    own = resident.get(process, 0)
    return own + sum(_with_descendants(child, children, resident) for child in children.get(process, []))
