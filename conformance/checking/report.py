"""The document of a check: one JSON object, from which text, SARIF and the exit code are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE
from mlx_assay.impl.executors.checker.finding import Severity

SCHEMA: Literal["urn:mlx-assay:check:1"] = "urn:mlx-assay:check:1"
Outcome = Literal["clean", "findings", "incomplete"]
EXIT_CODES: dict[Outcome, int] = {
    "clean": EXIT_CONFORMS,
    "findings": EXIT_DIFFERS,
    "incomplete": EXIT_INCOMPLETE,
}


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a file where the kernel's text was found there, else in the kernel's own text (`file` is empty then).

    `part` and `kernel_line` count within what metal_kernel was given: "source", "header", or an included header's name.
    `line` and `column` are from 1, `end_column` is the first behind what is meant; `text` is the whole line.
    """

    file: str = ""
    line: int = 0
    column: int = 1
    end_column: int = 1
    text: str = ""
    part: str = ""
    kernel_line: int = 0


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """One of a finding's accesses: how ("read", "write", "barrier" ...), where, and by which thread."""

    how: str
    location: Location
    thread: tuple[int, int, int] | None = None
    threadgroup: tuple[int, int, int] | None = None


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One finding, located. `accesses[0]` is the one that met it; `index` is an element's, `offset` in bytes.

    `launch` is the line of Python that called the kernel when it was met first.
    """

    kind: str
    severity: Severity
    kernel: int
    message: str
    accesses: list[Access] = []
    array: str = ""
    space: str = ""
    index: int | None = None
    offset: int | None = None
    barrier: Location | None = None
    launch: Location | None = None
    schedule: str = ""
    count: int = 1

    @property
    def location(self) -> Location | None:
        """Where a reader should look first."""
        return self.accesses[0].location if self.accesses else self.launch


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What kept the script from being checked to its end: no fault of a kernel that is known."""

    what: str
    message: str
    location: Location | None = None


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """How one output of a kernel depends on one switch: elements that differ, summed over launches.

    `index` is flat, of the first one in the first launch where one differs; `default` and `changed` are its encodings
    as hex bit strings.
    """

    output: str
    switch: str
    value: str
    differing: int
    elements: int
    index: int | None = None
    default: str = ""
    changed: str = ""


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel that the script launched. `checked` is false where --kernel left it out.

    `transcendentals` are functions in its text whose last bits are the C library's here, not Metal's; `accumulations`
    are those that add products in an order that is published nowhere.
    """

    name: str
    location: Location | None = None
    launches: int = 0
    checked: bool = True
    transcendentals: list[str] = []
    accumulations: list[str] = []
    sensitivity: list[Sensitivity] = []


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for: the target with its arguments, and every option that decides what is found or told."""

    target: str
    arguments: list[str] = []
    kernels: list[str] = []
    ignored: list[str] = []
    schedules: list[str] = []
    limit: float
    launch_limit: float
    warnings_as_errors: bool = False
    sensitivity: bool = False
    profile: str = ""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Counts. `ignored` are findings of kinds that --ignore named; `dropped` are those beyond what a check keeps."""

    kernels: int
    launches: int
    errors: int
    warnings: int
    notes: int
    ignored: int = 0
    dropped: int = 0


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole check. `findings` are most serious first, by kernel; `kernel` in them is an index of `kernels`.

    `started` is UTC, ISO 8601; `seconds` is wall time. `complete` is false where the script did not come to its end.
    """

    schema: Literal["urn:mlx-assay:check:1"]
    started: str
    seconds: float
    version: str
    asked: Asked
    executor: dict[str, str]
    totals: Totals
    complete: bool
    verdict: Outcome
    kernels: list[Kernel]
    findings: list[Diagnostic]
    problems: list[Problem]

    @property
    def exit_code(self) -> int:
        """What the check's process returns."""
        return EXIT_CODES[self.verdict]


def outcome(findings: Sequence[Diagnostic], launches: int, complete: bool, warnings_as_errors: bool) -> Outcome:
    """The verdict: findings stand whatever else happened; without any, only a whole check of some launch is clean."""
    failing = {Severity.ERROR, Severity.WARNING} if warnings_as_errors else {Severity.ERROR}
    if any(finding.severity in failing for finding in findings):
        return "findings"
    return "clean" if complete and launches else "incomplete"


def counts(findings: Sequence[Diagnostic]) -> dict[Severity, int]:
    """Findings by severity, zeros included."""
    found = Counter(finding.severity for finding in findings)
    return {severity: found[severity] for severity in Severity}


def encode(report: CheckReport) -> bytes:
    """JSON of two-space indents, keys in the order of the structs, one newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def decode(document: bytes) -> CheckReport:
    """Reads a report; msgspec.ValidationError (a ValueError) says where it is not one."""
    return msgspec.json.decode(document, type=CheckReport)


def schema() -> dict[str, Any]:
    """The JSON Schema of a check's document, as published in check.schema.json."""
    generated = msgspec.json.schema(CheckReport)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **generated}
