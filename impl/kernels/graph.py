"""Where a graph of kernels can run, and running it: the choice that every launcher makes alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import mlx.core as mx

from mlx_assay.impl import executors
from mlx_assay.impl.executors import choice, fidelity

Graph = Callable[..., mx.array]


def native(*arrays: mx.array) -> bool:
    """Whether MLX's own operations must do the work, since no kernel can run where these arrays are traced."""
    if executors.current() == "host":
        return executors.tracing(*arrays)
    return executors.shapeless_tracing()


def run(graph: Graph, *arrays: mx.array) -> mx.array:
    """Runs a graph of kernels; where the executor is part of MLX's graphs, compiled once for each shape.

    A guarded launch is waited for, which none within a compiled graph is.
    """
    if executors.current() == "host" or choice.is_guarded():
        return graph(*arrays)
    return _compiled(graph, choice.current_poison(), fidelity.current(), frozenset(fidelity.asked()))(*arrays)


@lru_cache(maxsize=512)
def _compiled(graph: Graph, *held: object) -> Graph:
    """The graph as MLX compiles it, one for all that a kernel is made of besides its arguments.

    A function of its own each time: MLX keeps what it has traced by the function it was given.
    """
    compiled: Graph = mx.compile(lambda *arrays: graph(*arrays))
    return compiled
