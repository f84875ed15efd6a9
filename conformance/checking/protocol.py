"""What the process that runs a script tells of it: one JSON line a message, bounded, decoded strictly."""

from __future__ import annotations

import msgspec

from mlx_assay.conformance.checking.report import Diagnostic, Location, Problem, Sensitivity

LINE_LIMIT = 1 << 18
"""Bytes that one line may have."""

MOST_FINDINGS = 1000
"""Different findings that are kept; more are counted."""

MOST_KERNELS = 10_000
TEXT_LIMIT = 1000
"""Characters of any one text."""


class Foul(Exception):
    """The channel carries what the process never sends."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a script is to be run: what to check, under which schedules, how long a launch may take in seconds.

    `skipped` are digests of kernels that ended their process before, and shall not run again. `offspring` is a folder
    where processes tell that the script starts, `start` the one from which files are named.
    """

    target: str
    arguments: list[str] = []
    kernels: list[str] = []
    schedules: list[str] = []
    skipped: list[str] = []
    launch_limit: float = 60.0
    sensitivity: bool = False
    offspring: str = ""
    start: str = ""
    profile: str = ""


class _Message(msgspec.Struct, frozen=True, tag_field="is", tag=str.lower, forbid_unknown_fields=True):
    pass


class Refused(_Message, frozen=True):
    """The target is not there: nothing ran."""

    message: str


class Began(_Message, frozen=True):
    """The script is about to run, on an executor that describes itself so."""

    executor: dict[str, str]


class Defined(_Message, frozen=True):
    """A kernel is launched for the first time; the first one is number 0. `digest` is of its whole definition."""

    digest: str
    name: str
    location: Location | None
    checked: bool
    transcendentals: list[str]
    accumulations: list[str] = []


class Launched(_Message, frozen=True):
    """A launch of a kernel begins, in a thread; `site` is the line of Python that called it."""

    kernel: int
    thread: int
    site: Location | None = None


class Returned(_Message, frozen=True):
    """The thread's launch has ended."""

    thread: int


class Met(_Message, frozen=True):
    """A finding, new or with a count that has grown; the first one is number 0."""

    number: int
    finding: Diagnostic


class Dropped(_Message, frozen=True):
    """How many findings there were beyond MOST_FINDINGS."""

    count: int


class Sensed(_Message, frozen=True):
    """How a kernel's outputs depend on switches, over all launches so far."""

    kernel: int
    sensitivity: list[Sensitivity]


class Stumbled(_Message, frozen=True):
    """What keeps the script from being checked to its end."""

    problem: Problem


class Ended(_Message, frozen=True):
    """The script came to its end by itself."""


Message = Refused | Began | Defined | Launched | Returned | Met | Dropped | Sensed | Stumbled | Ended

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def line(message: Message) -> bytes:
    """One message with its newline."""
    return _encoder.encode(message) + b"\n"


def decode(text: bytes) -> Message:
    """One message; msgspec.DecodeError for anything else."""
    return _decoder.decode(text)
