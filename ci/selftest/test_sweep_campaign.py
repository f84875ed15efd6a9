"""Campaigns on any executor: workers that die, results that come twice or are another's, and what the journal takes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from mlx_assay.conformance.reporting.report import Suite
from mlx_assay.conformance.sweeping import campaign, report, softcap
from mlx_assay.conformance.sweeping.account import Account
from mlx_assay.conformance.sweeping.campaign import Campaign, Job
from mlx_assay.conformance.sweeping.chunk import Chunk
from mlx_assay.conformance.sweeping.identity import Identity, content
from mlx_assay.conformance.sweeping.journal import Contradiction, Journal, JournalError
from mlx_assay.conformance.sweeping.scheduler import Scheduler
from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.conformance.verdict import Verdict

SWEEP = replace(softcap.wide("logit_softcap", 30), blocks=20, step=2)
IDENTITY = Identity(
    suite=Suite(version="1", fixtures="a", judge="b"),
    implementation="x",
    content="c",
    executor={"name": "host"},
    device="cpu",
    machine="m",
    python="3",
    packages={"mlx": "0.32.4"},
    every=False,
)


def chunk(index: int, **changes: object) -> Chunk:
    span = SWEEP.span(index)
    inputs = len(span) * SWEEP.size
    made = Chunk(
        sweep=SWEEP.id,
        index=index,
        first=span.start,
        blocks=len(span),
        inputs=inputs,
        judged=inputs,
        verdict=Verdict.SAME_BITS,
        differing=0,
        doubtful=0,
        worst_ulp=0,
        digest=f"{index:064x}",
        identity=IDENTITY.digest,
        seconds=0.1,
    )
    return msgspec.structs.replace(made, **changes)


class Fragile:
    """A scheduler on threads whose executor breaks for all that it holds when one of some chunks is asked for."""

    def __init__(self, deadly: dict[int, int]) -> None:
        self.deadly = deadly
        self.handed: list[int] = []
        self.pool = ThreadPoolExecutor(2)
        self.held: list[Future[bytes]] = []
        self.room = 4

    def submit(self, order: bytes) -> Future[bytes]:
        index = int(order)
        self.handed.append(index)
        if self.deadly.get(index, 0):
            self.deadly[index] -= 1
            broken: Future[bytes] = Future()
            for future in (broken, *self.held):
                if not future.done():
                    future.set_exception(BrokenExecutor("a worker died"))
            return broken
        future = Future[bytes]()
        self.held.append(future)
        self.pool.submit(lambda: future.done() or future.set_result(msgspec.json.encode(chunk(index))))
        return future

    def renew(self) -> None:
        self.held.clear()


def conducted(scheduler: object) -> tuple[list[int], list[int], bool]:
    kept: list[int] = []
    lost: list[int] = []
    run = Campaign(
        scheduler,  # type: ignore[arg-type]
        lambda job: str(job.index).encode(),
        lambda _, found: kept.append(found.index),
        lambda job, _: lost.append(job.index),
    )
    complete = run.run((Job(SWEEP, index) for index in range(SWEEP.chunks)), lambda: False)
    return kept, lost, complete


@pytest.mark.parametrize("deadly", [{}, {3: 1}, {0: 2, 7: 1}, {1: 1, 2: 1, 9: 3}])
def test_each_chunk_comes_once_whatever_dies(deadly: dict[int, int]) -> None:
    kept, lost, complete = conducted(Fragile(dict(deadly)))
    assert (sorted(kept), lost, complete) == (list(range(10)), [], True)


def test_a_chunk_that_always_kills_its_worker_is_lost_alone() -> None:
    kept, lost, complete = conducted(Fragile({4: 100}))
    assert (sorted(kept), lost, complete) == ([0, 1, 2, 3, 5, 6, 7, 8, 9], [4], True)


def test_a_campaign_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "MOST_LOST", 2)
    kept, lost, complete = conducted(Fragile(dict.fromkeys(range(10), 100)))
    assert (kept, len(lost), complete) == ([], 2, False)


def test_any_executor_serves() -> None:
    """Chunks that raise are tried again, then named."""
    pool = ThreadPoolExecutor(2)
    scheduler = Scheduler("threads", lambda: pool, lambda: 2)
    lost: list[tuple[int, str]] = []
    run = Campaign(scheduler, lambda _: b"no order", lambda *_: None, lambda job, why: lost.append((job.index, why)))
    assert run.run(iter([Job(SWEEP, 1)]), lambda: False)
    ((index, why),) = lost
    assert index == 1
    assert why.startswith("DecodeError")


def test_an_account_counts_a_chunk_once() -> None:
    account = Account(SWEEP, range(10))
    for index in range(10):
        assert account.record().conforms is False
        account.add(chunk(index))
    assert (account.record().conforms, account.record().judged) == (True, SWEEP.inputs)
    with pytest.raises(ValueError, match="once"):
        account.add(chunk(3))
    with pytest.raises(ValueError, match="once"):
        Account(SWEEP, range(3)).add(chunk(3))


def test_the_verdict_of_a_campaign() -> None:
    """Nothing conforms that did not come, and a fault with all of it there is a difference."""

    def verdict(*chunks: Chunk, complete: bool = True) -> str:
        account = Account(SWEEP, range(2))
        for found in chunks:
            account.add(found)
        return report.outcome([account.record()], complete)

    assert verdict(chunk(0), chunk(1)) == "conforms"
    assert verdict(chunk(0), chunk(1), complete=False) == "incomplete"
    assert verdict(chunk(0)) == "incomplete"
    assert verdict(chunk(0, verdict=Verdict.DIFFERS)) == "incomplete"
    assert verdict(chunk(0), chunk(1, missing=["stock-mlx"])) == "incomplete"
    assert verdict(chunk(0), chunk(1, judged=0)) == "differs"
    for bad in (Verdict.DIFFERS, Verdict.CRASHED, Verdict.UNSUPPORTED):
        assert verdict(chunk(0), chunk(1, verdict=bad)) == "differs"
    for untold in (Verdict.NOT_RUN, Verdict.ORACLES_DISAGREE):
        assert verdict(chunk(0), chunk(1, verdict=untold)) == "incomplete"
    assert report.outcome([], True) == "incomplete"


def opened(folder: Path, identity: Identity = IDENTITY, resume: bool = True) -> Journal:
    return Journal(folder / "journal", identity, resume=resume)


CHANGES: list[tuple[str, Callable[[Identity], Identity]]] = [
    ("implementation was x", lambda one: msgspec.structs.replace(one, implementation="y")),
    ("content was c", lambda one: msgspec.structs.replace(one, content="d")),
    ("suite was", lambda one: msgspec.structs.replace(one, suite=Suite(version="1", fixtures="z", judge="b"))),
    ("packages was", lambda one: msgspec.structs.replace(one, packages={"mlx": "0.32.5"})),
    ("executor was", lambda one: msgspec.structs.replace(one, executor={"name": "metal"})),
]


@pytest.mark.parametrize(("text", "change"), CHANGES)
def test_another_campaigns_journal_is_refused(
    text: str, change: Callable[[Identity], Identity], tmp_path: Path
) -> None:
    opened(tmp_path).__exit__(None, None, None)
    with pytest.raises(JournalError, match=text):
        opened(tmp_path, change(IDENTITY))


def test_a_journal_keeps_a_chunk_once(tmp_path: Path) -> None:
    with opened(tmp_path, resume=False) as journal:
        assert journal.keep(SWEEP, chunk(3))
        assert not journal.keep(SWEEP, chunk(3, seconds=7.0))
        with pytest.raises(Contradiction, match="something else"):
            journal.keep(SWEEP, chunk(3, digest="00" * 32))
        with pytest.raises(JournalError, match="install the same there"):
            journal.keep(SWEEP, chunk(4, identity="another"))
        with pytest.raises(JournalError, match="0 to 9, but got 10"):
            journal.keep(SWEEP, msgspec.structs.replace(chunk(4), index=10))
        with pytest.raises(JournalError, match="in use by another campaign"):
            opened(tmp_path)
    with opened(tmp_path) as journal:
        assert [found.index for found in journal.kept(SWEEP)] == [3]
        assert [found.index for found in journal.kept(softcap.wide("logit_softcap", 30))] == []


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"sha256": "00", "chunk": {}}', b"[" * 100_000, b"\xff" * 10])
def test_a_damaged_record_counts_for_nothing(damage: bytes, tmp_path: Path) -> None:
    with opened(tmp_path, resume=False) as journal:
        journal.keep(SWEEP, chunk(3))
        (path,) = (tmp_path / "journal").glob("*/*.json")
        path.write_bytes(damage)
        assert list(journal.kept(SWEEP)) == []
        assert journal.damaged == [str(path)]
        assert journal.keep(SWEEP, chunk(3))
        assert [found.index for found in journal.kept(SWEEP)] == [3]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "thesis.tex").touch()
    with pytest.raises(JournalError, match=r"holds 'thesis\.tex'"):
        opened(tmp_path)


def test_the_content_of_an_implementation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module's file, every file of its package, a program's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "single.py").write_text("x = 1")
    package = tmp_path / "several" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "kernel.metal").write_text("a")
    names = ("single:thing", "several.inner", "cmd: python single.py")
    before = {name: content(name) for name in names}
    assert all(before.values())
    (tmp_path / "single.py").write_text("x = 2")
    (package / "kernel.metal").write_text("b")
    assert not set(before.values()) & {content(name) for name in names}
    assert content(None) == content("mlx_assay.impl") != ""


def test_a_span_is_bounded() -> None:
    sweep: Sweep = replace(SWEEP, blocks=5)
    assert [list(sweep.span(index)) for index in range(sweep.chunks)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(IndexError, match="0 to 2, but got 3"):
        sweep.span(3)
