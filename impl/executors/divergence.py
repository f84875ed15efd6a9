"""What a launch without the checker shows of lanes and threads that were missing where others met: a warning."""

import sys
import warnings
from pathlib import Path
from typing import NamedTuple

_HERE = str(Path(__file__).parent)


class DivergenceWarning(UserWarning):
    """A kernel's simdgroup operations ran for some lanes alone, or its barriers opened after threads had returned.

    Told once for each kernel, of its first launch that shows it; the checker names lines and threads.
    """


class Divergence(NamedTuple):
    """How often it happened in a launch."""

    operations: int  # of a simdgroup, which lanes that were elsewhere missed
    barriers: int  # of a threadgroup, after some of its threads had returned


def warn(kernel: str, found: Divergence) -> None:
    """Warns at the line that called the kernel."""
    told = []
    if found.operations:
        ran = _counted(found.operations, "simdgroup operation")
        told.append(f"{ran} ran for some lanes alone while others were elsewhere")
    if found.barriers:
        told.append(f"{_counted(found.barriers, 'barrier')} opened after threads had returned")
    warnings.warn(
        f"kernel {kernel!r}: {', and '.join(told)}. Run it under `mlx-assay check`, which names the lines.",
        DivergenceWarning,
        stacklevel=_level(),
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _level() -> int:
    """How far the caller of the kernel is from the one who asks."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    return level
