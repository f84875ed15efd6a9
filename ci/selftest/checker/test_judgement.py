"""The judge of the corpus sees a finding that is missing, at another line, of another array, or too many."""

import pytest
from checker.corpus import Kernel, Mark
from checker.judgement import objections

from mlx_assay.impl.executors.checker.finding import Access, Finding, Kind, Place

KERNEL = Kernel(
    "k",
    {"source": "shared[i] = 1;\nthreadgroup_barrier(mem_flags::mem_none);\nx = shared[j];\n", "header": ""},
    (
        Mark("fault", ("race",), "shared", None, "source", 3),
        Mark("other", ("race",), file="source", line=1),
        Mark("may", ("uninitialised-read",), file="source", line=3),
        Mark("fault", ("unwritten-output",), "out", 7),
    ),
)


def access(line: int, thread: int) -> Access:
    place = Place("source", line, KERNEL.line("source", line))
    return Access("read", place, (thread, 0, 0), (0, 0, 0))


RACE = Finding(Kind.RACE, "k", "races", (access(3, 0), access(1, 40)), "shared", "threadgroup", 3)
UNWRITTEN = Finding(Kind.UNWRITTEN, "k", "is unwritten", (), "out", "device", 7)
READ = Finding(Kind.UNINITIALISED, "k", "is not set", (access(3, 0),), "shared", "threadgroup", 3)
GARBAGE = Finding(Kind.DEPENDS_ON_GARBAGE, "k", "depends", (), "out", "device", 0)


@pytest.mark.parametrize("more", [(), (READ,), (GARBAGE,), (READ, GARBAGE)])
def test_what_is_meant(more: tuple[Finding, ...]) -> None:
    assert objections(KERNEL, [RACE, UNWRITTEN, *more]) == []


def changed(finding: Finding, **changes: object) -> Finding:
    import msgspec

    return msgspec.structs.replace(finding, **changes)


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([UNWRITTEN], "missed: fault race"),
        ([RACE], "missed: fault unwritten-output out[7]"),
        ([RACE, changed(UNWRITTEN, index=6)], "missed: fault unwritten-output"),
        ([changed(RACE, array="other"), UNWRITTEN], "missed: fault race shared"),
        ([changed(RACE, kind=Kind.SIMDGROUP_RACE), UNWRITTEN], "not meant: simdgroup-race"),
        ([changed(RACE, accesses=(access(3, 0), access(2, 40))), UNWRITTEN], "not meant: race"),
        ([changed(RACE, accesses=(access(1, 0), access(1, 40))), RACE, UNWRITTEN], "not meant: race"),
        ([changed(RACE, accesses=(access(3, 0), access(1, 0))), UNWRITTEN], "names one thread twice"),
        ([changed(RACE, accesses=(access(3, 0),)), UNWRITTEN], "names 1 accesses"),
        ([RACE, UNWRITTEN, changed(READ, kind=Kind.SHIFT)], "not meant: shift-count"),
        ([RACE, UNWRITTEN, changed(READ, accesses=(access(1, 0),))], "not meant: uninitialised-read"),
        ([RACE, UNWRITTEN, changed(READ, accesses=())], "not meant: uninitialised-read"),
        ([RACE, changed(UNWRITTEN, message=" ")], "without a message"),
        ([RACE, changed(UNWRITTEN, kernel="l")], "of kernel 'l'"),
        ([RACE, UNWRITTEN, changed(RACE, kind=Kind.BARRIER_FLAGS)], "wrong barrier"),
    ],
)
def test_what_is_not(findings: list[Finding], said: str) -> None:
    assert any(said in objection for objection in objections(KERNEL, findings))


def test_quotes_are_held() -> None:
    wrong = Access("read", Place("source", 3, "y = shared[j];"), (0, 0, 0), (0, 0, 0))
    assert any("quotes" in o for o in objections(KERNEL, [changed(RACE, accesses=(wrong, access(1, 40))), UNWRITTEN]))


def test_a_sound_kernel_is_silent() -> None:
    twin = Kernel("k", KERNEL.texts, ())
    assert objections(twin, []) == []
    for finding in (RACE, UNWRITTEN, GARBAGE):
        assert objections(twin, [finding]) != []
