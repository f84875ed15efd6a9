"""The refusal: why a command does nothing, and the exit code that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlx_assay.conformance.verdict import EXIT_INCOMPLETE, EXIT_USAGE


class Refusal(Exception):
    """A message for the person at the command line, and the exit code."""

    def __init__(self, message: str, code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.code = code


def damaged(error: Exception) -> Refusal:
    """What to say of a file of this suite that cannot be read: nothing is judged by what is left of it."""
    return Refusal(f"A file of this suite is damaged, install it anew: {error}", EXIT_INCOMPLETE)


@contextmanager
def refusing() -> Iterator[None]:
    """Turns what a selection raises for wrong requests, or for want of sound fixtures, into refusals."""
    from mlx_assay.conformance.query import QueryError
    from mlx_assay.conformance.selection import NothingSelected
    from mlx_assay.fixtures.kind import kinds

    try:
        kinds()
    except ValueError as error:
        raise damaged(error) from error
    try:
        yield
    except QueryError as error:
        raise Refusal(str(error)) from error
    except NothingSelected as error:
        raise Refusal(str(error), EXIT_INCOMPLETE) from error


def checked_profile(file: str, executor: str | None) -> str:
    """What a profile gives the host executor, in words; Refusal for no sound capture, or for another executor."""
    name = checked_executor(executor)
    if name != "host":
        raise Refusal(f"Expected the executor 'host' for a profile but got {name!r}, whose device is what it is")
    from mlx_assay.conformance.capture.adoption import switches

    try:
        return switches(file).profile
    except ValueError as error:
        raise Refusal(str(error)) from error


def checkable_executor(name: str | None) -> str:
    """As `checked_executor`; Refusal for one whose kernels the checker cannot watch."""
    from mlx_assay.impl import executors

    meant = executors.current() if name is None else name
    if meant in executors.NAMES and meant != "host":
        raise Refusal(f"Expected the executor 'host' for the checker but got {meant!r}: add --executor host")
    return checked_executor(name)


def checked_executor(name: str | None) -> str:
    """The executor's name, this machine's own for None; Refusal for one that is unknown or cannot run here."""
    try:
        from mlx_assay.impl import executors
    except (ImportError, OSError) as error:
        raise Refusal(
            f"The executors cannot be imported ({error}): mlx-assay doctor names what is broken", EXIT_INCOMPLETE
        ) from error
    if name is None:
        name = str(executors.current())
    if name not in executors.NAMES:
        raise Refusal(f"Expected an executor, {' or '.join(executors.NAMES)}, but got {name!r}")
    if reason := executors.available(name):
        raise Refusal(f"Executor {name!r} cannot run here: {reason}", EXIT_INCOMPLETE)
    return name
