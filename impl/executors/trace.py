"""Whether arrays belong to a transformation's trace, where a CPU cannot be called back."""

import io

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


def shapeless_tracing() -> bool:
    """True inside an mx.compile(..., shapeless=True) trace, where a custom kernel's output shapes cannot be inferred.

    MLX has no question for it: under a shapeless trace alone, broadcasting equal shapes leaves a Broadcast primitive.
    """
    a, b = mx.array([1.0, 2.0]), mx.array([3.0, 4.0])
    graph = io.StringIO()
    mx.export_to_dot(graph, *mx.broadcast_arrays(a, b))
    return "Broadcast" in graph.getvalue()
