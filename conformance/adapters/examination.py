"""An examination of a program from outside: what each step found, as a person or a program reads it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from mlx_assay.conformance.adapters.channel import Broken
from mlx_assay.conformance.adapters.conversation import Arguments, Conversation, Heard
from mlx_assay.conformance.adapters.protocol import Started
from mlx_assay.conformance.quotation import legible

SCHEMA: Literal["urn:mlx-assay:adapter-check:1"] = "urn:mlx-assay:adapter-check:1"
WHAT_LIMIT = 2000

MENDS = {
    "error": "write nothing but answers to standard output, one line each; logs belong on standard error",
    "crashed": "find out why it ended; what it wrote to standard error is shown above, if it wrote anything",
    "timed-out": "answer every order, and flush standard output after each line",
}


class Remark(msgspec.Struct, frozen=True):
    """One thing to mend. A `fault` costs verdicts; `advice` does not, and says what will one day."""

    number: int
    step: str
    weight: Literal["fault", "advice"]
    what: str
    mend: str


class StepRecord(msgspec.Struct, frozen=True):
    """One step: what it looks at, and how it came out."""

    name: str
    looks_at: str
    state: Literal["ok", "advice", "fault", "not-run"]
    seconds: float


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. It is `incomplete` where no step found a fault but some could not be taken."""

    schema: Literal["urn:mlx-assay:adapter-check:1"] = SCHEMA
    program: list[str]
    started: Started | None
    steps: list[StepRecord]
    remarks: list[Remark]
    verdict: Literal["conforms", "differs", "incomplete"]


class Examiner:
    """Takes steps, one program a conversation, and gathers remarks. `operations` is known once the program started."""

    def __init__(self, argv: tuple[str, ...], executor: Mapping[str, str], limit: float) -> None:
        self.argv = argv
        self.executor = executor
        self.limit = limit
        self.started: Started | None = None
        self.remarks: list[Remark] = []
        self.steps: list[StepRecord] = []
        self._step = ""
        self._untaken = False

    @property
    def operations(self) -> list[str]:
        """Those that the program named."""
        return list(self.started.operations) if self.started else []

    def take(self, name: str, looks_at: str, step: Callable[[Examiner], None], *, needed: bool) -> None:
        """Takes a step, unless something that it needs is not there."""
        if not needed:
            self._untaken = True
            self.steps.append(StepRecord(name, looks_at, "not-run", 0.0))
            return
        self._step, before, began = name, len(self.remarks), time.perf_counter()
        step(self)
        weights = {remark.weight for remark in self.remarks[before:]}
        state: Literal["ok", "advice", "fault"] = (
            "fault" if "fault" in weights else "advice" if "advice" in weights else "ok"
        )
        self.steps.append(StepRecord(name, looks_at, state, round(time.perf_counter() - began, 3)))

    def fault(self, what: str, mend: str) -> None:
        """Notes what costs verdicts."""
        self._remark("fault", what, mend)

    def advise(self, what: str, mend: str) -> None:
        """Notes what may one day."""
        self._remark("advice", what, mend)

    def leave_out(self, why: str) -> None:
        """Notes what could not be looked at, by no fault of the program."""
        self._untaken = True
        self.advise(f"not judged: {why}", "mlx-assay doctor names what is missing here")

    def talk(self, body: Callable[[Conversation], None], *, started: bool = True) -> None:
        """Talks to a fresh program; what breaks the conversation is a fault. `started`: it has answered `start`."""
        try:
            with self.conversation() as conversation:
                try:
                    if started:
                        conversation.start()
                    body(conversation)
                except Broken as broken:
                    told = conversation.errors
                    shown = f"; on standard error:\n{told}" if told else ""
                    self.fault(f"{broken.message}{shown}", MENDS[broken.verdict])
        except Broken as broken:
            self.fault(broken.message, MENDS[broken.verdict])

    def conversation(self) -> Conversation:
        """A fresh program, which has not been told anything."""
        return Conversation(self.argv, self.executor, self.limit)

    def asked(self, conversation: Conversation, operation: str, arguments: Arguments, seq: int) -> Heard:
        """Asks, and notes what is wrong with the answer whatever was asked."""
        heard = conversation.ask(operation, arguments, seq)
        if heard.answer.seq != seq:
            self.fault(
                f"asked with seq {seq}, {operation} was answered with seq {heard.answer.seq}",
                "answer with the `seq` of the order, not with a count of your own",
            )
        if heard.fault:
            self.fault(
                f"{operation}: {heard.fault}", "write one tensor as a safetensors file to the path `out`, then answer"
            )
        if not heard.input_kept:
            self.advise(f"{operation}: the file `in` was changed or moved", "leave `in` alone: it is removed anyway")
        return heard

    def examination(self) -> Examination:
        """All that was found."""
        found = any(remark.weight == "fault" for remark in self.remarks)
        verdict: Literal["conforms", "differs", "incomplete"] = (
            "differs" if found else "incomplete" if self._untaken else "conforms"
        )
        return Examination(
            program=list(self.argv), started=self.started, steps=self.steps, remarks=self.remarks, verdict=verdict
        )

    def _remark(self, weight: Literal["fault", "advice"], what: str, mend: str) -> None:
        text = legible(what, WHAT_LIMIT)
        if same := [known for known in self.remarks if known.what == text]:
            if same[0].step == self._step:
                return
            text = f"as number {same[0].number} says"
        self.remarks.append(Remark(len(self.remarks) + 1, self._step, weight, text, mend))
