"""`mutate --judge`: faults are planted in what judges, and the self-tests are run against each."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.mutation import equivalents, report, resumption
from mlx_assay.conformance.mutation.campaign import spent
from mlx_assay.conformance.mutation.judge import campaign
from mlx_assay.conformance.mutation.judge.faults import all_faults, chosen, names, reasons, sampled
from mlx_assay.conformance.mutation.judge.texts import AREAS, TEXTS
from mlx_assay.conformance.mutation.judge.workbench import WorkbenchError, digests, repository, surroundings
from mlx_assay.conformance.mutation.mutant import Mutant
from mlx_assay.conformance.mutation.ruling import KILLED, Ruling
from mlx_assay.conformance.verbs.interruption import interruptible
from mlx_assay.conformance.verbs.mutate import Progress, Say, checked_file, read_earlier, told, told_kept
from mlx_assay.conformance.verbs.operators import check_known, met
from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE


def judge_mutants(
    areas: Sequence[str],
    operators: Sequence[str],
    *,
    changed_since: str | None = None,
    limit: float = campaign.LIMIT,
    workers: int = 2,
    sample: int | None = None,
    seed: int = 0,
    json: str | None = None,
    html: str | None = None,
    learn: bool = False,
    recheck: bool = False,
    resume: str | None = None,
    say: Say = print,
) -> int:
    """Runs a campaign against what judges; exit codes and reports are those of one against kernels."""
    checked_executor("host")
    target, for_page = checked_file(json), checked_file(html)
    try:
        known = equivalents.by_id(reasons())
        equivalents.check(known, all_faults().keys())
    except (equivalents.StaleError, WorkbenchError) as error:
        raise Refusal(str(error)) from None
    earlier = read_earlier(resume)
    mutants = _chosen(areas, operators, changed_since, say)
    if sample is not None:
        mutants = sampled(mutants, sample, seed)
    began = time.monotonic()
    say(f"{counted(len(mutants), 'mutant')} of what judges, {workers} at a time")
    ground, tests = surroundings(), digests(sorted({mutant.source.name for mutant in mutants}))
    kept = [] if earlier is None else resumption.kept(earlier, mutants, ground, tests)
    told_kept(earlier, kept, ground, say)

    def reported(rulings: Sequence[Ruling], complete: bool) -> report.Campaign:
        seconds = spent(began)
        return report.campaign(
            mutants, rulings, complete=complete, seconds=seconds, workers=workers, ground=ground, tests=tests
        )

    try:
        watch = Progress(target, reported, kept).told
        with interruptible():
            rulings, complete = campaign.run(
                mutants, known, workers=workers, limit=limit, recheck=recheck, watch=watch, kept=kept
            )
    except WorkbenchError as error:
        raise Refusal(str(error), EXIT_INCOMPLETE) from None
    found = reported(rulings, complete)
    if learn:
        texts = {mutant.id: mutant.source.name for mutant in mutants}
        campaign.learn((texts[one.id], one.killed_by) for one in rulings if one.outcome == KILLED)
    return told(found, known, target, for_page, say)


def _chosen(areas: Sequence[str], operators: Sequence[str], since: str | None, say: Say) -> list[Mutant]:
    files = [text.stem for text in TEXTS]
    for name in areas:
        if name not in (*AREAS, *files):
            known = f"{', '.join(AREAS)}, or a file of one, as {files[-1]}"
            raise Refusal(f"Expected a part of what judges, one of {known}, but got {name!r}")
    check_known(operators, names())
    changed = None if since is None else changed_texts(since)
    if changed is not None:
        say(f"changed since {since}: {', '.join(changed) or 'no text of what judges'}")
    where = ", ".join(areas) or "what judges"
    return met(lambda: chosen(areas, operators, changed), operators, where, say, since)


def changed_texts(since: str) -> list[str]:
    """Texts that judge and differ from those of a commit. Refusal: no git, no such commit."""
    names_ = [text.name for text in TEXTS]
    command = ("git", "-C", str(repository()), "diff", "--name-only", "--end-of-options", since, "--", *names_)
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Refusal(f"Expected git for --changed-since but it cannot be run: {error}") from None
    if shown.returncode:
        raise Refusal(f"Expected a commit of the repository but got {since!r}: {shown.stderr.strip()}")
    changed = set(shown.stdout.splitlines())
    return [name for name in names_ if name in changed]
