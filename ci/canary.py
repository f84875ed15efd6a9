#!/usr/bin/env python3
"""The canary: a tiny kernel whose answers are known, run in a process of its own before anything is judged.

python ci/canary.py [--executor metal|host] [--device-class GLOB] [--limit SECONDS] [--planted]

A GPU that gives no answer, another answer, or the right one only at first says nothing about kernels: the leg is then
incomplete (exit code 3), and the message says which of these it was. --planted runs a kernel that stores far beyond
its output instead, and asks that this end the process: only then does a validation layer see what cases do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ALIVE, INCOMPLETE = 0, 3
ROUNDS = 8
"""Kernels that are compiled and run one after the other: some virtual GPUs answer right once and never again."""

THREADS, GROUP, LANES = 256, 64, 32
SOURCE = """
    threadgroup uint kept[64];
    uint i = thread_position_in_grid.x;
    uint l = thread_position_in_threadgroup.x;
    kept[l] = seeds[i] * 1664525u + {round}u;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint turned = kept[63 - l];
    mixed[i] = turned ^ simd_sum(l);
    exact[i] = fma(float(turned & 2047u), 3.0f, -0.5f);
    halves[i] = half(turned & 1023u) * 2.0h + 1.0h;
    bfloats[i] = bfloat16_t(float(turned & 127u)) * bfloat16_t(2.0f);
"""
OUTPUTS = {"mixed": "uint32", "exact": "float32", "halves": "float16", "bfloats": "bfloat16"}
"""Each dtype that kernels are judged in: what no compiler of this machine takes is no kernel's fault."""

PLANTED = "mixed[thread_position_in_grid.x + (1u << 14)] = seeds[0];"
"""A store 64 KiB beyond an output of one kilobyte: near enough that a GPU may take it without a word."""

LIMIT = 300.0
"""Seconds. Where the compiler comes as a wheel, its first use on the host executor alone may take a minute."""

_KILL_SECONDS = 5


def expected(seeds: list[int], number: int) -> tuple[list[float], ...]:
    """What a round must give, in the order of OUTPUTS: integers modulo 2**32, and numbers that each dtype holds."""
    rows: list[tuple[float, ...]] = []
    for i in range(len(seeds)):
        group, lane = divmod(i, GROUP)
        turned = (seeds[group * GROUP + GROUP - 1 - lane] * 1664525 + number) % 2**32
        first = lane - lane % LANES
        mixed = turned ^ sum(range(first, first + LANES))
        rows.append((mixed, (turned & 2047) * 3.0 - 0.5, (turned & 1023) * 2.0 + 1.0, (turned & 127) * 2.0))
    return tuple(list(column) for column in zip(*rows, strict=True))


def child(executor: str, planted: bool) -> None:
    """Runs the kernels and prints one JSON object: what went wrong, if anything, and what the device is."""
    import mlx.core as mx

    from mlx_assay.conformance.reporting.device import device_class
    from mlx_assay.impl import metal_kernel
    from mlx_assay.impl.executors import choice, describe

    told: dict[str, Any] = {"absent": "", "fault": ""}
    try:
        with choice.use(executor), choice.guarded():
            told["class"] = device_class({"name": executor, **describe(executor)})
            seeds = [(i * 2654435761) % 2**32 for i in range(THREADS)]
            for number in range(1 if planted else ROUNDS):
                kernel = metal_kernel(
                    name=f"canary_{number}",
                    input_names=["seeds"],
                    output_names=list(OUTPUTS),
                    source=PLANTED if planted else SOURCE.replace("{round}", str(number)),
                )
                made = kernel(
                    inputs=[mx.array(seeds, dtype=mx.uint32)],
                    output_shapes=[(THREADS,)] * len(OUTPUTS),
                    output_dtypes=[getattr(mx, dtype) for dtype in OUTPUTS.values()],
                    grid=(THREADS, 1, 1),
                    threadgroup=(GROUP, 1, 1),
                )
                got = [array.tolist() for array in made]
                if not planted and (fault := compared(got, expected(seeds, number), number)):
                    told["fault"] = fault
                    break
    except choice.ExecutorUnavailable as error:
        told["absent"] = str(error)
    except Exception as error:
        told["fault"] = f"it raised {type(error).__name__}: {error}"
    print(json.dumps(told), flush=True)


def compared(got: list[Any], want: tuple[list[float], ...], number: int) -> str:
    """The first value that is wrong, in words; empty where all are right."""
    for name, ours, theirs in zip(OUTPUTS, got, want, strict=True):
        for i, (value, known) in enumerate(zip(ours, theirs, strict=True)):
            if value != known:
                return f"round {number + 1} of {ROUNDS} gave {name}[{i}] = {value} where {known} is known to be right"
    return ""


def asked(executor: str, limit: float, planted: bool) -> tuple[str, dict[str, Any]]:
    """How the child ended ("" for well) and what it told."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", "--executor", executor]
    process = subprocess.Popen(
        [*command, *(["--planted"] if planted else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        answer, noise = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_SECONDS)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        gone = "" if process.poll() is not None else ", and its process cannot even be killed"
        return f"gave no answer within {limit:g} s{gone}", {}
    try:
        told = json.loads(answer.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = " | ".join(noise.strip().splitlines()[-3:])
        return f"ended with status {process.returncode} before it answered{f': {last}' if last else ''}", {}
    return "", told


def verdict(arguments: argparse.Namespace) -> str:
    """Why the leg is incomplete, or nothing."""
    ended, told = asked(arguments.executor, arguments.limit, arguments.planted)
    fault = told.get("fault", "")
    if told.get("absent"):
        return f"{told['absent']}"
    if arguments.planted:
        if "no answer" in ended or not (ended or fault):
            return (
                f"a planted store beyond an output {ended or 'went by unseen'}: shader validation is not on, or does "
                "not stop the process, so that faults of cases would go unseen too. Look at ci/validation.sh."
            )
        return ""
    if ended:
        return f"the canary kernel {ended}: the GPU or its driver is wedged. Restart the machine before anything else."
    if fault:
        return f"the canary kernel cannot be trusted: {fault}. Restart the machine; if it stays so, take it out."
    if not fnmatchcase(told["class"], arguments.device_class):
        return (
            f"Expected a device of class {arguments.device_class!r} but got {told['class']!r}: correct the leg's "
            "device class or its runner labels."
        )
    print(f"canary: {arguments.executor} is alive, device class {told['class']}, {ROUNDS} rounds right")
    return ""


def main() -> int:
    """Asks a child and says what became of it."""
    parser = argparse.ArgumentParser(
        prog="ci/canary.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--executor", choices=("metal", "host"), default="metal")
    parser.add_argument("--device-class", metavar="GLOB", default="*", help="what the device must be (default: any)")
    parser.add_argument("--limit", type=float, metavar="SECONDS", default=LIMIT, help="until it counts as wedged")
    parser.add_argument("--planted", action="store_true", help="a stray store, which must end the process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.executor, arguments.planted)
        return ALIVE
    if why := verdict(arguments):
        print(f"canary: incomplete: {why}", file=sys.stderr)
        return INCOMPLETE
    if arguments.planted:
        print("canary: a planted stray store was seen, as it must be")
    return ALIVE


if __name__ == "__main__":
    sys.exit(main())
