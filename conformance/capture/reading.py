"""Reading a capture that somebody sent: nothing in it is believed that can be told from its bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mlx_assay.conformance.capture.document import HOST, PROBES, Capture, Probe, Sweep, encode, seal
from mlx_assay.conformance.capture.question import LEFT_OUT, REFUSED, Question, Words
from mlx_assay.conformance.capture.questions import QUESTIONS, switches
from mlx_assay.conformance.capture.recording import beyond_host, bit_string

SIZE_LIMIT = 1 << 20
_MEND = "ask for the file again, as the capture wrote it"


class BadCapture(ValueError):
    """A file that is no capture of these probes, was damaged or edited, or says what its bits do not."""


def read(path: str | Path) -> Capture:
    """The capture in a file; BadCapture names the file and what is wrong with it."""
    try:
        with open(path, "rb") as file:
            document = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise BadCapture(f"{path}: expected a file to read but: {error.strerror}") from error
    try:
        return decode(document)
    except BadCapture as error:
        raise BadCapture(f"{path}: {error}") from error


def decode(document: bytes) -> Capture:
    """The capture in a document; BadCapture says what came, what was expected, and what mends it."""
    if len(document) > SIZE_LIMIT:
        raise BadCapture(f"expected at most {SIZE_LIMIT} bytes but got more: no capture is so large")
    try:
        version = msgspec.json.decode(document, type=_Version)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCapture(f"expected a capture in JSON but got something else ({error}): {_MEND}") from error
    if version.probes_version != PROBES:
        raise BadCapture(
            f"expected probes of version {PROBES} but got {version.probes_version}: read it with the release of "
            "mlx-assay that made it, or capture again with this one"
        )
    try:
        capture = msgspec.json.decode(document, type=Capture)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCapture(f"expected a capture but got something else ({error}): {_MEND}") from error
    if capture.seal != seal(document):
        raise BadCapture(f"expected contents of the seal {capture.seal[:12]}... but got others: {_MEND}")
    if encode(capture) != document:
        raise BadCapture(f"expected the canonical form of these contents but got another: {_MEND}")
    for problem in _problems(capture):
        raise BadCapture(f"{problem}: this file says what a capture never does")
    return capture


class _Version(msgspec.Struct):
    probes_version: int


def _problems(capture: Capture) -> Iterator[str]:
    for text in _texts(capture):
        if not text.isprintable():
            yield f"expected printable text but got {text!r}"
    try:
        datetime.fromisoformat(capture.captured)
    except ValueError:
        yield f"expected a date but got {capture.captured!r}"
    made = capture.executor.get("executor")
    if (made == "host") != (capture.device_class == HOST) or made not in ("host", "metal"):
        yield f"expected the device class of what executor {made!r} runs on but got {capture.device_class!r}"
    if [probe.name for probe in capture.probes] != [question.name for question in QUESTIONS]:
        yield "expected every probe of this version, once, in order, but got others"
        return
    for probe, question in zip(capture.probes, QUESTIONS, strict=True):
        yield from _probe(probe, question)
    answers = {probe.name: probe.answer for probe in capture.probes}
    held = switches(answers)
    if (said := msgspec.structs.asdict(capture.switches)) != held:
        yield f"expected the switches that the probes show, {_told(held)}, but got {_told(said)}"
    if capture.beyond_host != beyond_host(answers, held):
        yield "expected 'beyond_host' to name the probes that the host executor answers otherwise but got others"
    yield from _sweeps(capture.sweeps)


def _told(held: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in held.items())


def _texts(capture: Capture) -> Iterator[str]:
    for words in (capture.device, capture.executor, capture.system):
        yield from words.values()
    for probe in capture.probes:
        yield from (probe.answer, probe.refusal)


def _probe(probe: Probe, question: Question) -> Iterator[str]:
    if probe.operands != bit_string(question.operands, 8):
        yield f"expected the operands of probe {probe.name} as this version asks it but got others"
    if probe.answer in (REFUSED, LEFT_OUT):
        if probe.results or bool(probe.refusal) != (probe.answer == REFUSED):
            yield f"expected no results of probe {probe.name}, which was {probe.answer}, but got some"
        return
    words = words_of(probe)
    if len(words) != question.count or probe.results != bit_string(words, question.digits) or probe.refusal:
        yield f"expected {question.count} results of {question.digits} hex digits of probe {probe.name} but got others"
        return
    if (answer := question.answer(words)) != probe.answer:
        yield f"expected the answer of probe {probe.name} that its bits show, {answer!r}, but got {probe.answer!r}"


def words_of(probe: Probe) -> Words:
    """The results as words."""
    return tuple(int(word, 16) for word in probe.results.split())


def _sweeps(sweeps: list[Sweep]) -> Iterator[str]:
    from mlx_assay.conformance.capture.sweeps import asked

    if not sweeps:
        return
    if [(sweep.function, sweep.way, sweep.dtype) for sweep in sweeps] != list(asked()):
        yield "expected every sweep of this version, once, in order, or none, but got others"
        return
    for sweep in sweeps:
        for holds, expected in _rules(sweep):
            if not holds():
                name = f"{sweep.way} {sweep.function} of {sweep.dtype}"
                yield f"expected {expected} in the sweep of {name} but got something else"
                break


def _rules(sweep: Sweep) -> Iterator[tuple[Callable[[], bool], str]]:
    from mlx_assay.conformance.capture.sweeps import stream

    yield lambda: sweep.arguments == stream(sweep.dtype).size, "the stream's count of arguments"
    yield lambda: sweep.lost <= sweep.inexact <= sweep.normal <= sweep.arguments, "parts no larger than the whole"
    yield lambda: sweep.special <= sweep.arguments - sweep.normal, "no more special arguments than there are"
    yield lambda: (sweep.worst_ulp > 0) == (sweep.worst is not None), "the worst place where there is a distance"
    yield lambda: (sweep.worst_ulp > 0) == (sweep.inexact > sweep.lost), "a distance where results are inexact"
    yield lambda: sweep.worst is None or _worst(sweep), "a worst place that has this distance"


def _worst(sweep: Sweep) -> bool:
    """Whether the argument is one of the stream, the reference its correctly rounded value, and the distance theirs."""
    from mlx_assay.conformance.capture.reference import rounded
    from mlx_assay.conformance.capture.sweeps import DTYPES, ordinary, stream
    from mlx_assay.conformance.judging.ulp import distances

    assert sweep.worst is not None
    dtype = DTYPES[sweep.dtype]
    digits = 2 * dtype.itemsize
    told = (sweep.worst.argument, sweep.worst.result, sweep.worst.reference)
    if any(len(text) != digits for text in told):
        return False
    words: np.dtype[Any] = np.dtype(f"u{dtype.itemsize}")
    argument, result, reference = (np.array([int(text, 16)], words).view(dtype) for text in told)
    known = stream(sweep.dtype).view(words)
    true = rounded(sweep.function, argument)
    return (
        bool(np.any(known == argument.view(words)))
        and bool(ordinary(argument, true)[0])
        and int(true.view(words)[0]) == int(reference.view(words)[0])
        and int(distances(result, reference)[0]) == sweep.worst_ulp
    )
