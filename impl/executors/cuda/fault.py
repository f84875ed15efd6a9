"""What ended a GPU's context: which kernel, and what in its text is the likely cause."""

import re
from collections.abc import Sequence

from mlx_assay.impl.executors.cuda import device

# The words of cudaGetErrorString for errors of the kind "sticky", which MLX passes on.
_ENDS = re.compile(
    r"misaligned address|illegal memory access|unspecified launch failure|illegal instruction|hardware stack error"
    r"|invalid program counter|global/shared address space|device-side assert|launch timed out"
)
_CAUSES = {
    "misaligned address": "the likely cause is an address that its type's alignment does not allow, in private memory, "
    "of an atomic, or of a struct copied whole (other access of the kind is made byte by byte): take a packed type or "
    "single elements",
    "illegal memory access": "the likely cause is an address outside all memory: an index that is too large, or a "
    "pointer made of a number",
}
_MEND = "`mlx-assay check` names the line on a CPU; after such an error the GPU does nothing more for this process"


def told(kernels: Sequence[str], said: str) -> str:
    """The message of a launch that failed, by MLX's words and the names of the kernels of which one is at fault."""
    causes = "".join(f": {cause}" for words, cause in _CAUSES.items() if words in said)
    names = " or ".join(map(repr, kernels))
    return f"[metal_kernel] kernel {names} on the cuda executor: {said}{causes}: {_MEND}."


def late(error: BaseException) -> BaseException:
    """An error as it should be told: one that ended the GPU's context names the kernels for which nobody waited.

    The GPU is lost then. Nothing that an error brings along is run.
    """
    said = error.args[0] if type(error) is RuntimeError and len(error.args) == 1 else ""
    if type(said) is not str or not _ENDS.search(said) or device.lost() or not device.present():
        return error
    device.lose()
    return RuntimeError(told(names, said)) if (names := device.unwaited()) else error
