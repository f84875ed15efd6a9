"""A handle on what is judged: a child process that imports it and answers calls."""

from __future__ import annotations

import importlib.metadata
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.child import Child, Death
from mlx_assay.conformance.process.exchange import Arguments, Run
from mlx_assay.conformance.process.exchange import Outcome as Outcome
from mlx_assay.conformance.process.protocol import Ready, Refused, Start
from mlx_assay.conformance.process.seal import preload, seal
from mlx_assay.conformance.verdict import Verdict


class ImplementationError(RuntimeError):
    """A target that cannot be imported, or has none of the operations looked for."""


class Implementation:
    """Runs the operations of `target` ("module", "module:object", None for the built-in) in a process of its own.

    The process starts when it is first needed, and anew after it died. `limit` is in seconds, for the import and for
    each case. `operations` are the names to look for, by default those of the contracts.
    `profile` names the capture whose switches this process holds, for the command that replays a case.
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
        self._looked_for = sorted(contracts() if operations is None else operations)
        self._child: Child | None = None
        self._operations: tuple[str, ...] = ()
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
            import mlx.core as mx

            from mlx_assay.conformance.process.lanes import measured
            from mlx_assay.impl import executors

            name = self.executor or executors.current()
            described = executors.describe(name)
            if "simd_sum" not in described:
                described["simd_sum"] = measured(name)
            self._environment = {
                "name": self.target or "mlx_assay.impl",
                "executor": {"name": name, "f32_denormals": _denormals(mx), **described},
                "mlx": importlib.metadata.version("mlx"),
                "device": str(mx.default_device()),
            }
        return self._environment

    def close(self) -> None:
        """Ends the process."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def begin(self, operation: str, subcases: Sequence[Arguments], expansion: int = 1) -> Run:
        """Sends a case and returns at once. Raises Death where no process can be had.

        An output may have `expansion` times as many elements as the largest input.
        """
        if self._child is None or self._child.pending():
            self.close()
            try:
                self._start()
            except ImplementationError as error:
                raise Death(Verdict.CRASHED, str(error)) from None
        assert self._child is not None
        run, self._child = Run(self._child, operation, subcases, self.limit, expansion), None
        run.send()
        return run

    def finish(self, run: Run) -> None:
        """Takes the process of a completed run back; without this the next case starts a new one."""
        self._child = run.child

    def _start(self) -> None:
        from mlx_assay.impl.executors.fidelity import current

        seal()
        preload()
        child = Child()
        deadline = time.monotonic() + self.limit
        path = [folder for folder in sys.path if folder]
        name = self.target or "mlx_assay.impl"
        fidelity = current().described()
        try:
            child.send(Start(self.target, self.executor, fidelity, path, self._looked_for), deadline)
            reply = child.receive(deadline)
        except Death as death:
            raise ImplementationError(f"Importing {name!r} failed. {death.message}") from None
        except BaseException:
            child.end()
            raise
        if not isinstance(reply, Ready) or not set(reply.operations) <= set(self._looked_for):
            child.end()
            reason = reply.message if isinstance(reply, Refused) else "The process did not answer as the server does"
            output = f"\nIt printed last:\n{child.output}" if child.output else ""
            raise ImplementationError(
                f"Expected an importable module or module:object but {name!r} failed: {reason}{output}"
            )
        if not reply.operations:
            child.end()
            raise ImplementationError(
                f"Expected {name!r} to have a function of {', '.join(self._looked_for)} but it has none of them"
            )
        self._operations = tuple(reply.operations)
        self._child = child


def _denormals(mx: Any) -> str:
    """What MLX's own device makes of a float32 denormal; an executor that knows better says so itself."""
    least = mx.array([1], dtype=mx.uint32).view(mx.float32)
    return "kept" if (least * mx.array([1.0])).view(mx.uint32).item() else "flushed"
