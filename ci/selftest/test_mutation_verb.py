"""The verb `mutate`: what it refuses, what it picks, and a whole run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.mutation.mutant import Mutant, chosen
from mlx_assay.conformance.mutation.ruling import KILLED, Ruling
from mlx_assay.conformance.mutation.source import folder, sources
from mlx_assay.conformance.verbs import mutate
from mlx_assay.conformance.verbs.operators import met
from mlx_assay.conformance.verbs.refusal import Refusal


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["softmax"], 2, "Expected an operation, one of apply_token_bitmask"),
        (["--operator", "typo"], 2, "Expected an operator but got 'typo': there are comparison-strictness, "),
        (["--operator", "barier-droped"], 2, "but got 'barier-droped': the nearest of"),
        (
            ["logit_softcap", "--operator", "barrier-dropped", "--operator", "barrier-weakened"],
            3,
            "but barrier-dropped and barrier-weakened find no place in the kernels of logit_softcap: name others",
        ),
        (["--judge", "--shard", "1/2"], 2, "Expected --shard for the built-in kernels alone"),
        (["--json", "/nowhere/mutants.json"], 2, "Expected a file in a folder that can be written"),
    ],
)
def test_a_choice_that_cannot_be_meant(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mutate", *arguments]) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "65", "two", "-1"])
def test_a_number_of_workers_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["mutate", "-n", text])
    assert ended.value.code == 2


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernels in a repository of their own, as one commit."""
    kernels = tmp_path / "kernels"
    shutil.copytree(folder(), kernels, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(mutate, "folder", lambda: kernels)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "All")):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def test_what_has_changed_since_a_commit(repository: Path) -> None:
    assert mutate.changed_files("HEAD") == []
    text = repository / "kernels" / "softcap.py"
    text.write_text(text.read_text() + "\n")
    # A text that was not there is a changed one.
    (repository / "kernels" / "trellis" / "fold.metal").unlink()
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(repository), *identity, "commit", "-qam", "Less"], check=True)
    assert mutate.changed_files("HEAD") == ["softcap.py", "trellis/fold.metal"]


def test_a_commit_that_is_not_there(repository: Path) -> None:
    with pytest.raises(Refusal, match="Expected a commit of the repository"):
        mutate.changed_files("no-such-branch")
    with pytest.raises(Refusal, match="Expected a commit of the repository"):
        mutate.changed_files("--output=x")


def test_nothing_changed_is_nothing_to_do(repository: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    del repository
    report = tmp_path / "mutants.json"
    assert main(["mutate", "--changed-since", "HEAD", "--json", str(report)]) == 0
    said = capsys.readouterr().out
    assert "no text of a kernel" in said
    assert "killed most by" not in said
    assert "0 mutants: 0 killed" in said
    assert json.loads(report.read_text())["mutants"] == []


def test_shards_hold_every_mutant_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    judged: list[list[str]] = []

    def none(mutants: Sequence[Mutant], *_: object, **__: object) -> tuple[list[Ruling], bool]:
        judged.append([mutant.id for mutant in mutants])
        return [Ruling(mutant.id, "equivalent") for mutant in mutants], True

    monkeypatch.setattr(mutate.campaign, "run", none)
    for part in ("1/3", "2/3", "3/3"):
        assert main(["mutate", "logit_softcap", "--shard", part, "--json", str(tmp_path / "mutants.json")]) == 0
    assert len({len(part) for part in judged}) <= 2
    assert sorted(chain(*judged)) == sorted(mutant.id for mutant in chosen(["logit_softcap"], [], None))


def test_an_operator_without_a_place_is_told_beside_one_that_has_some() -> None:
    said: list[str] = []
    names = ["barrier-dropped", "comparison-strictness"]
    found = met(lambda: chosen(["apply_token_bitmask"], names, None), names, "these kernels", said.append)
    assert {mutant.operator for mutant in found} == {"comparison-strictness"}
    assert said == ["barrier-dropped finds no place in these kernels"]


def test_progress_tells_the_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(mutate.time, "monotonic", lambda: now)
    progress = mutate.Progress()
    for done in (3, 4):
        now += 12.0
        progress.told(Ruling(f"mutant-{done}", KILLED), done, 10)
    # Two were ruled on before: twelve seconds for each that was not.
    assert capsys.readouterr().err == "3 of 10 mutants, 84 s left\n4 of 10 mutants, 72 s left\n"


def test_a_whole_run(tmp_path: Path) -> None:
    report = tmp_path / "mutants.json"
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "mutate", "apply_token_bitmask"]
    chosen = ["--operator", "comparison-strictness", "--json", str(report)]
    done = subprocess.run([*command, *chosen], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    read = json.loads(report.read_text())
    assert read["complete"]
    assert read["score"] == 1.0
    assert {row["outcome"] for row in read["mutants"]} == {"killed", "equivalent"}
    assert "score 1.0000" in done.stdout
    texts = {name: text.digest for name, text in sources().items() if Path(name).match("token_bitmask*.metal")}
    assert read["sources"] == texts
    assert len(texts) == 2
