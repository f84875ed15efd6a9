"""A chunk: blocks of a sweep judged in one go, a function of sweep, implementation, executor and the chunk's number."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from dataclasses import dataclass, field

import msgspec
import numpy as np

from mlx_assay.conformance.judging.ulp import MANTISSA_BITS, has_distance, infinity, is_nan
from mlx_assay.conformance.process.child import Death
from mlx_assay.conformance.process.exchange import Run
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.sweeping.examiner import PLACES, Examined, Examiner
from mlx_assay.conformance.verdict import FAULTS, INCOMPLETE, Verdict, weakest
from mlx_assay.fixtures.case import Subcase

ENDING = frozenset({*FAULTS, *INCOMPLETE} - {Verdict.DIFFERS})
"""After these the rest of a chunk is left: its process is gone, or it cannot be judged."""

MESSAGE = 4000
"""Characters of a message that are kept."""


class Spot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place that differs: the block, the place in its output, what was put in, and both encodings."""

    block: int
    index: list[int]
    input: str
    got: str
    want: str


class Chunk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of one chunk.

    `first` and `blocks` say which blocks it has, `judged` how many of its `inputs` were judged. `differing` counts
    every place of an output that does not conform, of which `places` are the first ones. `doubtful` places were
    judged by the whole panel, the sieve having no answer. `digest` is over the outputs' encodings (see `digest`).
    `identity` is that of what judged and was judged, as the process that judged knows it.
    """

    sweep: str
    index: int
    first: int
    blocks: int
    inputs: int
    judged: int
    verdict: Verdict
    differing: int
    doubtful: int
    worst_ulp: int | None
    digest: str
    identity: str
    seconds: float
    relaxations: list[str] = []
    places: list[Spot] = []
    message: str = ""
    oracles: list[str] = []
    missing: list[str] = []
    without: list[str] = []


@dataclass
class _Tally:
    verdicts: list[Verdict] = field(default_factory=list)
    blocks: int = 0
    differing: int = 0
    doubtful: int = 0
    worst: int | None = 0
    places: list[Spot] = field(default_factory=list)
    message: str = ""
    relaxations: dict[str, None] = field(default_factory=dict)

    def add(self, block: int, found: Examined) -> None:
        self.verdicts.append(found.verdict)
        self.blocks += found.verdict not in ENDING
        self.differing += found.differing
        self.doubtful += found.doubtful
        self.worst = None if None in (self.worst, found.worst_ulp) else max(self.worst or 0, found.worst_ulp or 0)
        for place, told in zip(found.places, found.told, strict=True):
            if len(self.places) < PLACES:
                self.places.append(Spot(block, place.index, told, place.got, place.want))
        self.message = self.message or found.message[:MESSAGE]
        self.relaxations.update(dict.fromkeys(found.relaxations))


def perform(examiner: Examiner, index: int, implementation: Implementation, identity: str) -> Chunk:
    """Judges a chunk; never raises for what an implementation does. The next block is under way while one is judged."""
    began, sweep = time.perf_counter(), examiner.sweep
    span, tally, outputs = sweep.span(index), _Tally(), hashlib.sha256()
    if fault := examiner.fault():
        tally.add(span.start, Examined(fault.verdict, message=fault.message))
    else:
        _judge(examiner, span, implementation, tally, outputs)
    return Chunk(
        sweep=sweep.id,
        index=index,
        first=span.start,
        blocks=len(span),
        inputs=len(span) * sweep.size,
        judged=tally.blocks * sweep.size,
        verdict=weakest(tally.verdicts),
        differing=tally.differing,
        doubtful=tally.doubtful,
        worst_ulp=tally.worst,
        digest=outputs.hexdigest(),
        identity=identity,
        seconds=round(time.perf_counter() - began, 4),
        relaxations=list(tally.relaxations),
        places=tally.places,
        message=tally.message,
        oracles=list(examiner.panel.names),
        missing=list(examiner.panel.missing),
        without=list(examiner.without),
    )


def _judge(
    examiner: Examiner, span: range, implementation: Implementation, tally: _Tally, outputs: hashlib._Hash
) -> None:
    sweep = examiner.sweep
    under_way: deque[tuple[int, Subcase, Run]] = deque()
    try:
        if sweep.case.operation not in implementation.operations:
            what = f"It has no function {sweep.case.operation}"
            return tally.add(span.start, Examined(Verdict.UNSUPPORTED, message=what))
        under_way.append(_begin(examiner, span.start, implementation))
        while under_way:
            block, subcase, run = under_way[0]
            outcomes = run.complete()
            implementation.finish(run)
            under_way.popleft()
            if block + 1 in span:
                under_way.append(_begin(examiner, block + 1, implementation))
            found = examiner.examine(subcase, outcomes, sweep.rounds_of(block))
            tally.add(block, found)
            if found.verdict in ENDING:
                break
            if outcomes[0].array is not None:
                outputs.update(canonical(outcomes[0].array))
    except ImplementationError as error:
        tally.add(span.start, Examined(Verdict.ERROR, message=str(error)))
    except Death as death:
        tally.add(span.start, Examined(death.verdict, message=death.message))
    finally:
        for _, _, run in under_way:
            run.child.end()


def _begin(examiner: Examiner, block: int, implementation: Implementation) -> tuple[int, Subcase, Run]:
    sweep, subcase = examiner.sweep, examiner.sweep.make(block)
    given = (sweep.case.operation, [examiner.arguments(subcase)], examiner.contract.expansion, sweep.rounds_of(block))
    return block, subcase, implementation.begin(*given)


def canonical(output: np.ndarray) -> memoryview:
    """The encodings, little endian, each NaN as the quiet one of no payload and no sign: the same on every machine."""
    words = output.view(f"<u{output.itemsize}")
    if has_distance(output.dtype):
        nan = is_nan(output)
        if nan.any():
            quiet = infinity(output.dtype) | 1 << (MANTISSA_BITS[output.dtype] - 1)
            words = np.where(nan, words.dtype.type(quiet), words)
    return np.ascontiguousarray(words).reshape(-1).view(np.uint8).data
