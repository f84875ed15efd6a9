"""Bundles: what a failing case leaves in one file, and what is said of it anywhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest

from mlx_assay.conformance.bundling import archive
from mlx_assay.conformance.bundling.archive import NoBundle, decode, encode, load
from mlx_assay.conformance.bundling.document import DOCUMENT, Bundle, schema
from mlx_assay.conformance.bundling.packing import pack
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.conformance.cli import main
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.process.seal import digests
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.selection import replayed
from mlx_assay.conformance.verbs import bundle as verb
from mlx_assay.conformance.verbs.bundle import filename, judge_again, make_all
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, EXIT_USAGE, Verdict
from mlx_assay.fixtures import codec

EXAMPLES = Path(__file__).parents[1] / "examples"
CASE = "normalized_argmax/bfloat16/ties/public-vectors?seed=0"


@pytest.fixture(scope="module")
def record() -> Record:
    """What the judge says of greedy selection, which loses a tie of the normalized scores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        with Implementation("greedy") as implementation:
            return judge(replayed(CASE), implementation)


@pytest.fixture(scope="module")
def content(record: Record) -> bytes:
    """The bundle of that case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return pack(replayed(CASE), record, "greedy", None, 60.0)


def told(path: Path, launching: bool = False, limit: float = 60.0) -> tuple[int, str]:
    lines: list[str] = []
    code = judge_again(str(path), launching, limit, lines.append)  # type: ignore[arg-type]
    return code, "\n".join(lines)


def changed(content: bytes, change: Any) -> bytes:
    """The bundle with another document."""
    tensors = codec.decode(content).tensors
    document = msgspec.json.decode(tensors.pop(DOCUMENT).tobytes())
    change(document, tensors)
    return codec.encode({DOCUMENT: np.frombuffer(msgspec.json.encode(document), np.uint8), **tensors}, {})


def test_a_bundle_holds_the_case_and_the_kernel_as_it_was_launched(content: bytes, record: Record) -> None:
    bundle, pool = decode(content)
    assert (bundle.case, bundle.verdict, bundle.message) == (CASE, Verdict.DIFFERS, record.message)
    assert record.difference is not None
    first = bundle.subcases[0]
    assert first.label == record.difference.subcase
    assert [want.oracle for want in first.wants] == record.oracles
    assert (bundle.suite.fixtures, bundle.suite.judge) == digests()
    assert "lowest id" in bundle.contract.rules["3"]
    (kernel,) = bundle.kernels
    assert kernel.name == "greedy"
    assert "simd_min(best == winner" in kernel.source
    (launch,) = first.rounds[0].launches
    assert (launch.grid, launch.threadgroup) == ((32, 1, 1), (32, 1, 1))
    logits = archive.given(first, pool).arguments["logits"]
    assert archive.array(launch.inputs[0], pool).tobytes() == logits.array.tobytes()
    assert launch.inputs[0].tensor == "0/arguments/logits", "the same content is kept once"


def test_the_document_keeps_to_its_published_schema(content: bytes) -> None:
    published = json.loads(Path(archive.__file__).with_name("bundle.schema.json").read_text())
    assert published == schema()
    jsonschema.validate(json.loads(codec.decode(content).tensors[DOCUMENT].tobytes()), published)


def test_the_same_bundle_is_the_same_bytes(content: bytes) -> None:
    assert encode(*decode(content)) == content


def test_a_bundle_is_judged_without_running_its_kernels(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.bundle").write_bytes(content)
    code, text = told(tmp_path / "a.bundle")
    assert code == EXIT_DIFFERS
    assert "differs, 1 of 1 encodings differ, by stock-mlx" in text
    assert "expect the bits that the bundle holds: stock-mlx" in text
    assert "kernels were not run: --run-kernels runs them" in text
    assert "run again" not in text
    assert "tie lost: scores" in text.partition("subcase")[0]
    assert text.endswith("differs; bundled: differs")


def test_its_kernels_are_run_on_request(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.bundle").write_bytes(content)
    code, text = told(tmp_path / "a.bundle", launching=True)
    assert code == EXIT_DIFFERS
    assert text.count("run again on host, gives the bits of the bundle") == len(decode(content)[0].subcases)
    assert text.endswith("differs; bundled: differs; run again: differs")


def test_an_output_that_the_kernel_did_not_give_shows(content: bytes, tmp_path: Path) -> None:
    """As if another machine had run it otherwise: the bundle's output is the right one, the kernel's is not."""

    def right(document: Any, tensors: Any) -> None:
        subcase = document["subcases"][0]
        document["subcases"] = [subcase]
        subcase["rounds"][0]["got"] = subcase["wants"][0]["output"]
        subcase["rounds"][0]["launches"][0]["outputs"] = [subcase["wants"][0]["output"]]

    (tmp_path / "a.bundle").write_bytes(changed(content, right))
    assert told(tmp_path / "a.bundle")[0] == EXIT_CONFORMS
    code, text = told(tmp_path / "a.bundle", launching=True)
    assert (code, "run again on host: 0 of 1 launch gave the bits" in text) == (EXIT_DIFFERS, True)
    assert "run again on host, gives other bits" in text
    assert text.endswith("differs; bundled: conforms; run again: differs")


@pytest.mark.parametrize(
    ("source", "limit", "failure"),
    [
        ('#include "/etc/hostname"\nout[0] = 1;', 60.0, "which makes a compiler look at files"),
        ("out[1u << 26] = 1;", 60.0, "writes"),
        ("not a kernel", 60.0, "does not compile"),
        ("volatile uint go = 1; while (go) {}", 3.0, "it took more than 3 s"),
    ],
)
def test_a_kernel_that_does_harm_harms_nothing(
    content: bytes, tmp_path: Path, source: str, limit: float, failure: str
) -> None:
    def harm(document: Any, tensors: Any) -> None:
        document["subcases"] = document["subcases"][:1]
        document["kernels"][0]["source"] = source

    (tmp_path / "a.bundle").write_bytes(changed(content, harm))
    code, text = told(tmp_path / "a.bundle", launching=True, limit=limit)
    assert code == EXIT_INCOMPLETE
    assert failure in text
    assert "root:" not in text


def first(document: Any) -> Any:
    return document["subcases"][0]


DAMAGE: dict[str, Any] = {
    "another schema": lambda d, t: d.update(schema="urn:mlx-assay:bundle:2"),
    "an unknown field": lambda d, t: d.update(more=1),
    "no subcase": lambda d, t: d.update(subcases=[]),
    "a relaxation of another version": lambda d, t: d.update(relaxations=["anything"]),
    "a tensor that is not there": lambda d, t: first(d)["rounds"][0]["got"].update(tensor="none"),
    "another shape": lambda d, t: first(d)["wants"][0]["output"].update(shape=[7]),
    "a negative shape": lambda d, t: first(d)["wants"][0]["output"].update(shape=[-1]),
    "another dtype": lambda d, t: first(d)["wants"][0]["output"].update(dtype="bfloat16"),
    "no dtype": lambda d, t: first(d)["wants"][0]["output"].update(dtype="object"),
    "a kernel that is not there": lambda d, t: first(d)["rounds"][0]["launches"][0].update(kernel=5),
    "too few inputs": lambda d, t: first(d)["rounds"][0]["launches"][0].update(inputs=[]),
    "a large threadgroup": lambda d, t: first(d)["rounds"][0]["launches"][0].update(threadgroup=[4096, 1, 1]),
    "a name that is code": lambda d, t: d["kernels"][0].update(name="a(){}"),
    "a huge view": lambda d, t: first(d)["arguments"][0].update(steps=[["broadcast", [1 << 40, 1, 4096]]]),
    "no step": lambda d, t: first(d)["arguments"][0].update(steps=[["exec", ["x"]]]),
    "steps of text": lambda d, t: first(d)["arguments"][0].update(steps=[["transpose", ["x"]]]),
    "deep steps": lambda d, t: first(d)["arguments"][0].update(steps=[["slice", [[[[1]]]]]]),
    "no verdict": lambda d, t: d.update(verdict="fine"),
    "a distance of another shape": lambda d, t: first(d)["wants"][0].update(
        ulps={"tensor": "0/arguments/logits", "dtype": "bfloat16", "shape": [1, 4096]}
    ),
    "a missing tensor": lambda d, t: t.pop("0/arguments/logits"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_no_bundle_is_refused(content: bytes, damage: str, tmp_path: Path) -> None:
    (tmp_path / "a.bundle").write_bytes(changed(content, DAMAGE[damage]))
    with pytest.raises(NoBundle, match=r"a\.bundle: Expected a bundle but"):
        load(tmp_path / "a.bundle")
    assert main(["replay", str(tmp_path / "a.bundle")]) == EXIT_USAGE


@pytest.mark.parametrize("bytes_", [b"", b"PK\x03\x04", b"\xff" * 100, codec.encode({}, {}), None])
def test_what_is_no_archive_is_refused(content: bytes, bytes_: bytes | None, tmp_path: Path) -> None:
    for data in (bytes_,) if bytes_ is not None else (content[:-1], content[: len(content) // 2], content + b"\0"):
        (tmp_path / "a.bundle").write_bytes(data)
        with pytest.raises(NoBundle):
            load(tmp_path / "a.bundle")


def test_a_document_is_not_read_however_deep_or_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = np.frombuffer(b'{"subcases":' + b"[" * 200_000, np.uint8)
    (tmp_path / "a.bundle").write_bytes(codec.encode({DOCUMENT: deep}, {}))
    with pytest.raises(NoBundle):
        load(tmp_path / "a.bundle")
    monkeypatch.setattr(archive, "LARGEST", 10)
    with pytest.raises(NoBundle, match="10 bytes at most"):
        load(tmp_path / "a.bundle")
    with pytest.raises(NoBundle, match="there is no file"):
        load(tmp_path)


def test_what_a_bundle_says_does_not_steer_a_terminal(content: bytes, tmp_path: Path) -> None:
    def steer(document: Any, tensors: Any) -> None:
        for key in ("case", "why", "made"):
            document[key] = "\x1b[2J\n::error::x"
        first(document)["label"] = "\x1b[2J\x07\n::error::x\n ##[error]x"
        document["implementation"]["name"] = "\u202egone"

    (tmp_path / "a.bundle").write_bytes(changed(content, steer))
    _, text = told(tmp_path / "a.bundle")
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "error" in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]


@pytest.mark.parametrize(
    ("case", "launches"),
    [("normalized_argmax/float16/error/scalar", 0), ("down_codebook_row/float32/shape/rows?layout=2&rows=2&seed=0", 2)],
)
def test_bundles_of_the_built_in_kernels_conform(case: str, launches: int, tmp_path: Path) -> None:
    found = replayed(case)
    with Implementation() as implementation:
        record = judge(found, implementation)
    content = pack(found, record, None, None, 60.0)
    bundle, _ = decode(content)
    assert max(len(each.launches) for subcase in bundle.subcases for each in subcase.rounds) == launches
    (tmp_path / "a.bundle").write_bytes(content)
    code, text = told(tmp_path / "a.bundle", launching=True)
    assert (code, record.conforms) == (EXIT_CONFORMS, True), text


@pytest.mark.parametrize(
    ("fault", "verdict", "kernels", "failure"),
    [
        ("kernel_writes_past_end", Verdict.ERROR, 1, "run again on host, fails: StrayAccess"),
        ("segfaults", Verdict.CRASHED, 0, "call 1 gave nothing: its process ended"),
    ],
)
def test_a_call_that_fails_is_told_of_with_its_launches(
    fault: str, verdict: Verdict, kernels: int, failure: str, tmp_path: Path
) -> None:
    case = replayed(CASE)
    with Implementation(f"bad.{fault}") as implementation:
        record = judge(case, implementation)
    bundle, pool = decode(pack(case, record, f"bad.{fault}", None, 60.0))
    assert (record.verdict, len(bundle.kernels)) == (verdict, kernels)
    (tmp_path / "a.bundle").write_bytes(encode(msgspec.structs.replace(bundle, subcases=bundle.subcases[:1]), pool))
    code, text = told(tmp_path / "a.bundle", launching=True)
    assert (code, failure in text) == (EXIT_DIFFERS, True), text


def test_a_run_keeps_a_bounded_number(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(verb, "MOST", 2)
    monkeypatch.setattr(verb, "pack", lambda *given: content)
    others = [msgspec.structs.replace(record, id=f"{record.id}{number}") for number in range(4)]
    fine = msgspec.structs.replace(record, conforms=True, verdict=Verdict.SAME_BITS)
    lost = msgspec.structs.replace(record, verdict=Verdict.NOT_RUN)
    said: list[str] = []
    make_all([fine, lost, *others], Options(), tmp_path, said.append)
    assert said == [f"bundles: 2 of 4 failing cases in {tmp_path}"]
    assert {path.name for path in tmp_path.iterdir()} == {filename(each.id) for each in others[:2]}


def test_names_of_files_are_plain_and_apart() -> None:
    names = {filename(text) for text in ("a/b/c?x=1", "a/b/c?x=2", "a-b-c?x=1", "../../etc/passwd", "\n")}
    assert len(names) == 5
    assert all("/" not in name and name.isprintable() and not name.startswith(".") for name in names)


def test_what_cannot_be_meant(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.bundle"
    file.write_bytes(content)
    for words in (
        ["replay"],
        ["replay", CASE, "--run-kernels"],
        ["replay", str(file), "--implementation", "greedy"],
        ["replay", "--bundle", str(file), "--executor", "host"],
        ["replay", "--bundle", str(tmp_path / "none")],
        ["replay", CASE, "--bundle", str(tmp_path / "no" / "folder")],
    ):
        assert main(words) == EXIT_USAGE
        assert "xpected" in capsys.readouterr().err


def test_the_verb_makes_and_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    file = str(tmp_path / "a.bundle")
    assert main(["replay", CASE, "--implementation", "greedy", "--bundle", file]) == EXIT_DIFFERS
    assert main(["replay", "--bundle", file]) == EXIT_DIFFERS
    assert main(["replay", file]) == EXIT_DIFFERS


def test_a_pool_keeps_content_once() -> None:
    pool = Pool()
    zeros = np.zeros(4, np.float32)
    assert [pool.add("a", zeros), pool.add("b", np.zeros(8, np.uint16)), pool.add("c", zeros[:2])] == ["a", "a", "c"]
    assert pool.array("a", np.dtype(np.uint16), [8]).tolist() == [0] * 8
    with pytest.raises(ValueError, match="Expected 20 bytes"):
        pool.array("a", np.dtype(np.float32), [5])


def test_a_bundle_is_a_plain_archive(content: bytes) -> None:
    tensors = codec.decode(content).tensors
    assert {"0/arguments/logits", "0/round-0/got", "0/want/stock-mlx"} <= tensors.keys()
    assert isinstance(decode(content)[0], Bundle)
