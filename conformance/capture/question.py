"""A question to a device: operands, a piece of Metal text, and which results mean what."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

UNKNOWN = "unknown"
REFUSED = "refused"
LEFT_OUT = "left out"

Kind = Literal["f32", "f16", "bf16", "u32"]
Group = Literal["scalar", "lanes", "simdgroups", "exited", "own"]
Words = tuple[int, ...]
_NAN = {"f32": (0x7F800000, 0x7FC00000), "f16": (0x7C00, 0x7E00), "bf16": (0x7F80, 0x7FC0)}
_SIGN = {"f32": 1 << 31, "f16": 1 << 15, "bf16": 1 << 15}


@dataclass(frozen=True, eq=False)
class Question:
    """`source` reads the operands a[0], a[1] ... and writes the results r[0], r[1] ..., all as words of 32 bits.

    In a group of lanes `lane` is the thread's index in its simdgroup, `at` that in the threadgroup. `answers` are the
    results of each behaviour that is known; results of a float kind are compared with every NaN as one. `host` is what
    the host executor answers: one answer, or one for each value of the switch `follows`.
    """

    name: str
    about: str
    kind: Kind
    operands: Words
    count: int
    source: str
    answers: Mapping[str, Words] | Callable[[Words], str]
    host: str | Mapping[str, str]
    follows: str = ""
    group: Group = "scalar"

    @property
    def digits(self) -> int:
        """Hex digits of an encoding."""
        return 4 if self.kind in ("f16", "bf16") else 8

    def answer(self, results: Words) -> str:
        """What these bits mean; "unknown" where no known behaviour gives them."""
        if callable(self.answers):
            return self.answers(results)
        plain = canonical(self.kind, results)
        for answer, expected in self.answers.items():
            if canonical(self.kind, expected) == plain:
                return answer
        return UNKNOWN

    def predicted(self, switches: Mapping[str, str]) -> str:
        """The host executor's answer under these switches; empty where the switch that decides is unknown."""
        return self.host if isinstance(self.host, str) else self.host.get(switches[self.follows], "")


def canonical(kind: Kind, words: Sequence[int]) -> Words:
    """The words with one NaN for all where they are floats."""
    if kind == "u32":
        return tuple(words)
    infinity, nan = _NAN[kind]
    return tuple(nan if word & ~_SIGN[kind] > infinity else word for word in words)


def f32(*values: float) -> Words:
    """Encodings of numbers that float32 holds exactly."""
    return tuple(struct.unpack("<I", struct.pack("<f", value))[0] for value in values)


def f16(*values: float) -> Words:
    """Encodings of numbers that float16 holds exactly."""
    return tuple(struct.unpack("<H", struct.pack("<e", value))[0] for value in values)


def bf16(*values: float) -> Words:
    """Encodings of numbers that bfloat16 holds exactly."""
    return tuple(word >> 16 for word in f32(*values))
