"""`run_conformance`: one function for the tests of another package."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import mlx_assay.conformance
from mlx_assay.conformance import Conformance, ConformanceError, run_conformance
from mlx_assay.conformance.cli import parser
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.reporting.report import decode, encode
from mlx_assay.conformance.session import Session
from mlx_assay.conformance.target import named
from mlx_assay.conformance.verdict import Verdict

CASE = "normalized_argmax/float16/ties/tiles?vocab=1025&seed=0"
DOCUMENT = Path(__file__).parents[2] / "docs" / "downstream.md"
EXAMPLE = DOCUMENT.read_text().partition("```python\n")[2].partition("```")[0]
EXAMPLES = Path(__file__).parents[1] / "examples"

KERNELS = """
import mlx.core as mx


def normalized_argmax(logits):
    return mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)


class Faulty:
    def normalized_argmax(self, logits):
        return mx.argmax(logits, axis=-1) + 1


faulty = Faulty()


def test_shown():
    from mlx_assay.conformance import run_conformance

    run_conformance(faulty, %r)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package whose test is the one in the documentation, with everything strict."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "my_kernels.py").write_text(KERNELS % CASE)
    (tmp_path / "test_kernels.py").write_text(f"{EXAMPLE}\nfrom my_kernels import test_shown\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nstrict = true\nfilterwarnings = error\npythonpath = src\n")
    return tmp_path


def test_a_downstream_calls_it_in_its_own_tests_under_xdist(project: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n2", "test_kernels.py"],
        cwd=project,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "mlx_assay.conformance.downstream.ConformanceError: my_kernels:faulty: differs" in done.stdout
    assert f"mlx-assay replay '{CASE}' --implementation my_kernels:faulty" in done.stdout
    assert "downstream.py" not in done.stdout.split("short test summary")[0]
    assert sorted(path.name for path in project.iterdir() if path.name != "__pycache__") == [
        "pytest.ini",
        "src",
        "test_kernels.py",
    ]


def test_a_failure_reads_like_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    kept = tmp_path / "kept.json"
    query = "normalized_argmax/float16/ties/*?vocab=1025"
    with pytest.raises(ConformanceError) as raised:
        run_conformance("greedy", (query, CASE), leg="mine", report=kept, workers=0)
    text = str(raised.value)
    assert text.startswith("greedy: differs, ")
    assert "want" in text
    assert "mlx-assay replay 'normalized_argmax/float16/ties/" in text
    assert f"report: {kept}" in text
    result = raised.value.result
    assert result is not None
    assert (result.verdict, result.exit_code, result.report.leg) == ("differs", 1, "mine")
    assert decode(kept.read_bytes()) == result.report
    assert {failure.verdict for failure in result.failures} == {Verdict.DIFFERS}


def test_nothing_run_never_passes(tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match="matches no case"):
        run_conformance(ARGMAX, "normalized_argmax/float16/none", report=tmp_path / "r.json")
    assert decode((tmp_path / "r.json").read_bytes()).verdict == "incomplete"
    lacking = run_conformance(ARGMAX, "trellis_fold/*", check=False)
    assert lacking.exit_code == 3
    assert "Nothing to run: the implementation has normalized_argmax" in str(lacking)


def _never(logits: object) -> None:
    raise NotImplementedError


ARGMAX = SimpleNamespace(normalized_argmax=_never)


def test_what_cannot_be_meant_is_no_failure_of_kernels() -> None:
    for given in ({"implementation": "no.such.module"}, {"tier": "slow"}, {"leg": "a b"}):
        with pytest.raises(ValueError, match="Expected"):
            run_conformance(**{"implementation": "mlx_assay.impl", "check": False, **given})  # type: ignore[arg-type]


def test_an_earlier_report_stands_for_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.json").write_bytes(encode(Session(Options()).finish()))
    monkeypatch.setattr("mlx_assay.conformance.downstream.START", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(ConformanceError, match="that of an earlier run"):
        run_conformance("mlx_assay.impl", report=tmp_path / "r.json", check=False)
    with pytest.raises(ConformanceError, match="the run left no report"):
        run_conformance("mlx_assay.impl", check=False)


def test_every_argument_reaches_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command is argparse's to read: each argument comes out of it as it went in."""
    monkeypatch.setattr("mlx_assay.conformance.downstream.START", "import sys; print(sys.argv[2:]); sys.exit(2)")
    with pytest.raises(ValueError, match="Expected what mlx-assay run can do") as raised:
        run_conformance(
            "a:b",
            ("x/*", "y"),
            tier="full",
            seed=3,
            executor="host",
            workers=2,
            without=["torch-reference"],
            limit=1.5,
            checked=True,
            profile="m4.json",
            report=tmp_path / "r.json",
            leg="m4",
        )
    words = ast.literal_eval(str(raised.value).splitlines()[-1])
    assert words[0] == "run"
    read = vars(parser().parse_args(words))
    assert read.pop("queries") == ["x/*", "y"]
    expected = {
        "implementation": "a:b",
        "tier": "full",
        "seed": 3,
        "executor": "host",
        "n": 2,
        "without": ["torch-reference"],
        "limit": 1.5,
        "checked": True,
        "profile": os.path.abspath("m4.json"),
        "report": str(tmp_path / "r.json"),
        "leg": "m4",
    }
    assert {name: read[name] for name in expected} == expected


class Kernels:
    class Inner:
        pass

    def __call__(self) -> None: ...


held = Kernels()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a.module", "a.module"),
        ("cmd: bun adapter.ts", "cmd: bun adapter.ts"),
        (mlx_assay.conformance, "mlx_assay.conformance"),
        (Kernels, f"{__name__}:Kernels"),
        (Kernels.Inner, f"{__name__}:Kernels.Inner"),
        (held, f"{__name__}:held"),
        (ARGMAX, f"{__name__}:ARGMAX"),
    ],
)
def test_names(given: object, expected: str) -> None:
    assert named(given) == expected


def _local() -> type:
    class Local: ...

    return Local


@pytest.mark.parametrize("given", [None, "", " ", Kernels(), _local(), _local()(), 3.25, sys.modules["__main__"]])
def test_what_has_no_name_is_refused_with_the_mend(given: object) -> None:
    with pytest.raises(TypeError, match=r"Expected an implementation.*(name|bind|move)"):
        named(given)


def test_importing_the_package_stays_light() -> None:
    code = (
        "import sys, mlx_assay.conformance; print('msgspec' in sys.modules, 'pytest' in sys.modules);"
        "from mlx_assay.conformance import run_conformance; print(run_conformance.__module__, 'mlx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "mlx_assay.conformance.downstream", "False"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = mlx_assay.conformance.nothing
    assert Conformance is mlx_assay.conformance.Conformance


@pytest.mark.parametrize("queries", [b"normalized_argmax", [1]])
def test_queries_are_texts(queries: object) -> None:
    with pytest.raises(TypeError, match="Expected queries as text"):
        run_conformance("kernels", queries)  # type: ignore[arg-type]
