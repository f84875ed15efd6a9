"""The verification of timed outputs, in the judge's process: which calls are checked is drawn after they were made."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlx_assay.conformance.bench.benchmark import Asked
from mlx_assay.conformance.bench.content import Content, Windows
from mlx_assay.conformance.bench.digest import digest
from mlx_assay.conformance.bench.message import Alarm, Outcome
from mlx_assay.conformance.contract import EXECUTOR, Contract
from mlx_assay.conformance.judging.judge import applicable
from mlx_assay.conformance.judging.panel import Panel
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.tensor import DTYPES
from mlx_assay.oracles.registry import load

WORD = 4
ALIKE = 4
"""Words of an output that must be there before one word everywhere tells of memory that nobody wrote."""
KEPT = 16
"""Queues whose content is compared with a wrong output, to say whether it was replayed."""


class Verification:
    """Holds the outputs of one rotation against what they should be."""

    def __init__(
        self,
        asked: Asked,
        contract: Contract,
        content: Content,
        environment: Mapping[str, Any],
        without: Sequence[str],
    ) -> None:
        self._asked = asked
        self._contract = contract
        self._content = content
        self._executor = environment["executor"]
        self._panel = Panel(contract, load, applicable(contract.relaxations, environment), without)
        self._relaxations = applicable(contract.relaxations, environment)
        self._random = random.SystemRandom()
        self._earlier: list[list[Windows]] = []
        self._bytes: dict[bytes, int] = {}
        self._turn = 0
        self.checked = 0
        self.compared = 0

    def queue(
        self, windows: Sequence[Windows], outcome: Outcome, contents: Sequence[bytes], count: int, always: int = -1
    ) -> list[Alarm]:
        """What is wrong with a queue's outputs; `count` of them are held against the oracle: `always`, others drawn.

        `contents` are their bytes where they are small, else empty. Disagreement, of oracles.
        """
        alarms = [*self._typed(windows, outcome), *self._against_reference(windows, outcome, contents)]
        others = [call for call in range(len(windows)) if call != always]
        first = [always] if always >= 0 else []
        chosen = sorted([*first, *self._random.sample(others, min(max(count - len(first), 0), len(others)))])
        for call in chosen:
            alarms = alarms or self._checked(call, windows, outcome, contents)
        self._bytes.update({data: self._turn + call for call, data in enumerate(contents) if data})
        self.remember(windows)
        return alarms

    def remember(self, windows: Sequence[Windows]) -> None:
        """Calls that are not verified, whose answers may be replayed."""
        self._earlier = [*self._earlier, list(windows)][-KEPT:]
        self._turn += len(windows)

    def part(self, windows: Windows, data: bytes, dtype: str, shape: Sequence[int]) -> list[Alarm]:
        """Holds a part of one output, of which all bytes are there, against every oracle of the contract."""
        return self._judged(self._content.arguments(windows), _array(data, dtype, shape))

    def draw(self, count: int) -> int:
        """One of so many calls, drawn now."""
        return self._random.randrange(count)

    def _typed(self, windows: Sequence[Windows], outcome: Outcome) -> list[Alarm]:
        if len(outcome.outputs) != len(windows):
            return [Alarm("unlike-itself", f"{len(windows)} calls gave {len(outcome.outputs)} outputs")]
        kinds = {(output.dtype, tuple(output.shape)) for output in outcome.outputs}
        if len(kinds) > 1:
            return [Alarm("unlike-itself", f"calls of one shape gave {', '.join(sorted(map(str, kinds)))}")]
        return []

    def _against_reference(
        self, windows: Sequence[Windows], outcome: Outcome, contents: Sequence[bytes]
    ) -> list[Alarm]:
        pairs = list(zip(outcome.outputs, outcome.references, strict=False))
        self.compared += len(pairs)
        wrong = [call for call, (output, want) in enumerate(pairs) if tuple(output.digest) != tuple(want)]
        return [self._named(wrong[0], len(wrong), windows, outcome, contents)] if wrong else []

    def _checked(
        self, call: int, windows: Sequence[Windows], outcome: Outcome, contents: Sequence[bytes]
    ) -> list[Alarm]:
        self.checked += 1
        output = outcome.outputs[call]
        if contents[call]:
            found = _array(contents[call], output.dtype, output.shape)
            if digest(found, outcome.key) != tuple(output.digest):
                return [Alarm("deferred", f"the output of call {self._turn + call + 1} changed after the timed span")]
            wrong = self._judged(self._content.arguments(windows[call]), found)
            return [self._named(call, 1, windows, outcome, contents)] if wrong else []
        if digest(self._expected(windows[call]), outcome.key) != tuple(output.digest):
            return [self._named(call, 1, windows, outcome, contents)]
        return []

    def _expected(self, windows: Windows) -> np.ndarray:
        """The first oracle's output of a whole call."""
        seen = {**self._content.arguments(windows), EXECUTOR: self._executor}
        with np.errstate(all="ignore"):
            return np.asarray(self._contract.references[0].compute(seen), order="C")

    def _judged(self, arguments: Mapping[str, Any], found: np.ndarray) -> list[Alarm]:
        smaller, place = self._asked.benchmark.part(arguments, Draw(self._random.getrandbits(128)))
        part = np.ascontiguousarray(found[place])
        for expected in self._panel.expect({**smaller, EXECUTOR: self._executor}):
            if part.dtype != expected.output.dtype or part.shape != expected.output.shape:
                return [Alarm("unlike-itself", f"got {part.dtype}{list(part.shape)} of a timed call")]
            comparison = expected.compare(part, self._relaxations)
            if not expected.reached(comparison):
                where = comparison.places[0]
                told = f"a timed output differs: got {where.got} want {where.want} at {list(where.index)} of a part"
                return [Alarm("unlike-itself", told)]
        return []

    def _named(
        self, call: int, wrong: int, windows: Sequence[Windows], outcome: Outcome, contents: Sequence[bytes]
    ) -> Alarm:
        """What a wrong output is known for: poison, another call's answer, or nothing but that it is wrong."""
        data = contents[call]
        if len(data) >= ALIKE * WORD and data == data[:WORD] * (len(data) // WORD):
            return Alarm("unwritten", f"the output of a timed call holds 0x{data[:WORD][::-1].hex()} everywhere")
        if data and data in self._bytes:
            return self._replayed(call, f"call {self._bytes[data] + 1}")
        got = tuple(outcome.outputs[call].digest)
        alike = [
            other
            for other, output in enumerate(outcome.outputs)
            if windows[other] != windows[call] and tuple(output.digest) == got
        ]
        if alike:
            return self._replayed(call, f"call {self._turn + alike[0] + 1}")
        if self._asked.benchmark.wholly:
            for queue in [list(windows), *reversed(self._earlier)]:
                for places in queue:
                    if places != windows[call] and digest(self._expected(places), outcome.key) == got:
                        return self._replayed(call, "another call")
        of = f"{wrong} of {len(windows)} timed outputs of a queue are" if wrong > 1 else "an output of a timed call is"
        return Alarm("unlike-itself", f"{of} wrong, where the cases before conformed (call {self._turn + call + 1})")

    def _replayed(self, call: int, of: str) -> Alarm:
        return Alarm("replayed", f"call {self._turn + call + 1} returned the output of {of}, on other content")


def _array(data: bytes, dtype: str, shape: Sequence[int]) -> np.ndarray:
    kind = DTYPES.get(dtype, np.dtype(np.uint8))
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.frombuffer(data[:size].ljust(size, b"\0"), kind).reshape(shape)
