"""The command that runs a case again, made anew from what a report says: no report may say what a person is to type."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mlx_assay.conformance.record import Record, replay_command
from mlx_assay.conformance.reporting.report import Report

BUILT_IN = "mlx_assay.impl"
"""What a report calls the implementation where none was asked for."""
FLAGS = ("--implementation", "--executor", "--profile")


def tail(record: Record) -> str | None:
    """What stands behind the case in a record's command; None where its beginning is another."""
    head = replay_command(record.id)
    return record.replay[len(head) :] if record.replay.startswith(head) else None


def sound(text: str, report: Report) -> bool:
    """Whether the tail of a command is the one that this suite would write for a run as the report tells of it."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    checked = len(words) % 2 == 1 and words[-1] == "--checked"
    given = _pairs(words[:-1] if checked else words)
    implementation, executor, profile = (given.get(flag) for flag in FLAGS)
    name = report.implementation.name
    return (
        implementation == (name if implementation or name != BUILT_IN else None)
        and executor in (None, report.executor.name)
        and checked is (report.executor.details.get("checked") == "yes")
        and replay_command("", implementation, executor, profile, checked) == replay_command("") + text
    )


def _pairs(words: Sequence[str]) -> dict[str, str]:
    """Options by name; whatever else there is shows where the command is made anew."""
    return dict(zip(words[::2], words[1::2], strict=False))
