"""Promotion and release: failing cases become finds, and the recorded vectors leave in two reproducible packages."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.regeneration.release import INDEX, NAME, npm, packed, release
from mlx_assay.conformance.verbs.export import export
from mlx_assay.conformance.verbs.promote import promote
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.fixtures import codec
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.found import Find
from mlx_assay.fixtures.goldens import store
from mlx_assay.fixtures.goldens.store import FOLDER, Damage
from mlx_assay.fixtures.kind import kind_of
from mlx_assay.fixtures.tensor import Tensor

ID = "argmax_given/bfloat16/ties/rounding?vocab=100&seed=41"
"""Of a seed that no tier holds."""
WHY = "A tie made by rounding"


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def kept(folder: Path) -> list[Find]:
    return [Find.decoded(path.read_bytes()) for path in sorted(folder.iterdir())]


def test_a_case_of_a_fresh_seed_becomes_finds(tmp_path: Path) -> None:
    case = Case.parse(ID)
    calls = kind_of(case).subcases(case)
    said: list[str] = []
    assert promote(ID, WHY, "https://example.org/1", calls[1].label, said.append, tmp_path) == 0
    (find,) = kept(tmp_path)
    assert (find.operation, find.dtype, find.why, find.issue) == (
        *("argmax_given", "bfloat16", WHY),
        "https://example.org/1",
    )
    for name, value in calls[1].arguments.items():
        mine = find.arguments[name]
        assert isinstance(mine, Tensor)
        assert isinstance(value, Tensor)
        assert mine.array.tobytes() == value.array.tobytes()
        assert mine.steps == value.steps
    assert f"mlx-assay replay 'argmax_given/bfloat16/found/{find.digest}'" in said[0]
    with pytest.raises(ValueError, match="holds the same input"):
        promote(ID, WHY, folder=tmp_path)
    assert len(kept(tmp_path)) == 1, "nothing is kept where one of several cannot be"


def test_a_failing_report_becomes_a_find(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    query = "argmax_given/float32/ties/all-equal?vocab=33"
    command = ["run", query, "--implementation", "bad.last_id_on_ties", "--report", str(report), "-n", "0"]
    outcome = subprocess.run(
        [sys.executable, "-m", "mlx_assay.conformance.cli", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    folder = tmp_path / "found"
    assert promote(str(report), WHY, say=lambda text: None, folder=folder) == 0
    (find,) = kept(folder)
    assert find.operation == "argmax_given"
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match="Expected a report"):
        promote(str(tmp_path / "other.json"), WHY, folder=folder)


def test_a_candidate_of_exploration_becomes_a_find(tmp_path: Path) -> None:
    find = Find("logit_softcap", "float32", {"x": Tensor(np.float32([1, 2, 3])), "cap": 1 / 3})
    candidate = tmp_path / "candidate.safetensors"
    candidate.write_bytes(find.encoded())
    assert promote(str(candidate), WHY, say=lambda text: None, folder=tmp_path / "found") == 0
    assert [one.digest for one in kept(tmp_path / "found")] == [find.digest]


@pytest.mark.parametrize(
    ("what", "why", "label", "message"),
    [
        ("apply_token_bitmask/float32/error/bits-rank?container=numpy&seed=0", WHY, None, "expected to raise"),
        (ID, "  ", None, "Expected why"),
        (ID, WHY, "nobody", "of label 'nobody'"),
        ("argmax_given/float32/nobody?seed=0", WHY, None, "Expected a kind"),
        ("apply_token_bitmask/float32/shape/large-vocabulary?rows=1&vocab=151936&seed=0", WHY, None, "bytes at most"),
        ("missing.safetensors", WHY, None, "Expected a file to read"),
        ("missing.json", WHY, None, "Expected a report to read"),
    ],
)
def test_what_cannot_be_kept_is_refused(what: str, why: str, label: str | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        promote(what, why, subcase=label, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_refuses_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fixtures", "promote", "missing.safetensors", "--why", WHY]) == 2
    assert "Expected a file to read" in capsys.readouterr().err


def test_both_packages_hold_the_same_vectors_and_come_again(tmp_path: Path) -> None:
    first, second = release(tmp_path / "a"), release(tmp_path / "b")
    assert list(first.values()) == list(second.values())
    contents = []
    for path in first:
        with tarfile.open(path) as archive:
            members = archive.getmembers()
            assert all(member.isreg() and member.mtime == 0 and member.uid == 0 for member in members)
            read = {member.name.split("/", 1)[1]: archive.extractfile(member) for member in members}
            contents.append({name: file.read() for name, file in read.items() if file and name.startswith("vectors/")})
    assert contents[0] == contents[1]
    for group in json.loads(contents[0][INDEX])["groups"]:
        assert f"vectors/{group['path']}.json" in contents[0]
        if group["form"] == "values":
            data = contents[0][f"vectors/{group['path']}.safetensors"]
            assert hashlib.sha256(data).hexdigest() == group["sha256"]
            assert codec.decode(data).tensors
    assert len(contents[0]) == 1 + len(store.files(FOLDER))


def test_a_damaged_golden_is_not_released(tmp_path: Path) -> None:
    root = tmp_path / "fixtures" / "golden_data"
    shutil.copytree(FOLDER / store.EXACT, root / store.EXACT)
    (root / store.EXACT / "logit_softcap.safetensors").write_bytes(b"")
    with pytest.raises(Refusal, match=r"(?s)Nothing is exported.*logit_softcap"):
        export(str(tmp_path / "out"), root=root)
    with pytest.raises(Damage):
        release(tmp_path / "out", root)
    assert not (tmp_path / "out").exists()


SCRIPT = """
import { calls, document, groups } from "mlx-assay-vectors";
import { createHash } from "node:crypto";
let seen = 0;
for (const { path, form } of groups()) {
  if (form !== "values") continue;
  const digests = new Map();
  for (const { id, calls } of document(path).cases) for (const c of calls) digests.set(id + "#" + c.label, c.expected);
  for (const { id, label, expected } of calls(path)) {
    const names = { BF16: "bfloat16", F16: "float16", F32: "float32", U32: "uint32", I32: "int32" };
    const head = `expected ${names[expected.dtype]} [${expected.shape.join(", ")}]\\n`;
    const found = createHash("sha256").update(head).update(expected.bytes).digest("hex").slice(0, 32);
    if (found !== digests.get(id + "#" + label)) throw new Error(id + " " + label);
    seen += 1;
  }
}
console.log(seen);
"""


def test_npm_packs_and_installs_it_and_node_reads_every_answer(tmp_path: Path) -> None:
    if not (shutil.which("npm") and shutil.which("node")):
        pytest.skip("NOT RUN: the npm package in npm and node, neither is here")
    ours = tmp_path / "ours"
    (tmp_path / "made.tgz").write_bytes(packed(npm(), "package"))
    with tarfile.open(tmp_path / "made.tgz") as archive:
        archive.extractall(ours, filter="data")
    said = _npm(["pack", "--json", "--dry-run", "--offline"], ours / "package")
    assert {file["path"] for file in json.loads(said)[0]["files"]} == set(npm())
    user = tmp_path / "user"
    user.mkdir()
    (user / "package.json").write_text('{"name": "user", "type": "module"}')
    _npm(["install", "--offline", "--no-audit", "--no-fund", "../made.tgz"], user)
    assert (user / "node_modules" / NAME / "package.json").is_file()
    (user / "read.js").write_text(SCRIPT)
    seen = subprocess.run(["node", "read.js"], cwd=user, capture_output=True, text=True, check=True).stdout
    stored = [store.load(path) for path in store.documents(FOLDER)]
    assert int(seen) == sum(len(e.calls) for one in stored if one.tensors for e in one.document.cases)


def _npm(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(["npm", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
