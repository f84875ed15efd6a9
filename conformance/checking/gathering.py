"""A check under way: what the script's process tells, the clock, and how the process ended."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from mlx_assay.conformance.checking.child import Child, signal_name
from mlx_assay.conformance.checking.ledger import Ledger
from mlx_assay.conformance.checking.offspring import TOLD
from mlx_assay.conformance.checking.protocol import LINE_LIMIT, Foul, Settings, decode
from mlx_assay.conformance.checking.report import Asked, CheckReport
from mlx_assay.impl.executors.checker.finding import Kind

MOST_RUNS = 8
"""Runs of a script whose kernels end its process one after the other."""

MOST_PROCESSES = 1000
"""Processes of a script that are listened to."""

GRACE_SECONDS = 30.0
"""What compiling may take beside a launch."""


def settings(asked: Asked, skipped: Collection[str] = (), offspring: str = "") -> Settings:
    """What of a request the script's process must know; `skipped` are digests of kernels that are not to run.

    `offspring` is a folder for what its own processes tell.
    """
    return Settings(
        target=asked.target,
        arguments=asked.arguments,
        kernels=asked.kernels,
        schedules=asked.schedules,
        skipped=sorted(skipped),
        launch_limit=asked.launch_limit,
        sensitivity=asked.sensitivity,
        offspring=offspring,
        start=os.getcwd(),
        profile=asked.profile and os.path.abspath(asked.profile),
    )


def gathered(
    asked: Asked, say: Callable[[str], object] = lambda text: None, interrupted: Callable[[], bool] = lambda: False
) -> CheckReport:
    """Runs the script to its end, or to the limit; again without them where kernels ended its process.

    `interrupted` is asked now and then; where it says so the script is ended, which is a problem of the report.
    TargetRefused: nothing ran.
    """
    ledger = _run(Ledger(asked), (), interrupted)
    for _ in range(MOST_RUNS - 1):
        fatal = set(ledger.fatal)
        if ledger.problems or ledger.ended or not fatal:
            break
        names = sorted(
            {kernel.name for kernel, digest in zip(ledger.kernels, ledger.digests, strict=True) if digest in fatal}
        )
        say(f"the script runs again without kernel {', '.join(names)}, which ended its process")
        again = Ledger(asked)
        again.begin = ledger.begin
        ledger, before = _run(again, fatal, interrupted), ledger
        ledger.absorb(before)
        if ledger.fatal == fatal:
            break
    return ledger.report()


def _run(ledger: Ledger, skipped: Collection[str], interrupted: Callable[[], bool]) -> Ledger:
    with tempfile.TemporaryDirectory(prefix="mlx-assay-", ignore_cleanup_errors=True) as folder:
        _heard(ledger, Child(settings(ledger.asked, skipped, folder)), interrupted)
        told = sorted(Path(folder).glob(f"{TOLD}*"))
        for file in told[:MOST_PROCESSES]:
            ledger.join(_process(ledger.asked, file))
        if len(told) > MOST_PROCESSES:
            more = (
                f"expected at most {MOST_PROCESSES} processes with MLX in one check but the script starts {len(told)}"
            )
            ledger.trouble("subprocess", more)
    return ledger


def _process(asked: Asked, told: Path) -> Ledger:
    """What a process told that the script started."""
    ledger = Ledger(asked)
    try:
        with told.open("rb") as file:
            while text := file.readline(LINE_LIMIT):
                ledger.hear(decode(text))
    except (Foul, msgspec.DecodeError, UnicodeDecodeError) as error:
        ledger.trouble("channel", f"expected the checker's own messages of a subprocess but got {error}")
    if running := _running(ledger):
        ledger.trouble("subprocess", f"a process that the script started ended{running}")
    return ledger


def _heard(ledger: Ledger, child: Child, interrupted: Callable[[], bool]) -> None:
    late = False
    try:
        for message in child.messages():
            if message is not None:
                ledger.hear(message)
            if interrupted():
                ledger.trouble("interrupted", "interrupted")
                break
            if late := _overdue(ledger):
                break
    except Foul as error:
        ledger.trouble("channel", f"expected the checker's own messages on its channel but got {error}")
    finally:
        status = child.end(speak=late)
        with contextlib.suppress(Foul):
            for message in child.rest():
                ledger.hear(message)
        child.close()
    _close(ledger, status, late)


def _overdue(ledger: Ledger) -> bool:
    """Whether the script, or a launch, has taken longer than it may; told where so."""
    now, asked = time.monotonic(), ledger.asked
    for launched, since in ledger.under_way.values():
        # The runtime ends a launch at its limit by itself; this is for one that it cannot end.
        runs = len(asked.schedules) + 2
        if now - since > runs * asked.launch_limit + GRACE_SECONDS:
            ledger.blame(Kind.HANG, launched, f"the launch did not end within {asked.launch_limit:g} s a run")
            return True
    if now - ledger.begin > asked.limit:
        told = f"the script took longer than {asked.limit:g} s and was ended{_running(ledger)}"
        ledger.trouble("limit", told)
        return True
    return False


def _running(ledger: Ledger) -> str:
    names = sorted({ledger.kernel(launched.kernel).name for launched, _ in ledger.under_way.values()})
    return f" while kernel {', '.join(map(repr, names[:3]))} ran" if names else ""


def _close(ledger: Ledger, status: int | None, late: bool) -> None:
    """Makes something of how the process ended, where it did not come to its end by itself."""
    if ledger.ended or ledger.problems or status is None or late:
        return
    if status < 0 and ledger.under_way:
        for launched, _ in ledger.under_way.values():
            ledger.blame(Kind.CRASH, launched, f"the kernel ended its process by {signal_name(-status)}")
    elif status < 0:
        ledger.trouble("crash", f"the script's process was killed by {signal_name(-status)}")
    else:
        told = f"the script ended its process at once, with status {status}{_running(ledger)} (os._exit)"
        ledger.trouble("exit", told)
