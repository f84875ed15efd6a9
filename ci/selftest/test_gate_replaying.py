"""The command of a case as a gate makes it anew: what a run writes is taken, and nothing else."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sound import report

from mlx_assay.conformance.gating import replaying
from mlx_assay.conformance.record import Record, replay_command
from mlx_assay.conformance.reporting.report import Executor, Implementation, Report

PLAIN = report()
NAMES = st.none() | st.sampled_from(
    ["mlx_assay.impl", "kernels", "cmd: bun 'a b.ts' --x=$HOME", "cmd: x\n;y", "--checked"]
)


def told(record: Record, made: Report) -> bool:
    tail = replaying.tail(record)
    return tail is not None and replaying.sound(tail, made)


def made(implementation: str | None, checked: bool) -> Report:
    """A report of a run on host that was asked for an implementation, or for none."""
    return msgspec.structs.replace(
        PLAIN,
        implementation=Implementation(name=implementation or replaying.BUILT_IN),
        executor=Executor(name="host", details={"checked": "yes"} if checked else {}),
    )


@settings(database=None, derandomize=True)
@given(
    implementation=NAMES,
    executor=st.sampled_from([None, "host"]),
    profile=st.none() | st.text(min_size=1),
    checked=st.booleans(),
    more=st.sampled_from(["", " ", "; ls", " --checked", "\n", " --executor host", " '"]),
)
def test_what_a_run_writes_is_taken_and_nothing_behind_it(
    implementation: str | None, executor: str | None, profile: str | None, checked: bool, more: str
) -> None:
    command = replay_command(PLAIN.cases[0].id, implementation, executor, profile, checked)
    record = msgspec.structs.replace(PLAIN.cases[0], replay=command)
    assert told(record, made(implementation, checked))
    longer = msgspec.structs.replace(record, replay=command + more)
    # The executor may stand there, or not, where no option that comes after it does.
    written = not more or (more == " --executor host" and not (executor or profile or checked))
    assert told(longer, made(implementation, checked)) is written


@pytest.mark.parametrize(
    "tail",
    [
        " --implementation $(id)",
        " --executor host --implementation kernels",
        " --implementation kernels --profile",
        " --implementation kernels --implementation kernels",
        "  --implementation kernels",
        " --implementation 'kernels'",
        " --bundle x",
    ],
)
def test_another_spelling_is_refused(tail: str) -> None:
    assert replaying.sound(" --implementation kernels", made("kernels", False))
    assert not replaying.sound(tail, made("kernels", False))
