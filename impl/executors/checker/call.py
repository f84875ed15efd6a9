"""A kernel's call as work for the checker, or a finding where it cannot run at all."""

import math
from collections.abc import Sequence

from mlx_assay.impl.executors import launch
from mlx_assay.impl.executors.checker import compilation
from mlx_assay.impl.executors.checker.comparison import never_written
from mlx_assay.impl.executors.checker.finding import Finding, Kind
from mlx_assay.impl.executors.checker.memory import MAX_ARRAY_BYTES
from mlx_assay.impl.executors.checker.run import Argument, Work
from mlx_assay.impl.executors.checker.session import Session
from mlx_assay.impl.executors.signature import Text
from mlx_assay.impl.executors.translation import translate


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The bytes before the first element and all the bytes that a strided array reaches."""
    if 0 in shape:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    before = -sum(r for r in reach if r < 0)
    return before * itemsize, (before + sum(r for r in reach if r > 0) + 1) * itemsize


def call(
    session: Session,
    name: str,
    text: Text,
    arguments: Sequence[Argument],
    grid: Sequence[int],
    threadgroup: Sequence[int],
) -> list[bytes] | None:
    """The bytes of a kernel's outputs, from its first run; None: it cannot run, and why is a finding.

    CompilationError, TypeError, ValueError: as of a launch that is not checked.
    """
    texts = {"source": text.source, "header": text.header}
    return launched(session, name, compilation.build(translate(text)), texts, arguments, grid, threadgroup)


def launched(
    session: Session,
    name: str,
    library: compilation.CheckedLibrary,
    texts: dict[str, str],
    arguments: Sequence[Argument],
    grid: Sequence[int],
    threadgroup: Sequence[int],
) -> list[bytes] | None:
    """As `call`, of a checked build; `texts` holds what its places are in, by file."""
    threads = math.prod(threadgroup)
    if threads > launch.MAX_THREADS_PER_THREADGROUP:
        session.add(
            Finding(
                Kind.THREADS,
                name,
                f"a threadgroup of {tuple(threadgroup)} has {threads} threads, and "
                f"{launch.MAX_THREADS_PER_THREADGROUP} are the most",
            )
        )
        return None
    grid, threadgroup = launch.check_grid(grid, threadgroup)
    if library.threadgroup_bytes > launch.MAX_THREADGROUP_BYTES:
        largest = max(library.arrays, key=lambda a: a.bytes)
        session.add(
            Finding(
                Kind.THREADGROUP_MEMORY,
                name,
                f"the kernel declares {library.threadgroup_bytes} bytes of threadgroup memory, and "
                f"{launch.MAX_THREADGROUP_BYTES} are the most; {largest.name} has {largest.bytes}",
                (),
                largest.name,
                "threadgroup",
            )
        )
        if largest.bytes > MAX_ARRAY_BYTES:
            return None
    if not all(grid):
        for argument in arguments:
            if argument.output and argument.initial is None and argument.size:
                session.add(never_written(name, argument, argument.size // argument.element, 0, ""))
        return None
    work = Work(name, texts, library, arguments, tuple(grid), tuple(threadgroup))
    return session.run(work)
