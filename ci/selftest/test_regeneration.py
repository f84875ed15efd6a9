"""Regeneration: refused without a version, written beside, reviewed case by case, the same in any order."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlx_assay.conformance.cli import main, parser
from mlx_assay.conformance.regeneration import machine, real_input, regen
from mlx_assay.conformance.regeneration.drift import difference
from mlx_assay.conformance.regeneration.holding import hold
from mlx_assay.conformance.regeneration.regen import chosen, regenerate
from mlx_assay.conformance.regeneration.review import Keyboard, Quit
from mlx_assay.conformance.verbs import fixtures as verb
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.fixtures import recorded
from mlx_assay.fixtures.goldens import store
from mlx_assay.fixtures.goldens.catalogue import groups
from mlx_assay.fixtures.goldens.group import EXPECTED, Group, Member
from mlx_assay.fixtures.goldens.store import FOLDER
from mlx_assay.oracles.registry import load

VALUES = groups()["trellis_code_values"]
STREAMS = groups()["codebook_streams"]
KEYED = groups()["stock_softcap"]


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder into which VALUES and STREAMS were recorded."""
    folder = tmp_path / "golden_data"
    for group in (VALUES, STREAMS):
        assert regenerate(group, None, folder).state == "waits"
    assert settled(folder, accept=True) == (0, ["accepted"])
    return folder


