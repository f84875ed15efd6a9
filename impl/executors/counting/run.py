"""One counted launch: every thread runs once, and its counts are put together."""

import ctypes
from collections.abc import Mapping, Sequence

from mlx_assay.impl.executors import launch, objects
from mlx_assay.impl.executors.checker.run import Argument
from mlx_assay.impl.executors.counting.compilation import CountedLibrary
from mlx_assay.impl.executors.counting.counts import Counts
from mlx_assay.impl.executors.counting.gathering import gathered
from mlx_assay.impl.executors.counting.placement import Placement
from mlx_assay.impl.executors.counting.request import CONSTANT, Request, Span
from mlx_assay.impl.executors.counting.session import CountingError, current


def run(
    name: str,
    library: CountedLibrary,
    texts: Mapping[str, str],
    arguments: Sequence[Argument],
    spaces: Sequence[int],
    grid: Sequence[int],
    threadgroup: Sequence[int],
    poison: int,
    schedule: int,
) -> tuple[int, tuple[int, int]]:
    """Runs every thread of a grid, and adds its counts; the scheduler's fault and the lines that it tells.

    `spaces`: the address space of each argument. ValueError, TypeError: the grid. CountingError: there is no memory for
    the counts.
    """
    grid, threadgroup = launch.check_grid(grid, threadgroup)
    constants = [Span(begin, size, CONSTANT) for begin, size in library.objects]
    placed = Placement(arguments)
    asked = Request(library, [s for s in (*placed.spans(arguments, spaces), *constants) if s.bytes])
    fault, lines = 0, (0, 0)
    if all(grid):
        request = launch.prepare(library.thread, library.threadgroup_bytes, grid, threadgroup, poison, schedule)
        passed = (ctypes.c_uint64 * max(len(arguments), 1))(*placed.addresses)
        request.buffers, request.counter = ctypes.addressof(passed), asked.address
        fault = objects.runtime().assay_launch(ctypes.byref(request))
        lines = (request.lines[0], request.lines[1])
        placed.finish()
    if asked.counter.failed:
        raise CountingError(f"[metal_kernel] kernel {name!r}: there is no memory for its counts: count a smaller grid")
    if not fault:
        _told(gathered(name, library, texts, asked, grid, threadgroup))
    return fault, lines


def _told(counts: Counts) -> None:
    if (kept := current()) is not None:
        kept.append(counts)
