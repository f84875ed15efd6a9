"""Sweeps on a Dask cluster of processes: workers are killed meanwhile, and every chunk is counted once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="NOT RUN: sweeps on a cluster: the extra dask is not installed")

SWEEP = "compiled_logit_softcap/float32/every/encoding?cap=30"
CHUNKS = 6
HERE = Path(__file__).parent
PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from distributed import LocalCluster

def killed(cluster, journal):
    # Two workers, one after the other, each in the middle of the campaign.
    for count in (1, 3):
        while len(list(journal.glob("*/*.json"))) < count:
            time.sleep(0.02)
        process = next(iter(cluster.workers.values())).process
        print("killed", process.pid, flush=True)
        os.kill(process.pid, signal.SIGKILL)

if __name__ == "__main__":
    from mlx_assay.conformance.cli import main
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        journal = Path("mlx-assay-sweep")
        threading.Thread(target=killed, args=(cluster, journal), daemon=True).start()
        code = main(["sweep", sys.argv[1], "--executor", "host", "--chunks", "0:" + sys.argv[2],
                     "--scheduler", cluster.scheduler_address])
    sys.exit(code)
"""


def test_killed_workers_lose_nothing(tmp_path: Path) -> None:
    program = tmp_path / "cluster.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), SWEEP, str(CHUNKS)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(line.startswith("killed ") for line in done.stdout.splitlines()) == 2
    found = json.loads((tmp_path / "mlx-assay-sweep.json").read_text())
    (swept,) = found["sweeps"]
    assert (found["verdict"], found["complete"], swept["chunks_judged"]) == ("conforms", True, CHUNKS)
    assert swept["judged"] == swept["asked"] == CHUNKS << 22
    assert swept["lost"] == []
    names = sorted(path.name for path in (tmp_path / "mlx-assay-sweep").glob("*/*.json"))
    assert names == [f"{index:08d}.json" for index in range(CHUNKS)]
