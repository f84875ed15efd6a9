"""Where a graph of kernels can run, and running it: the choice that every launcher makes alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mlx.core as mx

from mlx_assay.impl import executors

Graph = Callable[..., mx.array]


def native(*arrays: mx.array) -> bool:
    """Whether MLX's own operations must do the work, since no kernel can run where these arrays are traced."""
    if executors.current() == "host":
        return executors.tracing(*arrays)
    return executors.shapeless_tracing()


def run(graph: Graph, *arrays: mx.array) -> mx.array:
    """Runs a graph of kernels; where the executor is part of MLX's graphs, compiled once for each shape."""
    if executors.current() == "host":
        return graph(*arrays)
    return _compiled(graph)(*arrays)


@cache
def _compiled(graph: Graph) -> Graph:
    compiled: Graph = mx.compile(graph)
    return compiled
