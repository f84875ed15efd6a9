"""The document of a capture: one canonical JSON file that can be sent, compared line by line, and accepted."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any, Literal

import msgspec

SCHEMA: Literal["urn:mlx-assay:capture:1"] = "urn:mlx-assay:capture:1"
PROBES = 1
"""The version of the probes: their texts, operands and names. Captures of different versions are not compared."""

HOST = "host"
"""The device class of a capture that the host executor made: it says nothing of any GPU."""

_SEAL = re.compile(rb'"seal": "[0-9a-f]*"')

Bits = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{4}|[0-9a-f]{8})?$")]
BitString = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{4,8}( [0-9a-f]{4,8})*)?$", max_length=8192)]
Text = Annotated[str, msgspec.Meta(max_length=400)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 32)]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
Words = Annotated[dict[Name, Text], msgspec.Meta(max_length=64)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Probe(_Part, frozen=True):
    """One question to the device: operands and results as hex encodings, and what they mean.

    `answer` follows from the bits and from nothing else: it is "unknown" where no known behaviour gives them, "refused"
    where the device did not run the kernel (`refusal` holds its words), and "left out" where it was not asked.
    """

    name: Name
    operands: BitString
    results: BitString
    answer: Text
    refusal: Text = ""


class Worst(_Part, frozen=True):
    """Where a function is farthest from its correctly rounded value: encodings of the function's dtype."""

    argument: Bits
    result: Bits
    reference: Bits


class Sweep(_Part, frozen=True):
    """One function over every encoding of a half type, or over the stream of 2^20 float32 encodings.

    `digest` is SHA-256 of the results' encodings in order, little endian, every NaN as one. `normal` counts arguments
    that are zero or normal and whose correctly rounded value is normal. Of those, `inexact` have another result,
    `lost` one that is NaN, infinite, zero or denormal, and `worst_ulp` is the largest distance among all but `lost`.
    `special` counts the other arguments whose result is not the correctly rounded one: denormal, infinite or NaN ones,
    and results that vanish, overflow or are no number.
    """

    function: Literal["exp", "exp2", "log", "rsqrt", "sin", "tanh"]
    way: Literal["precise", "fast", "plain"]
    dtype: Literal["float16", "bfloat16", "float32"]
    digest: Digest
    arguments: Count
    normal: Count
    inexact: Count
    lost: Count
    special: Count
    worst_ulp: Count
    worst: Worst | None = None


class Switches(_Part, frozen=True):
    """What the probes say for each switch of the host executor: one of its values, or "unknown"."""

    contraction: Literal["on", "off", "unknown"]
    f32_denormals: Literal["flushed", "kept", "unknown"]
    simd_sum: Literal["ascending-butterfly", "descending-butterfly", "sequential", "reverse-sequential", "unknown"]


class Capture(_Part, frozen=True):
    """A whole capture. `device_class` is "host", or the architecture of a GPU as MLX names it.

    `beyond_host` names probes whose answers the host executor cannot give under `switches`. `captured` is UTC,
    ISO 8601. `seal` is SHA-256 of the file with the seal left empty: it tells damage and hand edits, and proves no
    origin.
    """

    schema: Literal["urn:mlx-assay:capture:1"]
    probes_version: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
    seal: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?$")]
    captured: Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")]
    device_class: Name
    device: Words
    executor: Words
    system: Words
    switches: Switches
    beyond_host: Annotated[list[Name], msgspec.Meta(max_length=200)]
    probes: Annotated[list[Probe], msgspec.Meta(max_length=200)]
    sweeps: Annotated[list[Sweep], msgspec.Meta(max_length=100)]

    @property
    def hardware(self) -> bool:
        """Whether a GPU gave these answers; only then may they become goldens of a device class."""
        return self.device_class != HOST


def encode(capture: Capture) -> bytes:
    """The one file of these contents, sealed: two-space indents, keys in the structs' order, one newline at its end."""
    empty = _text(msgspec.structs.replace(capture, seal=""))
    return _text(msgspec.structs.replace(capture, seal=seal(empty)))


def seal(document: bytes) -> str:
    """SHA-256 of a document whose own seal counts as empty."""
    return hashlib.sha256(_SEAL.sub(b'"seal": ""', document, count=1)).hexdigest()


def schema() -> dict[str, Any]:
    """The JSON Schema of a capture, as published in capture.schema.json."""
    generated = msgspec.json.schema(Capture)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **generated}


def _text(capture: Capture) -> bytes:
    return msgspec.json.format(msgspec.json.encode(capture), indent=2) + b"\n"
