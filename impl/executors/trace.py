"""Whether arrays belong to a transformation's trace, where a CPU cannot be called back."""

import io
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

import mlx.core as mx


def tracing(*arrays: mx.array) -> bool:
    """True if the arrays cannot be evaluated now, being placeholders of an mx.compile or vmap trace.

    Evaluates the arrays where they can be.
    """
    try:
        mx.eval(*arrays)
    except ValueError as error:
        # Any other failure is that of an operation that led to the array.
        if "function transformations" not in str(error):
            raise
        return True
    return False


_EDGE = "->"


def differentiated(*arrays: mx.array) -> bool:
    """Whether a gradient or a tangent may be asked through these arrays, which are evaluated.

    MLX has no question for it. An evaluated array has forgotten what it was made of, but where its function is being
    differentiated: what it is made of there begins with a copy of the argument.
    """
    return not _forgets() or _remembered(*arrays)


def _remembered(*arrays: mx.array) -> bool:
    graph = io.StringIO()
    mx.export_to_dot(graph, *arrays)
    return _EDGE in graph.getvalue()


@cache
def _forgets() -> bool:
    """Whether the installed MLX tells the two apart so, which later ones may do otherwise: asked of it once."""
    met = []

    def ask(array: mx.array) -> mx.array:
        mx.eval(array)
        met.append(_remembered(array))
        return array * array

    one = mx.array(1.0)
    for differentiate in (mx.vjp, mx.jvp):
        differentiate(ask, [one], [one])
    mx.eval(one)
    return met == [True, True] and not _remembered(one)


def shapeless_tracing() -> bool:
    """True inside an mx.compile(..., shapeless=True) trace, where a custom kernel's output shapes cannot be inferred.

    MLX has no question for it: under a shapeless trace alone, broadcasting equal shapes makes a Broadcast primitive,
    which asks for its stream.
    """
    global _asking_tells
    if _asking_tells is None:
        if _drawn():
            return True
        _asking_tells = _tried()
    return _asked() if _asking_tells else _drawn()


_asking_tells: bool | None = None
_NOWHERE = mx.Device(mx.cpu, 1000)


def _asked() -> bool:
    """By a device that there is not: 0.3 microseconds, where a drawing takes ten and more."""
    try:
        mx.broadcast_arrays(*_pair(), stream=_NOWHERE)
    except (IndexError, ValueError):
        return True
    return False


def _drawn() -> bool:
    """By the primitive's name in a drawing of the graph."""
    graph = io.StringIO()
    mx.export_to_dot(graph, *mx.broadcast_arrays(*_pair()))
    return "Broadcast" in graph.getvalue()


@cache
def _pair() -> tuple[mx.array, mx.array]:
    return mx.array([1.0, 2.0]), mx.array([3.0, 4.0])


def _tried() -> bool:
    """Whether this MLX refuses the device in a shapeless trace, and nowhere else."""
    seen: list[bool] = []

    def probe(x: mx.array) -> mx.array:
        seen.append(_asked())
        return x + 1

    for shapeless in (True, False):
        mx.eval(mx.compile(probe, shapeless=shapeless)(_pair()[0]))
    return [*seen, _asked()] == [True, False, False]


_forked = False


def _remember_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_remember_fork)


def _refusing(transformation: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any) -> NoReturn:
        raise ValueError(f"[Primitive::{transformation}] Not implemented for CustomKernel.")

    return refuse


def without_derivative(inputs: Sequence[mx.array], outputs: list[mx.array]) -> list[mx.array]:
    """The outputs as functions of the inputs that have no derivative, as those of MLX's custom kernels.

    ValueError, where a gradient or a tangent is asked through them: MLX's own. Without it they would be constants, and
    gradients silently zero. In a forked child they are: MLX has no thread there that could evaluate anything.
    """
    if not inputs or _forked or not differentiated(*inputs):
        return outputs
    function: Any = mx.custom_function(lambda *_: outputs)
    function.vjp(_refusing("vjp"))
    function.jvp(_refusing("jvp"))
    made: list[mx.array] = function(*inputs)
    mx.eval(*made)
    return made
