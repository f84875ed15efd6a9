"""The verb `mutate`: faults are planted in the built-in kernels, and the suite is run against each."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.mutation import campaign, equivalents, killers, report, resumption, table
from mlx_assay.conformance.mutation.bench import SAME_CODE, CampaignError
from mlx_assay.conformance.mutation.catalogue import names
from mlx_assay.conformance.mutation.mutant import Mutant, all_mutants, chosen
from mlx_assay.conformance.mutation.ruling import CHECKER, COMPILATION, KILLED, SURVIVED, Ruling
from mlx_assay.conformance.mutation.source import folder, sources
from mlx_assay.conformance.options import output
from mlx_assay.conformance.reporting.intake import LARGEST, read
from mlx_assay.conformance.verbs.interruption import interruptible
from mlx_assay.conformance.verbs.operators import check_known, met
from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE

Say = Callable[[str], object]
TICK_SECONDS, SAVE_SECONDS = 10.0, 30.0


def mutate(
    operations: Sequence[str],
    operators: Sequence[str],
    *,
    changed_since: str | None = None,
    shard: tuple[int, int] | None = None,
    limit: float = 10.0,
    workers: int = 2,
    json: str | None = None,
    html: str | None = None,
    learn: bool = False,
    recheck: bool = False,
    thorough: bool = False,
    all_listed: bool = False,
    resume: str | None = None,
    say: Say = print,
) -> int:
    """Runs a campaign; returns 0 where nothing survives, 1 for survivors, 3 where it is not complete."""
    checked_executor("host")
    target, for_page = checked_file(json), checked_file(html)
    try:
        reasons = equivalents.by_id(equivalents.reasons())
        equivalents.check(reasons, all_mutants().keys())
    except equivalents.StaleError as error:
        raise Refusal(str(error)) from None
    earlier = read_earlier(resume)
    mutants = _chosen(operations, operators, changed_since, say)
    if shard is not None:
        # In turn, so that each shard has mutants of every text: some take far longer than others.
        mutants = mutants[shard[0] - 1 :: shard[1]]
    began = time.monotonic()
    say(f"{counted(len(mutants), 'mutant')}, {workers} at a time")
    ground = resumption.ground(resumption.packages()) if earlier or target else ""
    kept = [] if earlier is None else resumption.kept(earlier, mutants, ground, lasting=[SAME_CODE.partition("{")[0]])
    told_kept(earlier, kept, ground, say)

    def reported(rulings: Sequence[Ruling], complete: bool) -> report.Campaign:
        seconds = campaign.spent(began)
        return report.campaign(mutants, rulings, complete=complete, seconds=seconds, workers=workers, ground=ground)

    try:
        watch = Progress(target, reported, kept).told
        with interruptible():
            rulings, complete = campaign.run(
                mutants,
                reasons,
                limit=limit,
                workers=workers,
                recheck=recheck,
                thorough=thorough,
                all_listed=all_listed,
                watch=watch,
                kept=kept,
            )
    except CampaignError as error:
        raise Refusal(str(error), EXIT_INCOMPLETE) from None
    found = reported(rulings, complete)
    if learn:
        _learn(mutants, rulings)
    return told(found, reasons, target, for_page, say)


def told(
    found: report.Campaign, reasons: Mapping[str, str], target: Path | None, for_page: Path | None, say: Say
) -> int:
    """Writes a campaign's reports and says what came of it; returns the exit code."""
    for line in table.rendered(found):
        say(line)
    if target is not None:
        report.write(found, target)
    if for_page is not None:
        from mlx_assay.conformance.mutation.page import page

        for_page.write_text(page(found), "utf-8")
    wrong = report.refuted(reasons, found.mutants)
    for row in wrong:
        say(f"equivalent by equivalents.toml, but killed by {row.killed_by}: {row.id}")
    if not found.complete:
        return EXIT_INCOMPLETE
    return EXIT_DIFFERS if found.totals[SURVIVED] or wrong else EXIT_CONFORMS


