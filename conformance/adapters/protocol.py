"""What is said to a program from outside, and what it may answer: one JSON object a line, version 1.

docs/adapters.md is the page for authors, protocol.schema.json the JSON Schema of every message.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, Literal

import msgspec

VERSION: Literal[1] = 1

LINE_LIMIT = 1 << 20
"""Bytes that one line of a program may have, its line break left out."""

SAFE_INTEGER = 2**53 - 1
"""The largest size of an integer that JSON readers of every language keep."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Text = Annotated[str, msgspec.Meta(max_length=200)]
Bits = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]{16}$")]
Builtin = Literal["ValueError", "TypeError", "IndexError"]
"""Kinds of error that a contract can expect of a call: those of Python, whose words the contracts use."""


class TensorValue(msgspec.Struct, frozen=True, tag_field="is", tag="tensor", forbid_unknown_fields=True):
    """An argument that stands in the file `in`, under the parameter's name."""


class FloatValue(msgspec.Struct, frozen=True, tag_field="is", tag="float", forbid_unknown_fields=True):
    """A binary64 number as its 16 hex digits: JSON has no infinities, no NaN, and no bits."""

    bits: Bits


class IntegerValue(msgspec.Struct, frozen=True, tag_field="is", tag="integer", forbid_unknown_fields=True):
    """An integer of at most 53 bits."""

    value: Annotated[int, msgspec.Meta(ge=-SAFE_INTEGER, le=SAFE_INTEGER)]


class BooleanValue(msgspec.Struct, frozen=True, tag_field="is", tag="boolean", forbid_unknown_fields=True):
    """True or false."""

    value: bool


class TextValue(msgspec.Struct, frozen=True, tag_field="is", tag="text", forbid_unknown_fields=True):
    """A name, such as one of a dtype."""

    value: str


class NoneValue(msgspec.Struct, frozen=True, tag_field="is", tag="none", forbid_unknown_fields=True):
    """An argument that is left out: Python's None."""


Value = TensorValue | FloatValue | IntegerValue | BooleanValue | TextValue | NoneValue


class Start(msgspec.Struct, frozen=True, tag_field="cmd", tag="start", forbid_unknown_fields=True):
    """The first message. `executor` is what this suite's machine says of itself, on which bits may depend."""

    protocol: Literal[1]
    executor: dict[str, str]


class Run(
    msgspec.Struct,
    frozen=True,
    tag_field="cmd",
    tag="run",
    forbid_unknown_fields=True,
    rename={"input": "in", "output": "out"},
):
    """One call: arguments by name, in the order of the contract, and two absolute paths of safetensors files."""

    seq: int
    operation: str
    parameters: dict[str, Value]
    input: str
    output: str


class Stop(msgspec.Struct, frozen=True, tag_field="cmd", tag="stop", forbid_unknown_fields=True):
    """The last message: the program ends by itself, within two seconds."""


Order = Start | Run | Stop


class Started(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to `start`: who the program is and which operations it has.

    `plans` says that it may answer with launch plans.
    """

    protocol: Literal[1]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    version: Text
    runtime: Text
    device: Text
    operations: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=256)]
    mlx: Text | msgspec.UnsetType = msgspec.UNSET
    plans: bool = False


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to `run`: the number that was sent, and exactly one of `ok`, `unsupported`, `error` and `plan`.

    `type` stands beside `error` where it is of a kind that a contract can expect.
    """

    seq: int
    ok: Literal[True] | msgspec.UnsetType = msgspec.UNSET
    unsupported: str | msgspec.UnsetType = msgspec.UNSET
    error: str | msgspec.UnsetType = msgspec.UNSET
    type: Builtin | msgspec.UnsetType = msgspec.UNSET
    plan: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        given = [name for name in ("ok", "unsupported", "error", "plan") if getattr(self, name) is not msgspec.UNSET]
        if len(given) != 1:
            told = " and ".join(given) or "none of them"
            raise ValueError(f"Expected exactly one of `ok`, `unsupported`, `error` and `plan` but got {told}")
        if self.type is not msgspec.UNSET and self.error is msgspec.UNSET:
            raise ValueError("Expected `type` beside `error` alone")


encode = msgspec.json.Encoder().encode
decode_started = msgspec.json.Decoder(Started, strict=True).decode
decode_answer = msgspec.json.Decoder(Answer, strict=True).decode


def value(given: float | int | str | bool | None) -> Value:
    """A plain argument as it is sent; OverflowError for an integer that JSON readers do not keep."""
    match given:
        case None:
            return NoneValue()
        case bool():
            return BooleanValue(given)
        case int():
            if abs(given) > SAFE_INTEGER:
                raise OverflowError(f"Expected an integer of at most 53 bits but got {given}")
            return IntegerValue(given)
        case float():
            return FloatValue(f"0x{struct.pack('>d', given).hex()}")
    return TextValue(given)


def schema() -> dict[str, Any]:
    """The JSON Schema of every message, as published in protocol.schema.json."""
    (orders, started, answer), definitions = msgspec.json.schema_components(
        [Order, Started, Answer], ref_template="#/$defs/{name}"
    )
    one = [{"required": [name]} for name in ("ok", "unsupported", "error", "plan")]
    answered = definitions["Answer"]
    answered |= {"oneOf": one, "dependentRequired": {"type": ["error"]}}
    answered["properties"]["plan"] = {"type": "object", "description": "A launch plan, as plan.schema.json has it."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:mlx-assay:adapter:{VERSION}",
        "title": "Messages between mlx-assay and a program from outside, one a line",
        "oneOf": [orders, started, answer],
        "$defs": definitions,
    }
