"""What is known of a check: kernels, findings and problems as they are told, made into one report."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import msgspec

from mlx_assay.conformance.checking.protocol import (
    MOST_FINDINGS,
    MOST_KERNELS,
    Began,
    Defined,
    Dropped,
    Ended,
    Foul,
    Launched,
    Message,
    Met,
    Refused,
    Returned,
    Sensed,
    Stumbled,
)
from mlx_assay.conformance.checking.report import (
    SCHEMA,
    Asked,
    CheckReport,
    Diagnostic,
    Kernel,
    Location,
    Problem,
    Totals,
    counts,
    outcome,
)
from mlx_assay.conformance.checking.rules import RULES
from mlx_assay.impl.executors.checker.finding import SEVERITY, Kind, Severity

MOST_PROBLEMS = 100
MOST_THREADS = 10_000

_ORDER = list(RULES)
_SEVERITIES = list(Severity)


class TargetRefused(ValueError):
    """The script's process found that there is no such target."""


class Ledger:
    """A check so far. `under_way` are launches that have not returned, by thread, and when they began.

    `digests` are of the kernels, `fatal` those of kernels that ended the process.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.kernels: list[Kernel] = []
        self.digests: list[str] = []
        self.fatal: set[str] = set()
        self.findings: list[Diagnostic] = []
        self.problems: list[Problem] = []
        self.under_way: dict[int, tuple[Launched, float]] = {}
        self.launches = 0
        self.ended = False
        self.begin = time.monotonic()
        self._started = datetime.now(UTC)
        self._executor: dict[str, str] = {}
        self._dropped = 0

    def hear(self, message: Message) -> None:
        """Takes in a message. Foul: it cannot follow on what was told before. TargetRefused: nothing ran."""
        match message:
            case Refused():
                raise TargetRefused(message.message)
            case Began():
                self._executor = message.executor
            case Defined():
                self._define(message)
            case Launched():
                self._launch(message)
            case Returned():
                self.under_way.pop(message.thread, None)
            case Met():
                self._meet(message)
            case Dropped():
                self._dropped = message.count
            case Sensed():
                kernel = self.kernel(message.kernel)
                self.kernels[message.kernel] = msgspec.structs.replace(kernel, sensitivity=message.sensitivity)
            case Stumbled():
                if len(self.problems) < MOST_PROBLEMS:
                    self.problems.append(message.problem)
            case Ended():
                self.ended = True

    def kernel(self, number: int) -> Kernel:
        """A kernel that was told of; Foul for another."""
        if not 0 <= number < len(self.kernels):
            raise Foul(f"kernel {number} of {len(self.kernels)}")
        return self.kernels[number]

    def blame(self, kind: Kind, launched: Launched, message: str) -> None:
        """Adds a finding about a launch that did not come back."""
        blamed = Diagnostic(
            kind=kind.value, severity=SEVERITY[kind], kernel=launched.kernel, message=message, launch=launched.site
        )
        self.findings.append(blamed)
        self.fatal.add(self.digests[launched.kernel])

    def absorb(self, before: Ledger) -> None:
        """Takes over what an earlier run of the same script found and this one did not."""
        known = {self._key(finding) for finding in self.findings}
        for finding in before.findings:
            if before._key(finding) not in known:
                number = self._number(before.digests[finding.kernel], before.kernels[finding.kernel])
                self.findings.append(msgspec.structs.replace(finding, kernel=number))
        self.fatal |= before.fatal
        self.begin = min(self.begin, before.begin)
        self._started = min(self._started, before._started)

    def join(self, other: Ledger) -> None:
        """Takes in what another process of the same script launched, found and could not do."""
        if not other.kernels and not other.problems:
            return
        self.absorb(other)
        for digest, kernel in zip(other.digests, other.kernels, strict=True):
            number = self._number(digest, msgspec.structs.replace(kernel, launches=0))
            own = self.kernels[number]
            if own is not kernel:
                launches = own.launches + kernel.launches
                sensitivity = own.sensitivity or kernel.sensitivity
                self.kernels[number] = msgspec.structs.replace(own, launches=launches, sensitivity=sensitivity)
        self.launches += other.launches
        self.problems += other.problems[: MOST_PROBLEMS - len(self.problems)]
        self._dropped += other._dropped

    def _key(self, finding: Diagnostic) -> tuple[object, ...]:
        places = frozenset(access.location for access in finding.accesses)
        return self.digests[finding.kernel], finding.kind, finding.array, places, finding.message if not places else ""

    def _number(self, digest: str, kernel: Kernel) -> int:
        if digest not in self.digests:
            self.digests.append(digest)
            self.kernels.append(kernel)
        return self.digests.index(digest)

    def trouble(self, what: str, message: str, location: Location | None = None) -> None:
        """Adds a problem."""
        self.problems.append(Problem(what=what, message=message, location=location))

    def report(self) -> CheckReport:
        """The whole check; one that launched nothing says so."""
        if not self.launches and not self.problems:
            self.trouble("nothing", self._nothing())
        kept = [finding for finding in self.findings if finding.kind not in self.asked.ignored]
        kept.sort(key=_weight)
        complete = self.ended and not self.problems
        numbers = counts(kept)
        return CheckReport(
            schema=SCHEMA,
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.begin, 3),
            version=_version(),
            asked=self.asked,
            executor=self._executor,
            totals=Totals(
                kernels=sum(kernel.checked for kernel in self.kernels),
                launches=self.launches,
                errors=numbers[Severity.ERROR],
                warnings=numbers[Severity.WARNING],
                notes=numbers[Severity.NOTE],
                ignored=len(self.findings) - len(kept),
                dropped=self._dropped,
            ),
            complete=complete,
            verdict=outcome(kept, self.launches, complete, self.asked.warnings_as_errors),
            kernels=self.kernels,
            findings=kept,
            problems=self.problems,
        )

    def _define(self, message: Defined) -> None:
        if len(self.kernels) >= MOST_KERNELS:
            raise Foul("too many kernels")
        self.digests.append(message.digest)
        made = Kernel(
            name=message.name,
            location=message.location,
            checked=message.checked,
            transcendentals=message.transcendentals,
            accumulations=message.accumulations,
        )
        self.kernels.append(made)

    def _launch(self, message: Launched) -> None:
        kernel = self.kernel(message.kernel)
        if len(self.under_way) >= MOST_THREADS:
            raise Foul("too many threads")
        self.kernels[message.kernel] = msgspec.structs.replace(kernel, launches=kernel.launches + 1)
        self.launches += kernel.checked
        self.under_way[message.thread] = (message, time.monotonic())

    def _meet(self, message: Met) -> None:
        finding = message.finding
        self.kernel(finding.kernel)
        rule = RULES.get(finding.kind)
        if rule is None or rule.severity != finding.severity:
            raise Foul(f"a finding of kind {finding.kind[:80]!r} and severity {finding.severity}")
        if message.number == len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)
        elif 0 <= message.number < len(self.findings):
            self.findings[message.number] = finding
        else:
            raise Foul(f"finding {message.number} of {len(self.findings)}")

    def _nothing(self) -> str:
        if not self.kernels:
            return "nothing checked: no kernel of mx.fast.metal_kernel was launched"
        names = ", ".join(sorted({kernel.name for kernel in self.kernels})[:10])
        return f"nothing checked: no kernel is called {' or '.join(self.asked.kernels)}; launched were {names}"


def _weight(finding: Diagnostic) -> tuple[int, int, int]:
    """What comes first: errors, then by kernel, then by kind in the order of the enumeration."""
    return _SEVERITIES.index(finding.severity), finding.kernel, _ORDER.index(finding.kind)


def _version() -> str:
    try:
        return version("mlx-assay")
    except PackageNotFoundError:
        return "?"
