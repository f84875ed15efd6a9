"""The NVIDIA GPU that MLX runs on, if it runs on one."""

from functools import cache
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors.cuda.compilation import DeviceLibraryMissing, architecture, device_library
from mlx_assay.impl.executors.toolchain import ToolchainError, toolchain

_module: Any = getattr(mx, "cuda", None)
# Bound now: inside `host_metal` MLX's own names answer as on a Mac.
_available = _module.is_available if _module is not None else lambda: False
_info: Any = mx.device_info


def present() -> bool:
    """Whether this is MLX's CUDA build, with a GPU at hand."""
    return bool(_available())


def missing() -> str | None:
    """None if kernels can run on a GPU here, else the reason and the mend."""
    if not present():
        return (
            "MLX has no CUDA back end here, or finds no NVIDIA GPU: on a Linux machine with one, install the extra "
            "cuda13 and take the CPU's back end away, as docs/cuda.md says; or use the executor 'host'"
        )
    try:
        toolchain()
        device_library()
        architecture(capability())
    except (ToolchainError, DeviceLibraryMissing, ValueError) as error:
        return str(error)
    return None


@cache
def described() -> dict[str, str]:
    """What MLX says of the GPU, by name."""
    return {name: str(value) for name, value in _info(mx.gpu).items() if "memory" not in name}


@cache
def capability() -> int:
    """The compute capability as one number: 90 for 9.0."""
    info = _info(mx.gpu)
    return int(info["compute_capability_major"]) * 10 + int(info["compute_capability_minor"])


MOST_UNWAITED = 8
"""Names of kernels that are kept, the last ones."""

_lost = False
_unwaited: list[str] = []


def launched(kernel: str) -> None:
    """Remembers a launch in a trace, for which nobody can wait."""
    if kernel in _unwaited:
        _unwaited.remove(kernel)
    _unwaited.append(kernel)
    del _unwaited[:-MOST_UNWAITED]


def unwaited() -> list[str]:
    """The names of the kernels last launched in traces."""
    return list(_unwaited)


def lose() -> None:
    """Remembers that the GPU does nothing more for this process, after an error that ended its context."""
    global _lost
    _lost = True


def lost() -> bool:
    """Whether `lose` was called."""
    return _lost
