"""A bundle judged again: by what it holds, by the oracles that are here, and by its kernels run here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mlx_assay.conformance.bundling import archive
from mlx_assay.conformance.bundling.document import Bundle, BundledSubcase, Round, Want
from mlx_assay.conformance.bundling.launches import Buffer
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.conformance.bundling.rerun import Rerun, rerun
from mlx_assay.conformance.contract import contracts, seen
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.judging.compare import Comparison, compare
from mlx_assay.conformance.judging.panel import Disagreement, Panel
from mlx_assay.conformance.reporting.report import Outcome
from mlx_assay.conformance.verbs.replay import described, same_encodings, summarised
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Subcase
from mlx_assay.oracles.registry import load

Say = Callable[[str], object]
RANK: tuple[Outcome, ...] = ("conforms", "differs", "incomplete")


@dataclass(frozen=True)
class Yardstick:
    """What an output is held against: an oracle's expectation, from the bundle or from here."""

    title: str
    output: np.ndarray
    conforms: Verdict
    ulps: int | np.ndarray | None


class Rejudging:
    """The judging of one bundle. `limit` are seconds for the launches of one round; 0: no kernel is run."""

    def __init__(self, bundle: Bundle, pool: Pool, limit: float, say: Say) -> None:
        self._bundle = bundle
        self._pool = pool
        self._limit = limit
        self._say = say
        self.found: dict[str, set[Outcome]] = {}

    def run(self) -> Outcome:
        """Judges everything, tells of it, and gives the outcome: incomplete before differs before conforms."""
        for subcase in self._bundle.subcases:
            self._say(f"subcase {subcase.label}")
            arguments = archive.given(subcase, self._pool)
            for name, value in arguments.arguments.items():
                self._say(f"  {name}: {described(value)}")
            bundled = [self._bundled(want) for want in subcase.wants]
            here = self._here(arguments, bundled)
            if subcase.untold:
                self._say(f"  nothing was expected: {subcase.untold}")
            for number, each in enumerate(subcase.rounds):
                self._round(number, subcase, each, [*bundled, *here])
            if not subcase.rounds:
                self._say("  not called: the process had ended")
                if self._bundle.verdict not in (Verdict.CRASHED, Verdict.TIMED_OUT):
                    self.found.setdefault("bundled", set()).add("incomplete")
        return max((worst(found) for found in self.found.values()), key=RANK.index, default="incomplete")

    def _note(self, what: str, outcome: Outcome, line: str) -> None:
        self.found.setdefault(what, set()).add(outcome)
        self._say(line)

    def _bundled(self, want: Want) -> Yardstick:
        ulps = archive.array(want.ulps, self._pool) if isinstance(want.ulps, Buffer) else want.ulps
        title = f"{want.oracle} {want.version} (bundled)"
        return Yardstick(title, archive.array(want.output, self._pool), want.conforms, ulps)

    def _here(self, subcase: Subcase, bundled: list[Yardstick]) -> list[Yardstick]:
        """What the oracles that are here expect; of those that expect the bundle's bits it is told, no more."""
        contract = contracts().get(self._bundle.operation)
        if contract is None or subcase.raises or tuple(subcase.arguments) != contract.parameters:
            return []
        panel = Panel(contract, load, self._bundle.relaxations)
        for name in panel.missing:
            self._say(f"  oracle {name} is missing here")
        try:
            if fault := panel.fault():
                raise Disagreement(fault)
            executor = {**self._bundle.executor.details, "name": self._bundle.executor.name}
            expected = panel.expect(seen(subcase, executor))
        except Disagreement as error:
            self._say(f"  oracles here: {error}")
            return []
        found, same_bits = [], []
        for each in expected:
            title, conforms = f"{panel.title(each.reference)} (here)", each.reference.conforms
            same = next((known for known in bundled if same_encodings(known.output, each.output)), None)
            if same is None or same.conforms is not conforms:
                found.append(Yardstick(title, each.output, conforms, each.ulps))
            else:
                same_bits.append(title)
        if same_bits:
            self._say(f"  expect the bits that the bundle holds: {', '.join(same_bits)}")
        return found

    def _round(self, number: int, subcase: BundledSubcase, each: Round, yardsticks: list[Yardstick]) -> None:
        where = f"  call {number + 1}"
        if subcase.raises or each.raised or each.got is None:
            self._raised(where, subcase, each)
            if self._limit and each.launches:
                self._fail_again(where, each)
            return
        got = archive.array(each.got, self._pool)
        self._say(f"{where} returned {summarised(got)}")
        self._hold("bundled", where, got, yardsticks)
        if self._limit and each.launches:
            self._rerun(where, each, got, yardsticks)
        elif each.launches:
            names = dict.fromkeys(self._bundle.kernels[launch.kernel].name for launch in each.launches)
            self._say(f"{where}: {counted(len(each.launches), 'launch', 'launches')} of {', '.join(names)} not run")
        if each.omitted:
            self._say(f"{where}: {each.omitted}")

    def _raised(self, where: str, subcase: BundledSubcase, each: Round) -> None:
        expected = " or ".join(subcase.raises) or "a result"
        if each.raised is None:
            told = each.other or "a result"
            self._note("bundled", "differs", f"{where} gave {told}, expected {expected}")
            return
        right = bool(set(each.raised.bases) & set(subcase.raises))
        told = f"{where} raised {each.raised.type}: {each.raised.message}, expected {expected}"
        self._note("bundled", "conforms" if right else "differs", told)

    def _fail_again(self, where: str, each: Round) -> None:
        made = rerun(self._bundle, each, self._pool, self._limit)
        told = f"fails: {made.failure}" if made.failure else "comes to its end"
        self._say(f"{where}, run again on host, {told}")

    def _hold(self, what: str, where: str, got: np.ndarray, yardsticks: list[Yardstick]) -> None:
        if not yardsticks:
            self._note(what, "incomplete", f"{where}: no oracle says what is right")
        told: dict[tuple[str, ...], list[str]] = {}
        for yardstick in yardsticks:
            want = yardstick.output
            if got.dtype != want.dtype or got.shape != want.shape:
                line = f"{where}: {yardstick.title} expected {want.dtype} {list(want.shape)}"
                self._note(what, "differs", line)
                continue
            found = compare(got, want, self._bundle.relaxations, yardstick.ulps)
            reached = found.rung.reaches(yardstick.conforms)
            self.found.setdefault(what, set()).add("conforms" if reached else "differs")
            told.setdefault(tuple(_told(found)), []).append(yardstick.title)
        for (head, *places), titles in told.items():
            self._say(f"{where}: {head}, by {', '.join(titles)}")
            for place in places:
                self._say(place)

    def _rerun(self, where: str, each: Round, got: np.ndarray, yardsticks: list[Yardstick]) -> None:
        made = rerun(self._bundle, each, self._pool, self._limit)
        if made.failure:
            self._note("run again", "incomplete", f"{where}, run again on host, failed: {made.failure}")
            return
        differing = self._differing(each, made)
        count = len(each.launches)
        told = f"{count - len(differing)} of {counted(count, 'launch', 'launches')} gave the bits of the bundle"
        self._say(f"{where}, run again on host: {told}")
        source = result_of(each, self._pool, got)
        if source is None:
            outcome: Outcome = "differs" if differing else "conforms"
            self._note("run again", outcome, f"{where}: the result is made of outputs by MLX, not run again")
            return
        again = made.outputs[source].reshape(-1).view(np.uint8).view(got.dtype).reshape(got.shape)
        same = "the bits of the bundle" if same_encodings(again, got) else f"other bits: {summarised(again)}"
        self._say(f"{where}, run again on host, gives {same}")
        self._hold("run again", f"{where}, run again", again, yardsticks)

    def _differing(self, each: Round, made: Rerun) -> list[int]:
        """The launches of which some output has other bits than in the bundle."""
        return [
            index
            for index, launch in enumerate(each.launches)
            if any(
                not buffer.tensor or made.outputs[index, place].tobytes() != archive.array(buffer, self._pool).tobytes()
                for place, buffer in enumerate(launch.outputs)
            )
        ]


def result_of(each: Round, pool: Pool, got: np.ndarray) -> tuple[int, int] | None:
    """The launch and output whose bytes the call returned, the last one first; None where it is of none."""
    for index in reversed(range(len(each.launches))):
        for place, buffer in enumerate(each.launches[index].outputs):
            if buffer.tensor and archive.array(buffer, pool).tobytes() == got.tobytes():
                return index, place
    return None


def worst(found: set[Outcome]) -> Outcome:
    """Of several outcomes."""
    return max(found, key=RANK.index)


def _told(found: Comparison) -> Iterator[str]:
    ulp = "" if found.worst_ulp is None or not found.count else f", worst distance {found.worst_ulp} ulp"
    counts = f", {found.count} of {found.total} encodings differ{ulp}" if found.count else ""
    yield f"{found.rung.value}{counts}"
    for place in found.places:
        yield f"    at {place.index}: got {place.got} want {place.want}"
