"""From the runtime's tallies to the counts of a launch."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from mlx_assay.impl.executors.checker.places import places
from mlx_assay.impl.executors.counting.compilation import CountedLibrary
from mlx_assay.impl.executors.counting.counts import (
    Arithmetic,
    Atomics,
    Barriers,
    Counts,
    Operations,
    Site,
    Traffic,
)
from mlx_assay.impl.executors.counting.kinds import ATOMICS, BARRIER, OPERATIONS
from mlx_assay.impl.executors.counting.request import CONSTANT, DEVICE, SPACES, TALLIES, Request, Words
from mlx_assay.impl.executors.toolchain import target, toolchain


def gathered(
    name: str,
    library: CountedLibrary,
    texts: Mapping[str, str],
    asked: Request,
    grid: Sequence[int],
    threadgroup: Sequence[int],
) -> Counts:
    """The counts of a launch that has ended."""
    sites = list(_sites(library, texts, asked))
    operations = asked.operations()
    barrier = operations.get(BARRIER, (0, 0))
    c = asked.counter
    return Counts(
        kernel=name,
        grid=_three(grid),
        threadgroup=_three(threadgroup),
        threads=c.threads,
        threadgroups=c.threadgroups,
        simdgroups=c.simdgroups,
        threadgroup_bytes=library.threadgroup_bytes,
        private_bytes=library.meaning.private_bytes,
        registers=library.meaning.registers,
        reads=_side(sites, "read", asked, library),
        writes=_side(sites, "write", asked, library),
        atomics=_atomics(sites),
        simd={
            word: Operations(*operations[kind])
            for kind, word in sorted(OPERATIONS.items(), key=lambda each: each[1])
            if kind in operations
        },
        barriers=Barriers(c.barriers, c.barrier_simdgroups, c.barrier_threads, *barrier),
        arithmetic=_arithmetic(library, asked),
        sites=_by_line(site for site, _ in sites),
        compiler=f"{toolchain().version} for {target()}",
    )


def _three(axes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = axes
    return int(x), int(y), int(z)


def _traffic(tally: Mapping[str, int]) -> Traffic:
    return Traffic(**{name: value for name, value in tally.items() if name != "serial"})


def _sites(library: CountedLibrary, texts: Mapping[str, str], asked: Request) -> Iterator[tuple[Site, int]]:
    """Each access and space with a request, and the most lanes at one address of each of its requests."""
    told = library.meaning.sites
    written = places([(s.file, s.line) for s in told], dict(texts))
    for site, place, tallies in zip(told, written, asked.tally, strict=False):
        for space, values in zip(SPACES, tallies, strict=True):
            tally = dict(zip(TALLIES, map(int, values), strict=True))
            if tally["requests"]:
                text = (site.file, site.line, place.text, site.kind, space, site.width)
                yield Site(*text, _traffic(tally)), tally["serial"]


def _by_line(sites: Iterable[Site]) -> tuple[Site, ...]:
    """A line's accesses of one kind and width together: a loop that was unrolled has many."""
    merged: dict[Site, Traffic] = {}
    for site in sites:
        key = msgspec.structs.replace(site, traffic=Traffic())
        merged[key] = merged.get(key, Traffic()) + site.traffic
    return tuple(msgspec.structs.replace(key, traffic=traffic) for key, traffic in merged.items())


def _footprint(asked: Request, spaces: Sequence[int], written: int) -> tuple[int, int]:
    """Bytes and sectors that were touched of the arrays in a space."""
    sizes = [
        _touched(marks[written]) for span, marks in zip(asked.spans, asked.marks, strict=True) if span.space in spaces
    ]
    return sum(b for b, _ in sizes), sum(s for _, s in sizes)


def _touched(marks: Words) -> tuple[int, int]:
    halves = marks.view(np.uint32)
    return int(np.bitwise_count(marks).sum()), int(np.count_nonzero(halves))


def _side(sites: Sequence[tuple[Site, int]], kind: str, asked: Request, library: CountedLibrary) -> dict[str, Traffic]:
    found: dict[str, Traffic] = {}
    for site, _ in sites:
        if site.kind == kind:
            found[site.space] = found.get(site.space, Traffic()) + site.traffic
    for space, number in (("device", DEVICE), ("constant", CONSTANT)):
        bytes_, sectors = _footprint(asked, (number,), kind == "write")
        if bytes_:
            found[space] = found.get(space, Traffic()) + Traffic(footprint=bytes_, footprint_sectors=sectors)
    private = _private(library, asked, kind) + Traffic(
        lanes=sum(site.traffic.lanes for site, _ in sites if (site.kind, site.space) == (kind, "private")),
        bytes=sum(site.traffic.bytes for site, _ in sites if (site.kind, site.space) == (kind, "private")),
    )
    found.pop("private", None)
    if private.lanes:
        found["private"] = private
    return {space: found[space] for space in SPACES if space in found}


def _private(library: CountedLibrary, asked: Request, kind: str) -> Traffic:
    lanes = bytes_ = 0
    for block, executions in zip(library.meaning.blocks, asked.block_lanes, strict=True):
        widths = block.writes if kind == "write" else block.reads
        lanes += int(executions) * len(widths)
        bytes_ += int(executions) * sum(widths)
    return Traffic(lanes=lanes, bytes=bytes_)


def _atomics(sites: Sequence[tuple[Site, int]]) -> dict[str, Atomics]:
    found: dict[str, Atomics] = {}
    for site, serial in sites:
        if site.kind in ATOMICS:
            key, t = f"{site.space} {site.kind}", site.traffic
            found[key] = found.get(key, Atomics()) + Atomics(t.requests, t.lanes, t.sectors, serial)
    return dict(sorted(found.items()))


def _arithmetic(library: CountedLibrary, asked: Request) -> dict[str, Arithmetic]:
    """A block's executions by simdgroups are known where it has an access; elsewhere they are the most of a lane."""
    requests: list[Any] = [int(n) for n in asked.block_requests]
    for site, tallies in zip(library.meaning.sites, asked.tally, strict=False):
        requests[site.block] = max(requests[site.block], int(tallies[:, 0].sum()))
    found: dict[str, Arithmetic] = {}
    for block, lanes, issued in zip(library.meaning.blocks, asked.block_lanes, requests, strict=True):
        for kind, number in block.arithmetic.items():
            if lanes:
                found[kind] = found.get(kind, Arithmetic()) + Arithmetic(int(lanes) * number, issued * number)
    return dict(sorted(found.items()))
