"""The account of one sweep: which chunks have come, each once, and what they add up to."""

from __future__ import annotations

import hashlib

import msgspec

from mlx_assay.conformance.sweeping.chunk import Chunk, Spot
from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.conformance.verdict import INCOMPLETE, Verdict, weakest

PLACES = 64
"""Places that are told of one sweep, the first that came of each chunk."""

CONFORMING = frozenset({Verdict.SAME_BITS, Verdict.SAME_VALUE, Verdict.WITHIN_ULP, Verdict.WITHIN_BOUND})


class SweepRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of one sweep.

    `inputs` are all that it has, `asked` those of the chunks that this campaign was to judge, `judged` those that were.
    `differing` counts all places of outputs that do not conform; `places` are some of them. `doubtful` places went
    through the sieve to the whole panel. `digest` is SHA-256 over the digests of the chunks asked for, in order; null
    until all have come. `lost` says why chunks have not come, the first few. `seconds` are those of the workers.
    """

    id: str
    operation: str
    dtype: str
    why: str
    inputs: int
    asked: int
    judged: int
    chunks: int
    chunks_judged: int
    verdict: Verdict
    conforms: bool
    differing: int
    doubtful: int
    worst_ulp: int | None
    digest: str | None
    seconds: float
    relaxations: list[str] = []
    oracles: list[str] = []
    missing: list[str] = []
    without: list[str] = []
    places: list[Spot] = []
    message: str = ""
    lost: list[str] = []


class Account:
    """Adds up the chunks of one sweep; `span` are those that the campaign asks for."""

    def __init__(self, sweep: Sweep, span: range) -> None:
        self.sweep = sweep
        self.span = span
        self.judged = self.differing = self.doubtful = 0
        self._digests: dict[int, bytes] = {}
        self._verdicts: set[Verdict] = set()
        self._worst: int | None = 0
        self._seconds = 0.0
        self._named: dict[str, dict[str, None]] = {
            name: {} for name in ("relaxations", "oracles", "missing", "without")
        }
        self._places: list[Spot] = []
        self._message: tuple[int, str] | None = None
        self._lost: list[str] = []

    @property
    def asked(self) -> int:
        """Inputs of the chunks that are asked for."""
        return sum(len(self.sweep.span(index)) for index in self.span) * self.sweep.size

    def has(self, index: int) -> bool:
        """Whether a chunk has come."""
        return index in self._digests

    def add(self, chunk: Chunk) -> None:
        """Counts a chunk. ValueError: it has come already, or was not asked for."""
        if self.has(chunk.index) or chunk.index not in self.span:
            raise ValueError(f"Expected each chunk of {self.span} once but got {chunk.index} of {self.sweep.id}")
        self._digests[chunk.index] = bytes.fromhex(chunk.digest)
        self._verdicts.add(chunk.verdict)
        self.judged += chunk.judged
        self.differing += chunk.differing
        self.doubtful += chunk.doubtful
        self._worst = None if None in (self._worst, chunk.worst_ulp) else max(self._worst or 0, chunk.worst_ulp or 0)
        self._seconds += chunk.seconds
        for name, found in self._named.items():
            found.update(dict.fromkeys(getattr(chunk, name)))
        self._places.extend(chunk.places[: PLACES - len(self._places)])
        if chunk.message and (self._message is None or chunk.index < self._message[0]):
            self._message = chunk.index, chunk.message

    def lose(self, index: int, reason: str) -> None:
        """Notes why a chunk has not come."""
        if len(self._lost) < PLACES:
            self._lost.append(f"chunk {index}: {reason[:400]}")

    def record(self) -> SweepRecord:
        """As of now. Chunks that have not come leave it not-run, unless one that came shows a fault."""
        whole = len(self._digests) == len(self.span)
        verdicts = [*self._verdicts, *([] if whole else [Verdict.NOT_RUN])]
        verdict = weakest(verdicts)
        case = self.sweep.case
        return SweepRecord(
            id=self.sweep.id,
            operation=case.operation,
            dtype=case.dtype,
            why=self.sweep.why,
            inputs=self.sweep.inputs,
            asked=self.asked,
            judged=self.judged,
            chunks=len(self.span),
            chunks_judged=len(self._digests),
            verdict=verdict,
            conforms=verdict in CONFORMING,
            differing=self.differing,
            doubtful=self.doubtful,
            worst_ulp=self._worst,
            digest=self._digest() if whole else None,
            seconds=round(self._seconds, 3),
            places=sorted(self._places, key=lambda spot: (spot.block, spot.index)),
            message=self._message[1] if self._message else "",
            lost=self._lost,
            **{name: list(found) for name, found in self._named.items()},
        )

    @property
    def faulty(self) -> bool:
        """Whether a chunk that came shows a fault."""
        return bool(self._verdicts - CONFORMING - INCOMPLETE)

    def _digest(self) -> str:
        total = hashlib.sha256()
        for index in self.span:
            total.update(self._digests[index])
        return total.hexdigest()