def read_earlier(name: str | None) -> report.Campaign | None:
    """The report that a campaign goes on from. Refusal: it is none."""
    if name is None:
        return None
    try:
        return report.decode(read(Path(name), LARGEST))
    except ValueError as error:
        raise Refusal(f"Expected a report of mlx-assay mutate --json to resume but got {name!r}: {error}") from None


def told_kept(earlier: report.Campaign | None, kept: Sequence[Ruling], ground: str, say: Say) -> None:
    """Says how much of an earlier report is kept, and why nothing is."""
    if earlier is None:
        return
    changed = "" if earlier.ground == ground else ": what ruled has changed since, or what is installed"
    say(f"{len(kept)} of {len(earlier.mutants)} rulings of the earlier report are kept{changed}")


def checked_file(name: str | None) -> Path | None:
    """Where a report is to be written. Refusal: nothing can be."""
    if name is None:
        return None
    try:
        return output(name)
    except ValueError as error:
        raise Refusal(str(error)) from None


def _chosen(operations: Sequence[str], operators: Sequence[str], since: str | None, say: Say) -> list[Mutant]:
    served = sorted({one for source in sources().values() for one in source.operations} & set(contracts()))
    for name in operations:
        if name not in served:
            raise Refusal(f"Expected an operation, one of {', '.join(served)}, but got {name!r}")
    check_known(operators, names())
    changed = None if since is None else changed_files(since)
    if changed is not None:
        say(f"changed since {since}: {', '.join(changed) or 'no text of a kernel'}")
    where = f"the kernels of {', '.join(operations) or 'any operation'}"
    return met(lambda: chosen(operations, operators, changed), operators, where, say, since)


def changed_files(since: str) -> list[str]:
    """Texts of kernels that differ from those of a commit. Refusal: no git, no repository, no such commit."""
    root = folder()
    found = []
    for name, source in sources().items():
        command = ("git", "-C", str(root), "show", f"{since}:./{name}")
        try:
            shown = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Refusal(f"Expected git for --changed-since but it cannot be run: {error}") from None
        if shown.returncode and _unknown(root, since):
            raise Refusal(f"Expected a commit of the repository of {root} but got {since!r}: {shown.stderr.strip()}")
        if shown.returncode or shown.stdout != source.text:
            found.append(name)
    return found


def _unknown(root: Path, since: str) -> bool:
    command = ("git", "-C", str(root), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


def _learn(mutants: Sequence[Mutant], rulings: Sequence[Ruling]) -> None:
    texts = {mutant.id: mutant.source.name for mutant in mutants}
    cases = [
        (texts[ruling.id], ruling.killed_by)
        for ruling in rulings
        if ruling.outcome == KILLED and not ruling.killed_by.startswith((f"{CHECKER}:", f"{COMPILATION}:"))
    ]
    killers.write(killers.learned(cases))


class Progress:
    """A line on standard error for each survivor, and one every ten seconds.

    With `target`, what has been ruled until then is written there twice a minute, lest it be lost if the process is.
    """

    def __init__(
        self,
        target: Path | None = None,
        reported: Callable[[Sequence[Ruling], bool], report.Campaign] | None = None,
        kept: Sequence[Ruling] = (),
    ) -> None:
        self._began = self._told = self._saved = time.monotonic()
        self._now = 0
        self._target, self._reported, self._rulings = target, reported, list(kept)

    def told(self, ruling: Ruling, done: int, total: int) -> None:
        """Of `total`, `done` are ruled on."""
        self._rulings.append(ruling)
        self._now += 1
        if self._target and self._reported and time.monotonic() - self._saved > SAVE_SECONDS:
            self._saved = time.monotonic()
            report.write(self._reported(self._rulings, len(self._rulings) == total), self._target)
        if ruling.outcome == SURVIVED:
            print(f"survived: {ruling.id}", file=sys.stderr, flush=True)
        if time.monotonic() - self._told > TICK_SECONDS:
            self._told = time.monotonic()
            left = (total - done) * (time.monotonic() - self._began) / self._now
            print(f"{done:,} of {counted(total, 'mutant')}, {left:,.0f} s left", file=sys.stderr, flush=True)
