"""A check under way: what the script's process tells, the clock, and how the process ended."""

from __future__ import annotations

import time

from mlx_assay.conformance.checking.child import Child, signal_name
from mlx_assay.conformance.checking.ledger import Ledger
from mlx_assay.conformance.checking.protocol import Foul, Settings
from mlx_assay.conformance.checking.report import Asked, CheckReport
from mlx_assay.impl.executors.checker.finding import Kind

GRACE_SECONDS = 30.0
"""What compiling may take beside a launch."""


def settings(asked: Asked) -> Settings:
    """What of a request the script's process must know."""
    return Settings(
        target=asked.target,
        arguments=asked.arguments,
        kernels=asked.kernels,
        schedules=asked.schedules,
        launch_limit=asked.launch_limit,
        sensitivity=asked.sensitivity,
    )


def gathered(asked: Asked) -> CheckReport:
    """Runs the script to its end, or to the limit. TargetRefused: nothing ran. KeyboardInterrupt is a problem."""
    ledger = Ledger(asked)
    child = Child(settings(asked))
    late = False
    try:
        for message in child.messages():
            if message is not None:
                ledger.hear(message)
            if late := _overdue(ledger):
                break
    except Foul as error:
        ledger.trouble("channel", f"expected the checker's own messages on its channel but got {error}")
    except KeyboardInterrupt:
        ledger.trouble("interrupted", "interrupted")
    finally:
        status = child.end(speak=late)
    _close(ledger, status)
    return ledger.report()


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


def _close(ledger: Ledger, status: int | None) -> None:
    """Makes something of how the process ended, where it did not come to its end by itself."""
    if ledger.ended or ledger.problems or status is None:
        return
    if status < 0 and ledger.under_way:
        for launched, _ in ledger.under_way.values():
            ledger.blame(Kind.CRASH, launched, f"the kernel ended its process by {signal_name(-status)}")
    elif status < 0:
        ledger.trouble("crash", f"the script's process was killed by {signal_name(-status)}")
    else:
        told = f"the script ended its process at once, with status {status}{_running(ledger)} (os._exit)"
        ledger.trouble("exit", told)
