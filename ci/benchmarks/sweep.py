"""The sweep of all float32 inputs of the fused softcap, oracles included, on two processes: wall time and CPU time."""

from __future__ import annotations

import os
import time

from figure import Figure

CHUNKS = 64
PROCESSES = 2
SWEEP = "compiled_logit_softcap/float32/every/encoding?cap=30"


def measure() -> list[Figure]:
    """Millions of inputs a second once the workers have begun, and what 2^32 inputs take at that rate."""
    import msgspec

    from mlx_assay.conformance.process.descendants import descendants
    from mlx_assay.conformance.sweeping.campaign import Campaign, Job
    from mlx_assay.conformance.sweeping.catalogue import sweep_of
    from mlx_assay.conformance.sweeping.scheduler import processes
    from mlx_assay.conformance.sweeping.worker import Order

    sweep = sweep_of(SWEEP)
    wrong: list[object] = []

    def order(job: Job) -> bytes:
        asked = {"sweep": SWEEP, "index": job.index, "implementation": None, "executor": "host"}
        return msgspec.json.encode(Order(**asked, limit=60.0, every=False, path=[]))

    scheduler = processes(PROCESSES)
    try:
        run = Campaign(
            scheduler,
            order,
            lambda _, chunk: None if chunk.verdict == "same-bits" else wrong.append(chunk),
            lambda job, reason: wrong.append((job, reason)),
        )
        run.run((Job(sweep, index) for index in range(4 * PROCESSES)), lambda: False)
        at_work = descendants(os.getpid())
        spent, began = _seconds(at_work), time.perf_counter()
        run.run((Job(sweep, index) for index in range(CHUNKS)), lambda: False)
        wall, cpu = time.perf_counter() - began, _seconds(at_work) - spent
    finally:
        scheduler.close()
    if wrong:
        raise RuntimeError(f"Expected the built-in softcap to conform but got {wrong[0]}")
    inputs = CHUNKS * sweep.step * sweep.size
    whole = sweep.inputs / inputs
    return [
        Figure("f32 softcap sweep, 2 processes, wall", inputs / wall / 1e6, "M inputs/s", ">=", 20),
        Figure("2^32 inputs at that rate", whole * wall / 60, "min", "<=", 5),
        Figure("f32 softcap sweep, CPU time of all processes", 1e9 * cpu / inputs, "ns/input"),
        Figure("at two whole cores that is", PROCESSES * inputs / cpu / 1e6, "M inputs/s"),
        Figure("load of the machine, one minute", os.getloadavg()[0], ""),
    ]


def _seconds(processes: list[int]) -> float:
    """CPU time of some processes so far; Linux alone tells."""
    total = 0
    for pid in processes:
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")
