"""`mlx-assay diff` of two reports of 10,000 cases, 200 failing in each: seconds from start to exit, and its memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from figure import Figure

from mlx_assay.conformance.options import Options
from mlx_assay.conformance.record import Difference, Place, Record, replay_command
from mlx_assay.conformance.reporting.report import encode
from mlx_assay.conformance.session import Session
from mlx_assay.conformance.verdict import Verdict

CASES, FAILING = 10_000, 200


def measure() -> list[Figure]:
    """Of the failing cases half are common, and half of these came with other bits."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old.json"), Path(folder, "new.json")
        old.write_bytes(document(range(FAILING), 1))
        new.write_bytes(document(range(FAILING // 2, FAILING // 2 + FAILING), 2))
        json, page = Path(folder, "diff.json"), Path(folder, "diff.md")
        command = [sys.executable, "-m", "mlx_assay.conformance.cli", "diff", str(old), str(new)]
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "--json", str(json), "--markdown", str(page)], stdout=subprocess.DEVNULL, check=False
        )
        seconds = time.perf_counter() - began
        if done.returncode != 1 or decode(json.read_bytes()) != {"newly-failing": 100, "newly-passing": 100}:
            raise RuntimeError(f"Expected a difference and exit code 1 but got {done.returncode}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return [
        Figure(f"diff: two reports of {CASES} cases", seconds, "s", "<=", 2),
        Figure("diff: memory", peak, "MiB"),
    ]


def decode(document: bytes) -> dict[str, int]:
    """Counts of changes by kind, those of zero left out."""
    counts = msgspec.json.decode(document)["counts"]
    return {kind: count for kind, count in counts.items() if count and kind != "still-failing"}


def document(failing: range, salt: int) -> bytes:
    """A report as a run writes it; `salt` is in the bits that came."""
    session = Session(Options())
    records = [record(number, number in failing, salt) for number in range(CASES)]
    session.declare([each.id for each in records])
    for each in records:
        session._keep(each)
    return encode(session.finish())


def record(number: int, failing: bool, salt: int) -> Record:
    case_id = f"normalized_argmax/bfloat16/ties/tiles?vocab={number}&seed=0"
    places = [Place([0, place], f"0x{number * salt % 65536:04x}", "0x3f80") for place in range(5)]
    return Record(
        id=case_id,
        operation="normalized_argmax",
        dtype="bfloat16",
        tags=["ties", "tiles"],
        why="Equal scores in different tiles of the vocabulary: the lowest id must win wherever it lies",
        verdict=Verdict.DIFFERS if failing else Verdict.SAME_BITS,
        conforms=not failing,
        oracle="stock-mlx",
        oracles=["stock-mlx", "numpy-reference", "torch-reference"],
        missing=[],
        subcases=4,
        seconds=0.01,
        replay=replay_command(case_id),
        message="got 1024 want 31" if failing else "",
        difference=Difference("a", "stock-mlx 0.32.4 cpu", 5, 1025, 7, places, "tie lost") if failing else None,
    )
