"""Encodings: the sign, exponent and mantissa of a hex bit string, its value, and the distance between two."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

LONG = 1_000_000
"""From this distance on nobody counts, and three signs say how far it is."""
HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")


@dataclass(frozen=True)
class Format:
    """A binary interchange format of IEEE 754's kind: a sign bit, then so many bits of exponent and of mantissa."""

    exponent: int
    mantissa: int

    @property
    def width(self) -> int:
        """Bits of an encoding."""
        return 1 + self.exponent + self.mantissa


FORMATS = {
    "bfloat16": Format(8, 7),
    "float16": Format(5, 10),
    "float32": Format(8, 23),
    "float64": Format(11, 52),
}
INTEGERS = {"int8": 8, "uint8": 8, "int32": 32, "uint32": 32, "int64": 64}


@dataclass(frozen=True)
class Word:
    """One encoding as it is shown: hex text, bits in groups (sign, exponent, mantissa; one group for integers), value.

    `groups` is empty where the dtype is unknown or the text is no encoding of it.
    """

    text: str
    groups: tuple[str, ...] = ()
    value: str = ""
    ordinal: int | None = None


def word(text: str, dtype: str) -> Word:
    """Reads a hex bit string of a dtype; a text that is none stays a text."""
    if not HEX.fullmatch(text):
        return Word(text)
    number = int(text, 16)
    if dtype in INTEGERS:
        return _integer(text, number, dtype)
    layout = FORMATS.get(dtype)
    if layout is None or number.bit_length() > layout.width:
        return Word(text, value=str(number))
    bits = f"{number:0{layout.width}b}"
    groups = (bits[0], bits[1 : 1 + layout.exponent], bits[1 + layout.exponent :])
    value = _value(number, layout)
    return Word(text, groups, _shown(value, dtype), None if math.isnan(value) else _ordinal(number, layout))


def _integer(text: str, number: int, dtype: str) -> Word:
    width = INTEGERS[dtype]
    if number.bit_length() > width:
        return Word(text)
    signed = number - (1 << width) if dtype.startswith("int") and number >> (width - 1) else number
    return Word(text, (f"{number:0{width}b}",), str(signed))


def _value(number: int, layout: Format) -> float:
    """Exact for every format of 64 bits at most."""
    sign = -1.0 if number >> (layout.width - 1) else 1.0
    exponent = number >> layout.mantissa & (1 << layout.exponent) - 1
    mantissa = number & (1 << layout.mantissa) - 1
    bias = (1 << layout.exponent - 1) - 1
    if exponent == (1 << layout.exponent) - 1:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - bias - layout.mantissa)
    return sign * math.ldexp(mantissa + (1 << layout.mantissa), exponent - bias - layout.mantissa)


def _shown(value: float, dtype: str) -> str:
    """As many digits as tell a value of the format from its neighbours."""
    return f"{value:.17g}" if dtype == "float64" else f"{value:.9g}"


def _ordinal(number: int, layout: Format) -> int:
    """Representable values between this one and +0, negative below; both zeros are 0."""
    magnitude = number & (1 << layout.width - 1) - 1
    return -magnitude if number >> (layout.width - 1) else magnitude


def apart(got: Word, want: Word) -> str:
    """`+3 ULP`, signed as got - want; for NaN and for zeros of two signs a word; empty for integers."""
    if not got.groups or not want.groups or len(got.groups) == 1:
        return ""
    if got.ordinal is None or want.ordinal is None:
        return "no distance"
    distance = got.ordinal - want.ordinal
    if not distance:
        return "zeros of two signs" if got.text != want.text else ""
    return f"{distance:+,} ULP" if abs(distance) < LONG else f"{shortened(distance)} ULP"


def shortened(number: int) -> str:
    """A distance with its sign, from 10,000 on in thousands: k, M, G, T and so on."""
    size = abs(number)
    power = (len(str(size)) - 1) // 3 if size >= 10_000 else 0
    scaled = size / 1000**power
    shown = f"{scaled:.1f}" if power and scaled < 10 else f"{scaled:.0f}"
    return f"{'-' if number < 0 else '+' if number else ''}{shown}{['', *'kMGTPE'][power]}"


def runs(groups: tuple[str, ...], other: tuple[str, ...]) -> list[list[tuple[str, bool]]]:
    """Each group as runs of bits, and whether they differ from those of `other` at the same places."""
    if [len(group) for group in groups] != [len(group) for group in other]:
        return [[(group, False)] for group in groups]
    split = []
    for own, opposite in zip(groups, other, strict=True):
        pieces: list[tuple[str, bool]] = []
        for bit, against in zip(own, opposite, strict=True):
            differs = bit != against
            if pieces and pieces[-1][1] is differs:
                pieces[-1] = (pieces[-1][0] + bit, differs)
            else:
                pieces.append((bit, differs))
        split.append(pieces)
    return split
