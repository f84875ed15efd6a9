"""How a process in which an implementation runs begins: bounded, tied to the judge, on its executor."""

from __future__ import annotations

import contextlib
import faulthandler
import warnings
from collections.abc import Mapping

from mlx_assay.conformance.process.bounds import die_with_parent, limit_memory
from mlx_assay.conformance.process.pipes import Channel
from mlx_assay.impl import executors
from mlx_assay.impl.executors import fidelity


def begun(orders: int, replies: int, lifeline: int, parent: int) -> Channel:
    """The channel to the judge, once the process has its bounds."""
    die_with_parent(lifeline, parent)
    limit_memory()
    faulthandler.enable(all_threads=False)
    # A verdict is of outputs alone; whoever wants to know of lanes asks the checker.
    warnings.simplefilter("ignore", executors.DivergenceWarning)
    return Channel(orders, replies)


def settle(stack: contextlib.ExitStack, executor: str | None, switches: Mapping[str, str]) -> None:
    """Kernels run on this executor (None: that of the machine) and under these switches, in every thread."""
    if executor is not None:
        stack.enter_context(executors.use(executor))
    fidelity.prefer(fidelity.Fidelity().switched(**switches))
