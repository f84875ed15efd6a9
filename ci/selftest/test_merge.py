"""Shards put together: the whole run comes out, and any other set of shards is told apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sound import QUERY, Gate, document, ids, report

from mlx_assay.conformance.reporting.report import (
    Executor,
    Implementation,
    OracleState,
    Report,
    Shard,
    Source,
    Suite,
    decode,
)
from mlx_assay.conformance.splitting import whole
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, EXIT_USAGE, Verdict

COUNT = 3
NAMES = ids()


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


def part(index: int, names: Sequence[str] = (), count: int = COUNT, **fields: Any) -> Report:
    """Shard `index` from 1, every third case unless others are named."""
    chosen = names or NAMES[index - 1 :: COUNT]
    shard = Shard(index=index, count=count, whole=fields.pop("whole", whole(NAMES)))
    return report(ids=chosen, shard=shard, minutes=60 - index, **fields)


def merge(gate: Gate, *parts: Report | dict[str, Any] | bytes) -> int:
    files = [gate.file(f"shard-{number}.json", one) for number, one in enumerate(parts)]
    return gate.call("merge", *files, "--report", str(gate.folder / "whole.json"))


def test_the_whole_run_comes_out(gate: Gate) -> None:
    assert merge(gate, part(3), part(1), part(2)) == EXIT_CONFORMS, gate.text
    made = decode((gate.folder / "whole.json").read_bytes())
    assert [record.id for record in made.cases] == NAMES
    totals = made.totals
    assert (totals.declared, totals.same_bits, made.verdict, made.shard) == (len(NAMES), len(NAMES), "conforms", None)
    assert (made.started, made.seconds) == (part(1).started, 2000.5 + 2 * 60)
    assert made.run not in {part(index).run for index in (1, 2, 3)}
    assert gate(document(made)) == EXIT_CONFORMS, gate.text


def test_a_failing_case_of_one_shard_is_one_of_the_run(gate: Gate) -> None:
    assert merge(gate, part(1), part(2, verdicts={NAMES[1]: Verdict.CRASHED}), part(3)) == EXIT_DIFFERS
    made = decode((gate.folder / "whole.json").read_bytes())
    assert (made.verdict, made.totals.crashed) == ("differs", 1)


def other_version() -> Implementation:
    return msgspec.structs.replace(part(2).implementation, details={"version": "2"})


ENVIRONMENT = part(2).environment
CHECKED = Executor(name="host", details={"executor": "host", "checked": "yes"})
OTHER_ORACLES = ENVIRONMENT.oracles | {"numpy-reference": OracleState("ok", "2")}
OTHERS = "is a shard of another run: another"
FOREIGN: dict[str, tuple[list[Report], str]] = {
    "one is missing": ([part(1), part(3)], "missing: shard 2 of 3"),
    "all but one are missing": ([part(2)], "missing: shard 1, 3 of 3"),
    "one is repeated": ([part(1), part(2), part(2, run="again"), part(3)], "repeated: shard 2 of 3"),
    "the same file twice": ([part(1), part(2), part(2), part(3)], "it is the same run as"),
    "one is no shard": ([part(1), part(2), report(ids=NAMES[2::3])], "not a shard, among shards"),
    "none is a shard": ([report()], "not a shard, among shards"),
    "of another count": ([part(1), part(2, count=2), part(3)], f"{OTHERS} count"),
    "of other cases": ([part(1), part(2, whole="0" * 64), part(3)], f"{OTHERS} set of cases"),
    "of another leg": ([part(1), part(2, leg="linux"), part(3)], f"{OTHERS} leg"),
    "of another commit": ([part(1), part(2, source=Source(commit="f" * 40)), part(3)], f"{OTHERS} commit"),
    "of another suite": (
        [part(1), part(2, suite=Suite(version="0.1.0", fixtures="", judge="")), part(3)],
        f"{OTHERS} suite",
    ),
    "of other packages": (
        [part(1), part(2, environment=msgspec.structs.replace(ENVIRONMENT, packages={"mlx": "0.32.4"})), part(3)],
        f"{OTHERS} set of packages",
    ),
    "of another device": ([part(1), part(2, device="g16"), part(3)], f"{OTHERS} device class, executor"),
    "of another implementation": (
        [part(1), part(2, implementation=Implementation(name="b", operations=["normalized_argmax"])), part(3)],
        f"{OTHERS} implementation",
    ),
    "not under the checker": (
        [part(1, executor=CHECKED), part(2), part(3, executor=CHECKED)],
        f"{OTHERS} executor's checked",
    ),
    "by another compiler": (
        [
            part(1),
            part(2),
            part(3, executor=Executor(name="host", details={"executor": "host", "compiler_version": "2"})),
        ],
        f"{OTHERS} executor's compiler_version",
    ),
    "on another Python": (
        [part(1), part(2, environment=msgspec.structs.replace(ENVIRONMENT, python="CPython 3.11.0")), part(3)],
        f"{OTHERS} Python",
    ),
    "by another oracle": (
        [part(1), part(2, environment=msgspec.structs.replace(ENVIRONMENT, oracles=OTHER_ORACLES)), part(3)],
        f"{OTHERS} version of numpy-reference",
    ),
    "of an implementation's other version": (
        [part(1), part(2, implementation=other_version()), part(3)],
        f"{OTHERS} implementation's version",
    ),
    "a case in two": ([part(1), part(2, [*NAMES[1::3], NAMES[0]]), part(3)], "in two shards: 1 case"),
    "a case in none": ([part(1), part(2, NAMES[4::3]), part(3)], "the shards do not hold the cases"),
    "beyond the count": ([part(1), part(2), part(3), part(4)], "expected shard 1 to 10000 but got 4 of 3"),
    "number zero": ([part(1), part(2), part(3), part(0, NAMES[2::3])], "got 0 of 3"),
    "far too many": ([part(1, count=10**9)], "got 1 of 1000000000"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_shards_than_those_of_one_run_are_told_apart(gate: Gate, name: str) -> None:
    parts, told = FOREIGN[name]
    (gate.folder / "whole.json").write_text("of an earlier run")
    assert merge(gate, *parts) == EXIT_INCOMPLETE
    assert told in gate.text, gate.text
    assert not (gate.folder / "whole.json").exists()


def test_a_damaged_shard_is_told(gate: Gate) -> None:
    edited = document(part(2))
    edited["totals"]["same-bits"] = 9
    assert merge(gate, part(1), edited, part(3)) == EXIT_INCOMPLETE
    assert "its totals are not those of its cases" in gate.text
    assert merge(gate, part(1), json.dumps(document(part(2))).encode()[:-9], part(3)) == EXIT_INCOMPLETE
    assert "Input data was truncated" in gate.text


def test_a_run_that_was_split_from_less_than_its_selection_is_told(gate: Gate) -> None:
    less = NAMES[:-1]
    parts = [part(index, less[index - 1 :: COUNT], whole=whole(less)) for index in (1, 2, 3)]
    assert merge(gate, *parts) == EXIT_INCOMPLETE
    assert f"missing of its selection: 1 case, {NAMES[-1]}" in gate.text


def test_the_report_is_none_of_the_shards(gate: Gate) -> None:
    path = gate.file("a.json", part(1))
    assert gate.call("merge", path, "--report", path) == EXIT_USAGE
    assert (gate.folder / "a.json").exists()
    assert QUERY in (gate.folder / "a.json").read_text()
