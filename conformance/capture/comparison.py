"""What differs between two captures, in words."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_assay.conformance.capture.document import Capture, Probe, Sweep
from mlx_assay.conformance.capture.question import LEFT_OUT, REFUSED, UNKNOWN, Question, canonical
from mlx_assay.conformance.capture.questions import BY_NAME
from mlx_assay.conformance.capture.reading import words_of

SHOWN = 8
"""Places of differing results that are shown."""


def differences(one: Capture, other: Capture) -> list[str]:
    """A line for each probe and sweep that differs; two NaN are the same. Empty where the devices answer alike."""
    lines: list[str] = []
    for probe, second in zip(one.probes, other.probes, strict=True):
        lines += _probe(probe, second, BY_NAME[probe.name])
    return [*lines, *_sweeps(one.sweeps, other.sweeps)]


def circumstances(one: Capture, other: Capture) -> list[str]:
    """A line for each thing beside the answers that differs: device, versions, system, date."""
    lines = []
    for part in ("device_class", "captured"):
        if (a := getattr(one, part)) != (b := getattr(other, part)):
            lines.append(f"{part.replace('_', ' ')}: {a} and {b}")
    for part in ("device", "executor", "system"):
        first, second = getattr(one, part), getattr(other, part)
        for key in sorted(first.keys() | second.keys()):
            if (a := first.get(key, "(not said)")) != (b := second.get(key, "(not said)")):
                lines.append(f"{part} {key}: {a} and {b}")
    return lines


def unasked(one: Capture, other: Capture) -> list[str]:
    """Names of probes, and "sweeps", that only one of the two was asked: of them nothing is said."""
    names = [
        probe.name
        for probe, second in zip(one.probes, other.probes, strict=True)
        if (probe.answer == LEFT_OUT) != (second.answer == LEFT_OUT)
    ]
    return [*names, *(["sweeps"] if bool(one.sweeps) != bool(other.sweeps) else [])]


def _probe(one: Probe, other: Probe, question: Question) -> Iterator[str]:
    if LEFT_OUT in (one.answer, other.answer):
        return
    head = f"{one.name} ({question.about}): "
    if REFUSED in (one.answer, other.answer):
        if one.answer != other.answer:
            yield f"{head}{_answered(one)} and {_answered(other)}"
        return
    first, second = (canonical(question.kind, words_of(probe)) for probe in (one, other))
    if first == second:
        return
    if one.answer == other.answer and one.answer != UNKNOWN:
        yield f"{head}both {one.answer}, with other bits: {_places(one, other, question)}"
    elif one.answer == other.answer:
        yield f"{head}both unknown, with other bits: {_places(one, other, question)}"
    else:
        yield f"{head}{_answered(one)} and {_answered(other)}: {_places(one, other, question)}"


def _answered(probe: Probe) -> str:
    return f"refused ({probe.refusal})" if probe.answer == REFUSED else probe.answer


def _places(one: Probe, other: Probe, question: Question) -> str:
    first, second = (canonical(question.kind, words_of(probe)) for probe in (one, other))
    apart = [place for place, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    shown = [
        f"[{place}] {first[place]:0{question.digits}x} and {second[place]:0{question.digits}x}"
        for place in apart[:SHOWN]
    ]
    more = f", and {len(apart) - SHOWN} more" if len(apart) > SHOWN else ""
    return f"{', '.join(shown)}{more}"


def _sweeps(one: list[Sweep], other: list[Sweep]) -> Iterator[str]:
    if not one or not other:
        return
    for a, b in zip(one, other, strict=True):
        if a.digest != b.digest:
            yield f"{a.way} {a.function} of {a.dtype}: {measured(a)} and {measured(b)}"


def measured(sweep: Sweep) -> str:
    """A sweep's accuracy in words."""
    parts = [f"{sweep.inexact} of {sweep.normal} inexact, at most {sweep.worst_ulp} ULP"]
    if sweep.worst is not None:
        parts.append(f"(at {sweep.worst.argument}: {sweep.worst.result}, correctly {sweep.worst.reference})")
    if sweep.lost:
        parts.append(f"{sweep.lost} lost")
    if sweep.special:
        parts.append(f"{sweep.special} special otherwise")
    return " ".join(parts)
