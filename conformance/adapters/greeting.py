"""The step `start` of an examination: the answer field by field, and how fast it comes."""

from __future__ import annotations

import time
from difflib import get_close_matches
from typing import Any, get_type_hints

import msgspec

from mlx_assay.conformance.adapters.channel import shown
from mlx_assay.conformance.adapters.conversation import Conversation
from mlx_assay.conformance.adapters.examination import Examiner
from mlx_assay.conformance.adapters.protocol import Started
from mlx_assay.conformance.contract import contracts

SLOW_SECONDS = 2.0
"""A start that takes longer is worth a word: every process that judges waits for one, and again after a crash."""

ECHO = "echo"
MEND = "see the table of `start` in docs/adapters.md"


def greet(examiner: Examiner) -> None:
    """Starts the program; `examiner.started` is set where the answer is right."""
    examiner.talk(lambda conversation: _greeted(examiner, conversation), started=False)


def _greeted(examiner: Examiner, conversation: Conversation) -> None:
    line = conversation.start()
    seconds = time.monotonic() - conversation.began
    if _fields(examiner, line):
        examiner.started = msgspec.json.decode(line, type=Started)
        _operations(examiner, examiner.started)
    if seconds > SLOW_SECONDS:
        examiner.advise(
            f"the answer to `start` took {seconds:.1f} s",
            "answer first, and load what is large at the first `run` that needs it",
        )
    conversation.listen()


def _fields(examiner: Examiner, line: bytes) -> bool:
    """Whether the answer has every field as it must be; each that is not is a fault of its own."""
    before = len(examiner.remarks)
    try:
        said = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        examiner.fault(
            f"the first line is no JSON: {shown(line)}: {error}", "answer `start` before anything is printed"
        )
        return False
    if not isinstance(said, dict):
        examiner.fault(f"the answer to `start` is no JSON object: {shown(line)}", MEND)
        return False
    hints = get_type_hints(Started, include_extras=True)
    for field in msgspec.structs.fields(Started):
        if field.encode_name in said:
            _field(examiner, field.encode_name, said[field.encode_name], hints[field.name])
        elif field.required:
            examiner.fault(f"the answer to `start` has no field `{field.encode_name}`", MEND)
    for name in said.keys() - hints.keys():
        examiner.fault(f"the answer to `start` has a field {name!r} that the protocol does not know", "leave it out")
    return len(examiner.remarks) == before


def _field(examiner: Examiner, name: str, value: Any, wanted: Any) -> None:
    try:
        msgspec.convert(value, wanted, strict=True)
    except msgspec.ValidationError as error:
        examiner.fault(f"the field `{name}` of the answer to `start` is wrong: {error}", MEND)
        return
    if name in ("version", "runtime", "device") and not value:
        examiner.advise(f"the field `{name}` is empty", "say what a reader of the report needs to tell two runs apart")


def _operations(examiner: Examiner, started: Started) -> None:
    known = [*contracts(), ECHO]
    names = started.operations
    for name in sorted({name for name in names if names.count(name) > 1}):
        examiner.advise(f"the operation {name!r} is named twice", "name each operation once")
    for name in dict.fromkeys(names):
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"is {near[0]!r} meant?" if near else f"one of {', '.join(known)}"
            examiner.advise(f"no contract is called {name!r}: it is never asked for", hint)
    if not set(names) & set(contracts()):
        examiner.fault(
            "none of the operations has a contract: there is nothing to judge", f"of {', '.join(contracts())}"
        )