def settled(folder: Path, accept: bool = False, keys: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Reviews with the given keys; the code, and whether the last line tells of acceptance."""
    said: list[str] = []
    pressed = iter(keys)
    code = verb.settle(accept, lambda prompt: next(pressed), said.append, folder)
    return code, ["accepted" for line in said[-1:] if "accepted" in line]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in store.files(folder)}


@pytest.fixture
def drifted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the oracle of VALUES wrong by one bit of one value of one form."""

    def change() -> None:
        oracle = load("trellis_decode")
        sound = oracle.trellis_code_values

        def faulty(sums: np.ndarray, form: str) -> np.ndarray:
            values: np.ndarray = sound(sums, form).copy()
            if form == "unrefined":
                values.reshape(-1).view(np.uint32)[7] ^= 1
            return values

        monkeypatch.setattr(oracle, "trellis_code_values", faulty)

    return change


def test_recording_again_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.load(store.paths(FOLDER, VALUES.name, {})[0]).document
    monkeypatch.setattr(regen, "today", lambda: kept.recorded)
    monkeypatch.setattr(regen, "toolchain", lambda: kept.toolchain)
    monkeypatch.setattr(regen, "release", lambda group: kept.release)
    backward: list[Member] = VALUES.members()[::-1]
    regenerate(VALUES, backward, tmp_path)
    for path, fresh in zip(
        store.paths(FOLDER, VALUES.name, {}), store.paths(tmp_path, VALUES.name, {}, True), strict=True
    ):
        assert fresh.read_bytes() == path.read_bytes()


def test_what_did_not_change_is_not_written(root: Path) -> None:
    before = content(root)
    for group in (VALUES, STREAMS):
        assert regenerate(group, None, root).lines == ("unchanged",)
    assert content(root) == before


def test_an_oracle_that_drifted_is_at_fault_and_regeneration_is_refused(
    root: Path, drifted: Callable[[], None]
) -> None:
    before = content(root)
    drifted()
    for held in (hold(VALUES, root), regenerate(VALUES, None, root)):
        assert held.state == "fault"
        text = "\n".join(held.lines)
        assert "oracle fault: trellis-decode drifted from its golden though its version is still 1" in text
        assert "(1 ULP)" in text
        assert "form=unrefined" in text
        assert "form=precise" not in text
    assert content(root) == before


def test_a_stream_that_drifted_names_its_chunk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = load("host_lut")
    table: np.ndarray = oracle.exact(16).copy()
    table[40_000] += 1
    monkeypatch.setattr(oracle, "exact", lambda width: table)
    held = hold(STREAMS, root)
    assert held.state == "fault"
    assert [line.split(":")[0].strip() for line in held.lines] == ["codebook/exact/stream", "032768"]


def test_inputs_that_drifted_are_the_generators_fault(root: Path) -> None:
    other = replace(VALUES, members=lambda: [_moved(member) for member in VALUES.members()])
    held = hold(other, root)
    assert "generator fault" in held.lines[0]
    assert regenerate(other, None, root).state == "fault"
    assert regenerate(replace(other, generator=2), None, root).state == "waits"


def _moved(member: Member) -> Member:
    def calls() -> Iterator[Any]:
        for subcase in member.calls():
            sums = subcase.arguments["sums"]
            yield replace(subcase, arguments={**subcase.arguments, "sums": replace(sums, base=sums.base[::-1].copy())})

    return replace(member, calls=calls)


def test_a_raised_version_is_reviewed_and_each_case_settled_by_itself(root: Path, drifted: Callable[[], None]) -> None:
    drifted()
    raised = replace(VALUES, version=2)
    before = content(root)
    assert hold(raised, root).state == "fault"
    held = regenerate(raised, None, root)
    assert "5 changed" in held.lines[0]
    assert {name: data for name, data in content(root).items() if not name.endswith(store.PENDING)} == before
    said: list[str] = []
    keys = iter(["?", "a", "r", "R"])
    assert verb.settle(False, lambda prompt: next(keys), said.append, root) == 1
    document = store.load(store.paths(root, VALUES.name, {})[0]).document
    assert [entry.oracle for entry in document.cases] == [2, 1, 1, 1, 1]
    assert not store.documents(root, pending=True)
    assert any("recorded 0x" in line and "(1 ULP)" in line for line in said)
    assert "1 accepted, 4 rejected" in said[-1]


def test_an_accepted_answer_is_the_new_one(root: Path, drifted: Callable[[], None]) -> None:
    old = store.load(store.paths(root, VALUES.name, {})[0])
    drifted()
    raised = replace(VALUES, version=2)
    regenerate(raised, None, root)
    assert settled(root, accept=True)[0] == 0
    new = store.load(store.paths(root, VALUES.name, {})[0])
    changed = {name for name in old.tensors if old.tensors[name].tobytes() != new.tensors[name].tobytes()}
    assert changed
    assert all("form=unrefined" in name and name.endswith(EXPECTED) for name in changed)
    assert hold(raised, root).state == "holds"


def test_rejecting_all_leaves_the_recording_as_it_was(root: Path, drifted: Callable[[], None]) -> None:
    before = content(root)
    drifted()
    regenerate(replace(VALUES, version=2), None, root)
    assert settled(root, keys=["R"])[0] == 1
    assert content(root) == before


def test_leaving_keeps_what_waits(root: Path, drifted: Callable[[], None]) -> None:
    drifted()
    regenerate(replace(VALUES, version=2), None, root)
    before = content(root)
    assert settled(root, keys=["a", "q"])[0] == 3
    assert content(root) == before
    with pytest.raises(Quit):
        Keyboard(_ended).accepts()


def _ended(prompt: str) -> str:
    raise EOFError


def test_cases_that_came_or_went_wait_for_review(root: Path) -> None:
    fewer = replace(VALUES, members=lambda: VALUES.members()[1:])
    gone = VALUES.members()[0].id
    assert any(gone in line and "orphan" in line for line in hold(fewer, root).lines)
    assert "1 removed" in regenerate(fewer, None, root).lines[0]
    assert settled(root, accept=True)[0] == 0
    assert gone not in store.load(store.paths(root, VALUES.name, {})[0]).document.entries()
    assert any(gone in line and "no golden yet" in line for line in hold(VALUES, root).lines)
    assert "1 added" in regenerate(VALUES, VALUES.members()[:1], root).lines[0]
    assert settled(root, accept=True)[0] == 0
    assert hold(VALUES, root).state == "holds"


def test_what_is_said_of_a_group_is_recorded_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(VALUES, why="Another reason")
    assert "its reason, flags or version changed" in hold(other, root).lines[0]
    assert "0 added, 0 removed, 1 changed" in regenerate(other, None, root).lines[0]
    monkeypatch.setattr("mlx_assay.conformance.regeneration.review.groups", lambda: {VALUES.name: other})
    assert settled(root, keys=["a"])[0] == 0
    assert hold(other, root).state == "holds"
    assert hold(VALUES, root).state == "fault"


def test_damage_in_what_waits_settles_nothing(root: Path) -> None:
    regenerate(replace(VALUES, version=2), None, root)
    tensors = store.paths(root, VALUES.name, {}, pending=True)[1]
    tensors.write_bytes(tensors.read_bytes()[:-1])
    before = content(root)
    with pytest.raises(Refusal, match="nothing of it is settled"):
        settled(root, accept=True)
    assert content(root) == before


def test_a_recording_of_another_machine_is_not_asserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(KEYED, members=lambda: KEYED.members()[:2])
    regenerate(few, None, tmp_path)
    assert verb.settle(True, None, lambda text: None, tmp_path) == 0
    assert hold(few, tmp_path).state == "holds"
    for name, other in (("architecture", "riscv64"), ("maths", "musl 1.2"), ("device", "apple-m4")):
        with monkeypatch.context() as patched:
            patched.setattr(machine, name, lambda *given, other=other: other)
            assert hold(few, tmp_path).state == "elsewhere"
    with monkeypatch.context() as patched:
        patched.setattr(machine, "version", lambda name: "0.99.0")
        assert hold(few, tmp_path).state == "elsewhere"


def test_a_broken_or_missing_oracle_records_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(root)
    standing = types.SimpleNamespace(name="trellis-decode", version="1", missing="", fault="Expected 1 but got 2")
    monkeypatch.setattr("mlx_assay.conformance.regeneration.answers.standing", lambda *given: standing)
    raised: Group = replace(VALUES, version=2)
    assert (hold(VALUES, root).state, regenerate(raised, None, root).state) == ("fault", "fault")
    standing.missing = "No module named 'trellis'"
    assert (hold(VALUES, root).state, regenerate(raised, None, root).state) == ("incomplete", "incomplete")
    assert content(root) == before


def test_queries_mean_groups_or_cases() -> None:
    assert chosen(["score_*"]) == {"score_streams": None}
    found = chosen(["trellis_code_values/*?form=bits"])
    assert {name: [member.id for member in members or []] for name, members in found.items()} == {
        "trellis_code_values": ["trellis_code_values/int32/sum/every?form=bits&seed=0"]
    }
    assert set(chosen([])) == set(groups())
    with pytest.raises(ValueError, match="Expected a group of goldens"):
        chosen(["nobody"])


@pytest.mark.parametrize("line", ["regen", "review --accept", "promote x.safetensors --why because"])
def test_ci_forbids_writing(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CI", "true")
    assert main(["fixtures", *line.split()]) == 2
    assert "Expected no CI" in capsys.readouterr().err


def test_checking_is_the_default_and_a_keyboard_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parser().parse_args(["fixtures"]).call is parser().parse_args(["fixtures", "check"]).call
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(isatty=lambda: False))
    with pytest.raises(Refusal, match="--accept"):
        verb.settle(accept=False)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (np.zeros(2, np.float32), np.zeros(3, np.float32), ": float32[2] became float32[3]"),
        (np.float32([1, 2]), np.float32([1, np.nan]), "[1]: recorded 0x40000000 now 0x7fc00000 (NaN on one side)"),
        (np.uint32([[1, 2]]), np.uint32([[1, 3]]), "[0, 1]: recorded 0x00000002 now 0x00000003"),
        (None, np.zeros(1, np.float32), ": it came"),
    ],
)
def test_a_diff_shows_bits_and_ulp(old: np.ndarray | None, new: np.ndarray, line: str) -> None:
    assert difference(old, new) == [line]
    assert difference(new, new) == []


