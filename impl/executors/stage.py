"""The stages of a launch, told to whoever counts where the time of this process goes."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Counter = Callable[[str, str], AbstractContextManager[None]]
"""Gets a stage, and the one to which the time of processes belongs that are started and end inside (empty: none)."""

GRAPHS = "graph compiler"
"""The stage of what MLX starts to compile its graphs."""

_OFF = nullcontext()
_counter: Counter | None = None


def count(counter: Counter | None) -> None:
    """Stages of this process are told to `counter` alone from now on, to nobody where it is None."""
    global _counter
    _counter = counter


def stage(name: str, spawned: str = "") -> AbstractContextManager[None]:
    """What runs inside is that stage's."""
    return _OFF if _counter is None else _counter(name, spawned)
