"""Launching a kernel of the corpus on the current executor."""

from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
from checker.corpus import Array, Kernel, values, viewed

from mlx_assay.impl.executors import metal_kernel


def mlx_array(array: Array) -> Any:
    """An input of a row as MLX's."""
    whole = values(array)
    plain = mx.array(whole.view(np.uint16)).view(mx.bfloat16) if array.dtype == "bfloat16" else mx.array(whole)
    return viewed(array, plain, mx)


def launched(kernel: Kernel) -> list[np.ndarray[Any, Any]]:
    """The outputs of one launch."""
    launch = dict(kernel.launch)
    inputs, outputs = launch.pop("inputs"), launch.pop("outputs")
    launch["template"] = [(name, getattr(mx, v) if isinstance(v, str) else v) for name, v in launch["template"]]
    made = metal_kernel(
        kernel.name,
        [array.name for array in inputs],
        [array.name for array in outputs],
        kernel.texts["source"],
        kernel.texts["header"],
        ensure_row_contiguous=launch.pop("ensure_row_contiguous"),
        atomic_outputs=launch.pop("atomic_outputs"),
    )
    results = made(
        inputs=[mlx_array(array) for array in inputs],
        output_shapes=[array.shape for array in outputs],
        output_dtypes=[getattr(mx, {"bool": "bool_"}.get(array.dtype, array.dtype)) for array in outputs],
        **launch,
    )
    mx.eval(results)
    return [_to_numpy(out) for out in results]


def _to_numpy(array: Any) -> np.ndarray[Any, Any]:
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)