def test_a_long_diff_is_counted() -> None:
    assert difference(np.zeros(40, np.float32), np.ones(40, np.float32))[-1] == ": 40 of 40 places differ, 5 are shown"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Tools in place of those that need the model's package: they give the recorded files unless told otherwise."""
    data = {name: (real_input.DATA / f"{name}.safetensors").read_bytes() for name in recorded.DIGESTS}
    told = types.SimpleNamespace(data=data, beyond=[])
    words = types.SimpleNamespace(
        model_folder=lambda: Path(),
        record=lambda folder: [(name, data[name]) for name in ("logits", "grammar")],
        differences=lambda folder: told.beyond,
    )
    trellis = types.SimpleNamespace(
        record=lambda folder: recorded.archive("trellis"), differences=lambda folder: told.beyond
    )
    monkeypatch.setitem(__import__("sys").modules, "record_real_input", words)
    monkeypatch.setitem(__import__("sys").modules, "record_trellis", trellis)
    return told


def test_the_real_input_comes_again_by_the_same_command(model: types.SimpleNamespace) -> None:
    said: list[str] = []
    assert verb.regen(["real"], said.append) == 0
    assert sum("byte for byte" in line for line in said) == 3
    old = recorded.archive("logits")
    model.data["logits"] = real_input.codec.encode({**old.tensors, "lse": old.tensors["lse"] + 1}, old.metadata)
    said.clear()
    assert verb.regen(["real"], said.append) == 0
    assert any("within the stated bounds" in line for line in said)
    model.beyond = ["a logit lies 1 away"]
    assert verb.regen(["real"], said.append) == 1
    assert any("refused" in line for line in said)


def test_the_real_input_needs_the_package_and_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb.real_input, "fresh", lambda: list(real_input_of(tmp_path)))
    said: list[str] = []
    assert verb.regen(["real"], said.append) == 3
    assert any("checkout" in line for line in said)


def real_input_of(folder: Path) -> Iterator[Any]:
    real_input.tool("record_real_input", folder)
    yield None
