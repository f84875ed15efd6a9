"""The verb `adapter-check`: tells the author of a program from outside what it does wrong."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mlx_assay.conformance.adapters import bits, greeting, manners
from mlx_assay.conformance.adapters.channel import found, nearby
from mlx_assay.conformance.adapters.examination import Examination, Examiner
from mlx_assay.conformance.adapters.target import NoTarget, target
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.process.implementation import TOLD, Implementation
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.reporting.report import EXIT_CODES
from mlx_assay.conformance.verbs.refusal import Refusal

Say = Callable[[str], object]


def adapter_check(text: str, limit: float, as_json: bool, say: Say = print) -> int:
    """Takes every step and tells what was found; returns the exit code. `limit` is in seconds, for each answer."""
    try:
        argv = target(text).argv
    except NoTarget as error:
        raise Refusal(str(error)) from error
    if not argv:
        raise Refusal(f"Expected a program, as 'cmd: bun adapter.ts', but got {text!r}")
    if found(argv[0]) is None:
        raise Refusal(f"Expected a program on the PATH or by its path but got {argv[0]!r}{nearby(argv[0])}")
    examination = examined(argv, limit)
    if as_json:
        say(msgspec.json.format(msgspec.json.encode(examination), indent=2).decode())
    else:
        for line in told(examination):
            say(printable(line))
    return EXIT_CODES[examination.verdict]


STEPS: tuple[tuple[str, str, Callable[[Examiner], None], bool], ...] = (
    ("start", "the answer to `start`, field by field", greeting.greet, False),
    ("answers", "seq, one line an answer, the file `out`, the same twice", manners.answers, True),
    ("unknown operation", "an operation that it never named", manners.strange_operation, False),
    ("unknown order", "an order that the protocol does not have", manners.strange_order, False),
    ("echo", "every bit of every dtype there and back", bits.echo, False),
    ("stop", "its end at `stop`, and where standard input ends", manners.farewell, False),
    ("again", "several at a time, and a start after a kill", manners.again, False),
    ("cases", "a case of each operation and dtype, judged", bits.cases, True),
)
"""Name, what it looks at, and whether it needs an operation that a contract knows."""


def examined(argv: tuple[str, ...], limit: float) -> Examination:
    """Every step; those behind the first need a program that starts."""
    described = Implementation(None).environment["executor"]
    examiner = Examiner(argv, {key: str(described[key]) for key in TOLD if key in described}, limit)
    for name, looks_at, step, asks in STEPS:
        there = name == STEPS[0][0] or examiner.started is not None
        examiner.take(name, looks_at, step, needed=there and (not asks or bool(manners.questions(examiner))))
    return examiner.examination()


def told(examination: Examination) -> list[str]:
    """The examination in lines."""
    lines = []
    if examination.started is not None:
        who = examination.started
        lines.append(f"{who.name} {who.version}, {who.runtime}, {who.device}: {', '.join(who.operations)}")
    labels = {"ok": "ok", "advice": "advice", "fault": "FAULT", "not-run": "not run"}
    for step in examination.steps:
        lines.append(f"{labels[step.state]:8}{step.name}: {step.looks_at}")
        for remark in examination.remarks:
            if remark.step == step.name:
                what = remark.what.replace("\n", "\n           ")
                lines += [f"        {remark.number}. {what}", f"           mend: {remark.mend}"]
    weights = [remark.weight for remark in examination.remarks]
    counts = f"{counted(weights.count('fault'), 'fault')}, {counted(weights.count('advice'), 'piece')} of advice"
    return [*lines, f"{examination.verdict}: {counts}"]
