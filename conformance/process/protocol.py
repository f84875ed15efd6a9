"""What the judge and the process of an implementation say to each other: one JSON line a message."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

LINE_LIMIT = 1 << 20
"""Bytes that one line may have; whoever sends more is not the server."""

TEXT_LIMIT = 4000
"""Characters of a message or a traceback that are sent."""


class TensorArgument(msgspec.Struct, frozen=True, tag_field="is", tag="tensor", forbid_unknown_fields=True):
    """An array: where its base lies in the arena, and how to view and hand it out (see fixtures.tensor.Tensor)."""

    offset: int
    dtype: str
    shape: list[int]
    steps: tuple[tuple[str, tuple[Any, ...]], ...]
    kind: str


class PlainArgument(msgspec.Struct, frozen=True, tag_field="is", tag="plain", forbid_unknown_fields=True):
    """A Python value; floats travel as hex text, since JSON has neither infinities nor NaN."""

    type: str
    text: str

    @classmethod
    def make(cls, value: float | int | str | None) -> PlainArgument:
        """Writes a value down."""
        return cls(type(value).__name__, value.hex() if isinstance(value, float) else str(value))

    @property
    def value(self) -> float | int | str | bool | None:
        """The value again."""
        match self.type:
            case "float":
                return float.fromhex(self.text)
            case "int":
                return int(self.text)
            case "bool":
                return self.text == "True"
            case "NoneType":
                return None
        return self.text


Argument = TensorArgument | PlainArgument
Spent = dict[str, tuple[int, float, float]]


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of a case: which subcase, and where output and the inputs as they are afterwards go in the arena.

    With `overwrite`, host arrays (NumPy, torch) get other content between the call and the evaluation of its result.
    `schedule` is the order in which the host executor runs the threads of a threadgroup.
    """

    subcase: int
    poison: int
    output: int
    capacity: int
    after: int
    overwrite: bool
    schedule: Literal["in-order", "reverse"]


class ProgramStart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program that stands for what would be imported: its command line, its folder, and what it is told.

    `executor` is what the executor says of itself, `parameters` the names of each operation's arguments. An answer may
    take `seconds`, or with 0 as long as the case.
    """

    argv: list[str]
    folder: str
    executor: dict[str, str]
    parameters: dict[str, list[str]]
    seconds: float = 0.0


class Start(msgspec.Struct, frozen=True, tag_field="says", tag="start", forbid_unknown_fields=True):
    """The first message to the child: what to import, where its kernels run, and with which switches.

    `record` is a folder for a file a call that tells of its launches; empty for none.
    `checked` is how long, in seconds, a run of a launch may take under the checker; 0: kernels run without it.
    `timed` asks where the process's time goes.
    """

    target: str | None
    executor: str | None
    fidelity: dict[str, str]
    path: list[str]
    operations: list[str]
    program: ProgramStart | None = None
    record: str = ""
    checked: float = 0.0
    timed: bool = False


class Request(msgspec.Struct, frozen=True, tag_field="says", tag="request", forbid_unknown_fields=True):
    """One case: the arguments of each subcase, and the calls in order."""

    operation: str
    subcases: list[list[Argument]]
    calls: list[Call]


class Leave(msgspec.Struct, frozen=True, tag_field="says", tag="leave", forbid_unknown_fields=True):
    """No case comes any more: a program gets the time to end by itself. The answer is a Ready without operations."""


class Ready(msgspec.Struct, frozen=True, tag_field="says", tag="ready", forbid_unknown_fields=True):
    """The implementation is imported and has these operations; `details` are what a program says of itself.

    `spent` is where its time went, by stage (see impl.executors.stopwatch), in this and the next three since the last.
    """

    operations: list[str]
    details: dict[str, str] = {}
    spent: Spent = {}


class Refused(msgspec.Struct, frozen=True, tag_field="says", tag="refused", forbid_unknown_fields=True):
    """The implementation could not be imported."""

    message: str


class Returned(msgspec.Struct, frozen=True, tag_field="says", tag="returned", forbid_unknown_fields=True):
    """A call returned. `type` is empty for an mx.array; `written` says that its bytes lie in the arena.

    `launches` are those of kernels that ran under the checker.
    """

    call: int
    type: str
    dtype: str
    shape: list[int]
    written: bool
    launches: int = 0
    spent: Spent = {}


class Raised(msgspec.Struct, frozen=True, tag_field="says", tag="raised", forbid_unknown_fields=True):
    """A call raised. `bases` are the built-in exception types among the exception's bases."""

    call: int
    bases: list[str]
    type: str
    message: str
    traceback: str
    launches: int = 0
    spent: Spent = {}


class Found(msgspec.Struct, frozen=True, tag_field="says", tag="found", forbid_unknown_fields=True):
    """The checker found a fault in a kernel that the call launched, whatever the call came to; `text` tells of it."""

    call: int
    text: str
    launches: int
    spent: Spent = {}


class Ended(msgspec.Struct, frozen=True, tag_field="says", tag="ended", forbid_unknown_fields=True):
    """A program from outside serves no longer: what is said of the call, and why."""

    call: int
    verdict: Literal["error", "crashed", "timed-out"]
    message: str


Order = Start | Request | Leave
Reply = Ready | Refused | Returned | Raised | Found | Ended

encode_line = msgspec.json.Encoder().encode_lines
decode_order = msgspec.json.Decoder(Order, strict=True).decode
decode_reply = msgspec.json.Decoder(Reply, strict=True).decode


def line(message: msgspec.Struct) -> bytes:
    """One message as a line."""
    return encode_line([message])
