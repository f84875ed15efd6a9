"""What a program from outside costs beside its own time: a call from the judge to it and back, and its start."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import msgspec
import numpy as np
from figure import Figure

from mlx_assay.conformance.adapters import folder
from mlx_assay.conformance.adapters.channel import environment
from mlx_assay.conformance.adapters.program import Program
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.fixtures.tensor import DTYPES, Tensor

PYTHON = """
import json, sys
for line in sys.stdin:
    order = json.loads(line)
    if order["cmd"] == "stop":
        break
    if order["cmd"] == "start":
        told = {"protocol": 1, "name": "e", "version": "1", "runtime": "r", "device": "d", "operations": ["echo"]}
    else:
        with open(order["in"], "rb") as file:
            data = file.read()
        with open(order["out"], "wb") as file:
            file.write(data)
        told = {"seq": order["seq"], "ok": True}
    print(json.dumps(told), flush=True)
"""
SCRIPT = """
import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  if (order.cmd === "stop") break;
  let told = { protocol: 1, name: "e", version: "1", runtime: "r", device: "d", operations: ["echo"] };
  if (order.cmd === "run") {
    writeFileSync(order.out, readFileSync(order.in));
    told = { seq: order.seq, ok: true };
  }
  writeSync(1, JSON.stringify(told) + "\\n");
}
"""
SHAPES = ((4, 4096), (1, 128256))
CALLS = 10
BATCHES = 60
STARTS = 7


def measure() -> list[Figure]:
    """The fastest of some batches on both sides, since what else runs only ever adds."""
    with tempfile.TemporaryDirectory() as place:
        python, script = Path(place, "echo.py"), Path(place, "echo.mjs")
        python.write_text(PYTHON)
        script.write_text(SCRIPT)
        programs = {"Python": (sys.executable, "-S", "-E", str(python))}
        programs |= {name: (path, str(script)) for name in ("node", "bun") if (path := shutil.which(name))}
        return [figure for name, argv in programs.items() for figure in _program(name, argv, Path(place))]


def _program(name: str, argv: tuple[str, ...], place: Path) -> list[Figure]:
    figures = []
    for shape in SHAPES:
        array = np.zeros(shape, DTYPES["bfloat16"])
        bare, direct, judged = _bare(argv, array, place), _direct(argv, array), _judged(argv, array)
        size = "x".join(map(str, shape))
        figures += [
            Figure(f"{name}: a call of its own, bfloat16 {size}", bare, "µs"),
            Figure(f"{name}: written, asked and read back, beside it", direct - bare, "µs", "<=", 1000),
            Figure(f"{name}: from the judge and back, beside it", judged - bare, "µs"),
        ]
    started, alone = _fastest(lambda: _start(argv), STARTS), _fastest(lambda: _bare_start(argv), STARTS)
    return [
        *figures,
        Figure(f"{name}: its own start", alone, "ms"),
        Figure(f"{name}: start, beside its own", started - alone, "ms", "<=", 50),
    ]


def _fastest(act: Callable[[], object], times: int) -> float:
    """Milliseconds."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        found.append(1000 * (time.perf_counter() - began))
    return min(found)


def _bare(argv: tuple[str, ...], array: np.ndarray, place: Path) -> float:
    """A call of the program: the same line and file each time, and nobody who looks at the answer.

    The output is a new file each time: some file systems wait for the disk where one is cut and written again.
    """
    given, made = place / "in", place / "out"
    given.write_bytes(bytes(array.nbytes + 96))
    order = {"cmd": "run", "seq": 1, "operation": "echo", "in": str(given), "out": str(made)}
    line = msgspec.json.encode(order) + b"\n"
    with _bare_process(argv) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def calls() -> None:
            for _ in range(CALLS):
                process.stdin.write(line)
                process.stdin.flush()
                process.stdout.readline()
                made.unlink()

        return 1000 * _fastest(calls, BATCHES) / CALLS


def _direct(argv: tuple[str, ...], array: np.ndarray) -> float:
    """A call through the functions that the judge's child process has."""
    scratch = folder.create()
    program = Program(argv, scratch, {}, {"echo": ("x",)})
    program.allow(array.nbytes)
    echo, given = program.functions()["echo"], mx.array(array.view(np.uint16)).view(mx.bfloat16)

    def calls() -> None:
        for _ in range(CALLS):
            mx.eval(echo(given))

    try:
        return 1000 * _fastest(calls, BATCHES) / CALLS
    finally:
        program.stop()
        folder.remove(scratch)


def _judged(argv: tuple[str, ...], array: np.ndarray) -> float:
    """A call of a case with many subcases, each called twice."""
    arguments = [[Tensor(array)]] * (CALLS // 2)
    with Implementation(f"cmd: {shlex.join(argv)}", operations=["echo"]) as implementation:
        assert implementation.operations

        def case() -> None:
            run = implementation.begin("echo", arguments)
            assert all(outcome.array is not None for outcome in run.complete())
            implementation.finish(run)

        return 1000 * _fastest(case, BATCHES) / CALLS


def _start(argv: tuple[str, ...]) -> None:
    scratch = folder.create()
    program = Program(argv, scratch, {}, {})
    program.kill()
    folder.remove(scratch)


def _bare_start(argv: tuple[str, ...]) -> None:
    with _bare_process(argv) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"cmd":"start"}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.kill()


def _bare_process(argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
    told = environment(tempfile.gettempdir())
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=told)
