"""Apple's own compiled kernels, out of an `mlx.metallib`, on this machine's CPU: `load("0.32.4").function(name)`.

Needs llvmlite. docs/apple-kernels.md says what is exact, what is not, and how MLX's kernels are launched.
"""

try:
    import llvmlite  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError("Apple's compiled kernels need llvmlite: pip install 'mlx-assay[bitcode]'") from error

from mlx_assay.impl.executors.apple.air import UnknownFunction
from mlx_assay.impl.executors.apple.container import MetallibError
from mlx_assay.impl.executors.apple.kernel import AppleKernel, AppleLibrary, LaunchError, load
from mlx_assay.impl.executors.apple.wheel import WheelError

__all__ = ["AppleKernel", "AppleLibrary", "LaunchError", "MetallibError", "UnknownFunction", "WheelError", "load"]
