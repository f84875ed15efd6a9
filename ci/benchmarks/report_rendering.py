"""How long a page takes of a report of 10,000 cases, 200 of which fail with all that can be told of them."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from figure import Figure

from mlx_assay.conformance.record import Bar, Diagnosis, Difference, Map, Pattern, Place, Record, replay_command
from mlx_assay.conformance.reporting.report import (
    ContractRecord,
    Environment,
    Executor,
    Implementation,
    OracleState,
    Report,
    SelectionRecord,
    Source,
    Suite,
    Totals,
    encode,
    outcome,
)
from mlx_assay.conformance.verdict import Verdict

CASES, FAILING = 10_000, 200
ROWS, COLUMNS = 64, 64
OPERATIONS = ("apply_token_bitmask", "logit_softcap", "trellis_fold", "down_codebook_row")
DIGITS = {"bfloat16": 4, "float16": 4, "float32": 8}
LIE: dict[str, Callable[[int, int, random.Random], int]] = {
    "last columns": lambda row, column, _: 64 if column >= COLUMNS - 2 else 0,
    "one row": lambda row, column, _: 40 if row == 17 else 0,
    "some tiles": lambda row, column, _: 64 if (row // 16 + column // 16) % 3 == 1 else 0,
    "some lanes": lambda row, column, _: 2 if column % 2 else 1,
    "anywhere": lambda row, column, draw: draw.choice((0, 0, 1, 3, 9, 64)),
}
"""How many of a cell's 64 places differ, by row and column of the cell."""
ORACLES = ("stock-mlx", "numpy-reference", "torch-reference")
MEASURE = """
import resource, sys
from mlx_assay.conformance.cli import main
code = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak if sys.platform == "darwin" else peak * 1024)
sys.exit(code)
"""


def report(cases: int = CASES, failing: int = FAILING) -> Report:
    """A report that any seed makes alike: every `cases / failing`th case differs, each with a full pattern."""
    draw = random.Random(0)
    step = cases // failing if failing else cases + 1
    records = [record(number, draw, number % step == 0 and number // step < failing) for number in range(cases)]
    return Report(
        schema="urn:mlx-assay:report:1",
        run="5f0c8a4e",
        leg="host",
        started="2026-11-30T11:00:00+00:00",
        seconds=184.2,
        suite=Suite(version="0.1.0", fixtures="0" * 64, judge="1" * 64),
        source=Source(commit="0123456789abcdef0123456789abcdef01234567"),
        environment=Environment(
            python="CPython 3.11.7",
            platform="Linux-6.1-x86_64",
            machine="x86_64",
            packages={"mlx": "0.32.4", "numpy": "2.4.6"},
            graph_compiler="/usr/bin/g++",
            device="Device(cpu, 0)",
            device_class="host-x86_64",
            oracles={name: OracleState(state="ok", version="1.0") for name in ORACLES},
        ),
        implementation=Implementation(name="my_kernels", operations=list(OPERATIONS), details={"name": "my_kernels"}),
        executor=Executor(name="host", details={"compiler_version": "clang version 22.1.8"}),
        selection=SelectionRecord(queries=[], tier="full", seed=0),
        totals=Totals.of(cases, records),
        complete=True,
        verdict=outcome(cases, records, True),
        contracts={
            name: ContractRecord(
                summary=f"What {name} promises.", rules={"2": "Ties go to the lowest id."}, relaxations=[]
            )
            for name in OPERATIONS
        },
        cases=records,
    )


def record(number: int, draw: random.Random, fails: bool) -> Record:
    """The case of a number."""
    operation = OPERATIONS[number % len(OPERATIONS)]
    dtype = list(DIGITS)[number // len(OPERATIONS) % len(DIGITS)]
    case_id = f"{operation}/{dtype}/kind-{number % 37}/oddity?rows={number % 9 + 1}&vocab={number}&seed=0"
    replay = replay_command(case_id, "my_kernels")
    return Record(
        id=case_id,
        operation=operation,
        dtype=dtype,
        tags=["ties", "odd-shape"],
        why="Hunts a tile's tail that is read, or written, as if the tile were whole.",
        verdict=Verdict.DIFFERS if fails else Verdict.SAME_BITS,
        conforms=not fails,
        oracle="stock-mlx",
        oracles=list(ORACLES),
        missing=[],
        subcases=8,
        seconds=0.02,
        replay=replay,
        message=f"{operation}[{dtype} 64x4096] at [0, 17]: got 1 want 2\n  executor host · {replay}" if fails else "",
        difference=difference(dtype, draw) if fails else None,
        output="warning: something was printed\n" * 4 if fails else "",
        tensors=f"report.tensors/{number}.safetensors" if fails else "",
    )


def difference(dtype: str, draw: random.Random) -> Difference:
    """A difference with as many places, bars, cells and diagnoses as are kept."""
    bits = DIGITS[dtype] * 4
    lies = draw.choice(list(LIE.values()))
    counts = [lies(row, column, draw) for row in range(ROWS) for column in range(COLUMNS)]
    bars = [Bar(2**power, 2 ** (power + 1) - 1, draw.randrange(1, 5000)) for power in range(12)]
    pattern = Pattern(
        dtype=dtype,
        shape=[64, 4096],
        diagnoses=list(diagnoses(sum(counts))),
        histogram=[Bar(-bar.most, -bar.least, bar.count) for bar in reversed(bars)] + bars,
        without_distance=7,
        map=Map(rows=ROWS, columns=COLUMNS, row_extent=1, column_extent=64, counts=counts),
    )
    places = [
        Place([0, 17 + 33 * n], *(f"0x{draw.getrandbits(bits):0{bits // 4}x}" for _ in range(2))) for n in range(5)
    ]
    return Difference(
        subcase="lead-0",
        oracle="stock-mlx 0.32.4 cpu",
        count=sum(counts),
        total=64 * 4096,
        worst_ulp=8191,
        places=places,
        explanation="tie lost: scores 0xc105 = 0xc105",
        policy="same-bits",
        rule="2",
        pattern=pattern,
    )


def diagnoses(count: int) -> Iterator[Diagnosis]:
    """Some of each kind."""
    yield Diagnosis("tail", "Every difference lies in the last columns, 4064 to 4095, which fill no whole tile.", count)
    yield Diagnosis("lane", "Every 33rd element differs: one lane of a simdgroup is off.", count // 2)
    yield Diagnosis("rounding", "The values are those of a result that was rounded once less.", count // 3)


def measure() -> Iterator[Figure]:
    """Seconds, peak memory and size, in a fresh process each."""
    with tempfile.TemporaryDirectory() as folder:
        source, page = Path(folder, "report.json"), Path(folder, "report.html")
        source.write_bytes(encode(report()))
        began = time.perf_counter()
        command = [sys.executable, "-c", MEASURE, "report", str(source), "--html", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - began
        yield Figure("page of 10,000 cases, 200 failing", seconds, "s", "<=", 5)
        yield Figure("its peak memory", int(done.stdout.split()[-1]) / 2**20, "MiB", "<=", 300)
        yield Figure("its size", page.stat().st_size / 1e6, "MB", "<=", 2)
        yield Figure("the report's own size", source.stat().st_size / 1e6, "MB")


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode(report()))
