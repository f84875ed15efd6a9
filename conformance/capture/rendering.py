"""A capture as text for a person."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from mlx_assay.conformance.capture.comparison import circumstances, differences, measured, unasked
from mlx_assay.conformance.capture.document import Capture, Probe
from mlx_assay.conformance.capture.question import REFUSED, UNKNOWN
from mlx_assay.conformance.capture.questions import BY_NAME

_BITS_SHOWN = 100


def shown(capture: Capture) -> Iterator[str]:
    """The lines of `--show`."""
    yield from _head(capture)
    for group, probes in groupby(capture.probes, key=lambda probe: probe.name.partition(".")[0]):
        yield ""
        yield group
        for probe in probes:
            yield f"  {probe.name}: {_answered(probe)}    [{BY_NAME[probe.name].about}]"
    yield ""
    if not capture.sweeps:
        yield "no sweeps"
        return
    yield "sweeps, against correctly rounded values"
    for sweep in capture.sweeps:
        yield f"  {sweep.way} {sweep.function} of {sweep.dtype}: {measured(sweep)}"


def summary(capture: Capture) -> Iterator[str]:
    """What is worth telling once a capture is made."""
    yield from _head(capture)
    unknown = [probe.name for probe in capture.probes if probe.answer == UNKNOWN]
    refused = [probe for probe in capture.probes if probe.answer == REFUSED and not probe.name.startswith("limits.")]
    if unknown:
        yield f"unknown (the bits are in the file): {', '.join(unknown)}"
    for probe in refused:
        yield f"refused: {probe.name}: {probe.refusal}"


def compared(one: Capture, other: Capture) -> tuple[list[str], bool]:
    """The lines of `--compare`, and whether the two answer alike in all that both were asked."""
    found = differences(one, other)
    lines = [f"beside the answers, {line}" for line in circumstances(one, other)]
    if missing := unasked(one, other):
        lines.append(f"asked of one alone, so not compared: {', '.join(missing)}")
    lines += found
    lines.append(f"{len(found)} answers differ" if found else "the two answer alike in every bit")
    return lines, not found


def _head(capture: Capture) -> Iterator[str]:
    device = capture.device.get("device_name", "unknown device")
    yield (
        f"{capture.device_class}: {device}, {capture.system.get('os', '?')}, MLX {capture.executor.get('mlx', '?')}, "
        f"{capture.captured}"
    )
    if not capture.hardware:
        yield "made by the host executor: it says how this suite computes on a CPU, and nothing of any GPU"
    switches = capture.switches
    yield (
        f"switches: contraction {switches.contraction}, f32 denormals {switches.f32_denormals}, "
        f"simd_sum {switches.simd_sum}"
    )
    if capture.beyond_host:
        yield f"beyond the host executor's switches: {', '.join(capture.beyond_host)}"


def _answered(probe: Probe) -> str:
    if probe.answer == REFUSED:
        return f"refused: {probe.refusal}"
    if probe.answer == UNKNOWN:
        bits = probe.results if len(probe.results) <= _BITS_SHOWN else f"{probe.results[:_BITS_SHOWN]} ..."
        return f"unknown: {bits}"
    return probe.answer
