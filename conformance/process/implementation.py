"""A handle on what is judged: a child process that imports it and answers calls."""

from __future__ import annotations

import importlib.metadata
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.adapters.target import NoTarget, Target, target
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.account import account
from mlx_assay.conformance.process.child import Child, Death
from mlx_assay.conformance.process.exchange import POISONS, Arguments, Run
from mlx_assay.conformance.process.exchange import Outcome as Outcome
from mlx_assay.conformance.process.protocol import ProgramStart, Ready, Refused, Start
from mlx_assay.conformance.process.seal import preload, seal
from mlx_assay.conformance.quotation import phrase
from mlx_assay.conformance.stopwatch import stage
from mlx_assay.conformance.verdict import Verdict

TOLD = ("name", "simd_sum", "f32_denormals", "f16_denormals", "contraction")
"""What a program from outside is told of the executor: that on which bits may depend."""

UNKNOWN = ["x"]
"""Parameters of an operation that no contract knows, such as the echo of adapters."""

_IMPORTABLE = "an importable module or module:object"
SHARES = 4
"""Of a case's limit, one is the longest that a checked run of a launch may take: a kernel that hangs is then found."""


class ImplementationError(RuntimeError):
    """A target that cannot be imported, or has none of the operations looked for."""


class Implementation:
    """Runs the operations of `target` in a process of its own.

    The target is "module", "module:object", "cmd: program and arguments", the name of an entry point, or None for the
    built-in kernels (adapters/target.py). The process starts when it is first needed, and anew after it died. `limit`
    is in seconds, for the import and for each case. `operations` are the names to look for, by default the contracts'.
    `profile` names the capture whose switches this process holds, for the command that replays a case. Into `record`, a
    folder, a file a call is written that tells of its launches. `checked` is set before the first case: kernels run
    under the checker, and what it finds is the case's error. `answer_limit`, set before it too, is in seconds, for each
    answer of a program from outside; 0 leaves it the case's limit.
    """

    def __init__(
        self,
        target: str | None = None,
        executor: str | None = None,
        limit: float = 60.0,
        *,
        operations: Sequence[str] | None = None,
    ) -> None:
        self.target = target
        self.executor = executor
        self.limit = limit
        self.profile: str | None = None
        self.record = ""
        self.checked = False
        self.answer_limit = 0.0
        self._looked_for = sorted(contracts() if operations is None else operations)
        self._child: Child | None = None
        self._operations: tuple[str, ...] = ()
        self._details: dict[str, str] = {}
        self._printed: tuple[Child, int] | None = None
        self._environment: dict[str, Any] | None = None

    def __enter__(self) -> Implementation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that the target has. ImplementationError if it cannot be imported or has none."""
        if not self._operations:
            self._start()
        return self._operations

    @property
    def environment(self) -> dict[str, Any]:
        """Name, executor, MLX version and device; asked in this process, not of what is judged."""
        if self._environment is None:
            with stage("start"):
                self._environment = self._described()
        return self._environment

    def _described(self) -> dict[str, Any]:
        import mlx.core as mx

        from mlx_assay.conformance.process.lanes import measured
        from mlx_assay.impl import executors

        name = self.executor or executors.current()
        described = executors.describe(name)
        if "simd_sum" not in described:
            described["simd_sum"] = measured(name)
        return {
            "name": self.target or "mlx_assay.impl",
            "executor": {
                "name": name,
                "f32_denormals": _denormals(mx),
                **described,
                **({"checked": "yes"} if self.checked else {}),
            },
            "mlx": importlib.metadata.version("mlx"),
            "device": str(mx.default_device()),
        }

    @property
    def details(self) -> dict[str, str]:
        """What is known of the target beside its name: where an entry point is, what a program says of itself."""
        return dict(self._details)

    def printed(self, limit: int) -> str:
        """The last characters that the process printed since the last case began, fit to be shown."""
        if self._printed is None:
            return ""
        child, mark = self._printed
        child.transcript.settle()
        return child.transcript.text(mark, limit)

    def close(self) -> None:
        """Ends the process; a program from outside gets a while to end by itself."""
        if self._child is not None:
            if self._child.folder:
                self._child.leave()
            self._child.end()
            self._child = None

    def begin(
        self,
        operation: str,
        subcases: Sequence[Arguments],
        expansion: int = 1,
        rounds: Sequence[int] = range(len(POISONS)),
        *,
        patience: float = 0.0,
    ) -> Run:
        """Sends a case and returns at once. Raises Death where no process can be had.

        An output may have `expansion` times as many elements as the largest input. `rounds` are as in Run. The case may
        take `patience` seconds beyond the limit.
        """
        self._printed = None
        child = self._ready()
        with stage("transport"):
            self._printed = child, child.transcript.mark
            limit = self.limit + patience
            run, self._child = Run(child, operation, subcases, limit, expansion, rounds), None
            run.send()
        return run

    def _ready(self) -> Child:
        """The process, started where there is none that is at rest."""
        if self._child is None or self._child.pending():
            self.close()
            try:
                self._start()
            except ImplementationError as error:
                raise Death(Verdict.CRASHED, str(error)) from None
        assert self._child is not None
        return self._child

    def finish(self, run: Run) -> None:
        """Takes the process of a completed run back; without this the next case starts a new one."""
        self._child = run.child

    def _start(self) -> None:
        with stage("start of the implementation"):
            self._begin()

    def _begin(self) -> None:
        from mlx_assay.impl.executors.fidelity import current

        try:
            found = target(self.target)
        except NoTarget as error:
            raise ImplementationError(str(error)) from None
        seal()
        preload()
        child = Child(hosting=bool(found.argv))
        deadline = time.monotonic() + self.limit
        path = [folder for folder in sys.path if folder]
        name = found.told
        fidelity = current().described()
        try:
            program = self._program(found, child.folder)
            seconds = self.limit / SHARES if self.checked else 0.0
            places = (self._looked_for, program, self.record, seconds, stopwatch.current() is not None)
            order = Start(found.module, self.executor, fidelity, path, *places)
            child.send(order, deadline)
            reply = child.receive(deadline)
        except Death as death:
            doing = "Starting" if found.argv else "Importing"
            raise ImplementationError(f"{doing} {name} failed. {death.message}") from None
        except BaseException:
            child.end()
            raise
        if not isinstance(reply, Ready) or not set(reply.operations) <= set(self._looked_for):
            child.end()
            reason = reply.message if isinstance(reply, Refused) else "The process did not answer as the server does"
            output = f"\nIt printed last:\n{child.output}" if child.output else ""
            wanted = "a program that answers as docs/adapters.md says" if found.argv else _IMPORTABLE
            raise ImplementationError(f"Expected {wanted} but {name} failed: {reason}{output}")
        if not reply.operations:
            child.end()
            raise ImplementationError(
                f"Expected {name} to have a function of {', '.join(self._looked_for)} but it has none of them"
            )
        self._operations = tuple(reply.operations)
        self._details = {**dict(found.details), **cleaned(reply.details)}
        account(reply.spent)
        self._child = child

    def _program(self, found: Target, folder: str) -> ProgramStart | None:
        if not found.argv:
            return None
        described = self.environment["executor"]
        executor = {key: str(described[key]) for key in TOLD if key in described}
        known = contracts()
        parameters = {name: list(known[name].parameters) if name in known else UNKNOWN for name in self._looked_for}
        return ProgramStart(list(found.argv), folder, executor, parameters, self.answer_limit)


def cleaned(details: dict[str, str]) -> dict[str, str]:
    """What a process says of what it runs, cut and cleaned: it need not come from the server."""
    return {phrase(key, 100): phrase(text, 200) for key, text in list(details.items())[:20]}


def _denormals(mx: Any) -> str:
    """What MLX's own device makes of a float32 denormal; an executor that knows better says so itself."""
    least = mx.array([1], dtype=mx.uint32).view(mx.float32)
    return "kept" if (least * mx.array([1.0])).view(mx.uint32).item() else "flushed"
