"""Making a capture: every probe and sweep on one executor, with what is known of the machine."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from mlx_assay.conformance.capture.document import HOST, PROBES, SCHEMA, Capture, Probe, Switches
from mlx_assay.conformance.capture.machine import Refused, asked
from mlx_assay.conformance.capture.question import LEFT_OUT, REFUSED, Question, Words
from mlx_assay.conformance.capture.questions import QUESTIONS, switches
from mlx_assay.conformance.capture.sweeps import swept
from mlx_assay.impl import executors

SWEEPS = "sweeps"
"""The name by which all sweeps are left out."""

PRIVATE = frozenset({"compiler"})
"""What an executor says of itself and a file that is sent does not: paths."""

_TEXT = 400


def capture(executor: str, without: Sequence[str] = (), say: Callable[[str], object] = lambda text: None) -> Capture:
    """Asks the executor everything but what `without` names: globs over names of probes, or "sweeps".

    UnknownExecutor, ExecutorUnavailable: see executors.use. ValueError: a name in `without` that names nothing.
    """
    checked(without)
    with executors.use(executor):
        say(f"{len(QUESTIONS)} probes on {executor}")
        probes = recorded([question for question in QUESTIONS if not _left_out(question.name, without)])
        found = [probes.get(question.name) or left_out(question) for question in QUESTIONS]
        sweeps = []
        if not _left_out(SWEEPS, without):
            say("sweeps of functions")
            sweeps = list(swept())
        described = executors.describe(executor)
        answers = {probe.name: probe.answer for probe in found}
        held = switches(answers)
        return Capture(
            schema=SCHEMA,
            probes_version=PROBES,
            seal="",
            captured=datetime.now(UTC).isoformat(timespec="seconds"),
            device_class=device_class(executor),
            device=_plain(_device()),
            executor=_plain({key: value for key, value in described.items() if key not in PRIVATE}),
            system=_plain(_system()),
            switches=Switches(**held),  # type: ignore[arg-type]
            beyond_host=beyond_host(answers, held),
            probes=found,
            sweeps=sweeps,
        )


def checked(without: Sequence[str]) -> None:
    """ValueError names a pattern that fits no probe."""
    for pattern in without:
        if not any(fnmatchcase(name, pattern) for name in (SWEEPS, *(question.name for question in QUESTIONS))):
            raise ValueError(
                f"Expected the name of a probe, a glob over them, or {SWEEPS!r} to leave out, but got {pattern!r}: "
                "mlx-assay capture --show FILE names them"
            )


def _left_out(name: str, without: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in without)


def recorded(questions: Sequence[Question]) -> dict[str, Probe]:
    """The questions' probes, on the current executor."""
    return {question.name: _probe(question, results) for question, results in asked(questions)}


def left_out(question: Question) -> Probe:
    """The probe of a question that was not asked."""
    return Probe(name=question.name, operands=bit_string(question.operands, 8), results="", answer=LEFT_OUT)


def beyond_host(answers: Mapping[str, str], held: Mapping[str, str]) -> list[str]:
    """Probes whose answers the host executor does not give under these switches, those that were not asked left out.

    Where a switch is unknown, the host keeps its own, and what follows the switch is beyond it.
    """
    return [
        question.name
        for question in QUESTIONS
        if answers[question.name] != LEFT_OUT and answers[question.name] != question.predicted(held)
    ]


def bit_string(words: Words, digits: int) -> str:
    """Encodings as hex, a space between them."""
    return " ".join(f"{word:0{digits}x}" for word in words)


def device_class(executor: str) -> str:
    """ "host", or the architecture of the GPU as MLX names it, in small letters."""
    if executor == "host":
        return HOST
    import mlx.core as mx

    name = str(mx.device_info().get("architecture", "")).lower()
    return re.sub(r"[^a-z0-9._-]", "-", name)[:64].lstrip("._-") or "metal"


def _probe(question: Question, results: Words | Refused) -> Probe:
    operands = bit_string(question.operands, 8)
    if isinstance(results, Refused):
        return Probe(name=question.name, operands=operands, results="", answer=REFUSED, refusal=str(results))
    return Probe(
        name=question.name,
        operands=operands,
        results=bit_string(results, question.digits),
        answer=question.answer(results),
    )


def _device() -> dict[str, object]:
    import mlx.core as mx

    return dict(mx.device_info())


def _system() -> dict[str, str]:
    macos = platform.mac_ver()[0]
    return {
        "os": f"macOS {macos}" if macos else f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "python": platform.python_version(),
        "mlx-assay": _version(),
    }


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("mlx-assay")
    except PackageNotFoundError:
        return "unknown"


def _plain(words: Mapping[str, object]) -> dict[str, str]:
    """Sorted, with names as the schema has them and values that can be printed."""
    plain = {}
    for key in sorted(words):
        value = "".join(letter if letter.isprintable() else "?" for letter in str(words[key]))[:_TEXT]
        plain[re.sub(r"[^a-z0-9._-]", "-", key.lower()).lstrip("._-")[:64]] = value
    return plain
