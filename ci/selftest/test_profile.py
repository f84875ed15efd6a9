"""A device's profile as the host executor's switches: from Python, and under run, replay and check."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlx_assay.conformance.capture import document, recording
from mlx_assay.conformance.capture.comparison import differences
from mlx_assay.conformance.capture.document import Capture, Switches, encode, seal
from mlx_assay.conformance.capture.reading import decode
from mlx_assay.conformance.cli import main
from mlx_assay.impl.executors import describe, fidelity, profiles

replace = msgspec.structs.replace
ELSEWHERE = {"contraction": "off", "f32_denormals": "kept", "simd_sum": "sequential"}
CASE = "trellis_fold/float16/error/partials?seed=0"


@pytest.fixture(scope="module")
def captured() -> Capture:
    with fidelity.switched(**ELSEWHERE):
        return recording.capture("host", ["sweeps"])


@pytest.fixture
def file(captured: Capture, tmp_path: Path) -> Path:
    path = tmp_path / "device.json"
    path.write_bytes(encode(captured))
    return path


def metal(captured: Capture) -> Capture:
    """As if a GPU had answered so: its sum in an order without a switch, its fma rounded twice."""
    results = {"simd-sum.f32": "3f800000 " * 127 + "3f800000", "fma.f16": "3c02"}
    answers = {"simd-sum.f32": "unknown", "fma.f16": "rounded twice"}
    probes = [
        replace(probe, results=results[probe.name], answer=answers[probe.name]) if probe.name in results else probe
        for probe in captured.probes
    ]
    switches = replace(captured.switches, simd_sum="unknown")
    told = {probe.name: probe.answer for probe in probes}
    return replace(
        captured,
        device_class="applegpu_g15s",
        executor={"executor": "metal", "mlx": "0.32.4"},
        probes=probes,
        switches=switches,
        beyond_host=recording.beyond_host(told, msgspec.structs.asdict(switches)),
    )


def test_a_capture_of_host_brings_its_switches_back(captured: Capture, file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fidelity.profile(file) as held:
            assert fidelity.current() == held
            again = recording.capture("host", ["sweeps"])
            described = describe("host")
    assert differences(captured, again) == []
    assert again.probes == captured.probes
    assert {name: described[name] for name in ELSEWHERE} == ELSEWHERE
    assert described["profile"] == f"profile {json.loads(file.read_text())['seal'][:12]} of host"
    assert fidelity.current() == fidelity.Fidelity()
    assert "profile" not in describe("host")


def test_what_host_cannot_do_is_named_and_recorded(captured: Capture, tmp_path: Path) -> None:
    made = encode(metal(captured))
    assert decode(made).hardware
    path = tmp_path / "gpu.json"
    path.write_bytes(made)
    with (
        warnings.catch_warnings(record=True) as warned,
        fidelity.switched(simd_sum="descending-butterfly"),
    ):
        warnings.simplefilter("always")
        with fidelity.profile(path) as held:
            described = describe("host")["profile"]
    (warning,) = warned
    assert warning.category is profiles.ProfileWarning
    assert "no value for simd_sum, which stay as they are; not reproduced: " in str(warning.message)
    assert (held.contraction, held.f32_denormals, held.simd_sum) == ("off", "kept", "descending-butterfly")
    for name in ("applegpu_g15s", "simd-sum.f32", "simd-product.f32", "fma.f16", "transcendental functions"):
        assert name in described
    assert "fma.f32" not in described


def test_switches_that_move_are_no_longer_the_profiles(file: Path) -> None:
    with fidelity.profile(file) as held:
        with fidelity.switched(contraction="off"):
            assert fidelity.current().profile == held.profile
        with fidelity.switched(contraction="on"):
            assert fidelity.current().profile == ""
        moved = fidelity.Fidelity().switched(**held.described())
        assert moved == held


def edited(capture: Capture, edit: Callable[[dict[str, Any]], object]) -> bytes:
    contents = json.loads(encode(capture))
    edit(contents)
    contents["seal"] = ""
    text = json.dumps(contents, indent=2).encode() + b"\n"
    return text.replace(b'"seal": ""', b'"seal": "' + seal(text).encode() + b'"', 1)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda c: c["switches"].update(contraction="on"), "it says contraction='on', and its bits show 'off'"),
        (lambda c: c["switches"].update(f32_denormals="flushed"), "and its bits show 'kept'"),
        (lambda c: c["switches"].update(simd_sum="ascending-butterfly"), "and its bits show 'sequential'"),
        (lambda c: c["switches"].update(simd_sum="unknown"), "and its bits show 'sequential'"),
        (lambda c: c["switches"].pop("simd_sum"), "got something else"),
        (lambda c: c.update(schema="urn:other"), "got 'urn:other' with probes of version 1"),
        (lambda c: c.update(probes_version=9), "with probes of version 9"),
        (lambda c: c.update(beyond_host=["\x1b[31m"]), "as a name"),
        (lambda c: c.update(device_class="A B"), "got 'A B' as a name"),
        (lambda c: c.update(probes=[]), "got something else"),
        (lambda c: c["probes"][0].update(results="zz"), "got something else"),
        (lambda c: c["probes"][0].update(results="ffffffff " * 127 + "ffffffff"), "and its bits show 'unknown'"),
    ],
    ids=range(12),
)
def test_a_lying_profile_is_refused(captured: Capture, tmp_path: Path, edit: Any, told: str) -> None:
    path = tmp_path / "lie.json"
    path.write_bytes(edited(captured, edit))
    with pytest.raises(profiles.ProfileError, match=r"lie\.json: expected a capture of a device but ") as caught:
        profiles.read(path)
    assert told in str(caught.value)
    with pytest.raises(ValueError, match=r"lie\.json"), fidelity.profile(path):
        raise AssertionError("the block ran")
    assert fidelity.current() == fidelity.Fidelity()


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b"\xff", b"[" * 99_999, b" " * (profiles.SIZE_LIMIT + 1)], ids=range(6)
)
def test_a_file_that_is_no_profile_is_named(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    with pytest.raises(profiles.ProfileError, match=r"bad\.json: expected a capture of a device"):
        profiles.read(path)
    with pytest.raises(profiles.ProfileError, match="expected a capture to read"):
        profiles.read(tmp_path / "absent.json")


def test_a_hand_edit_is_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"rounded once", b"rounded twice"))
    with pytest.raises(profiles.ProfileError, match="its seal is that of other contents"):
        profiles.read(file)


def test_both_readers_are_of_one_version() -> None:
    assert (profiles.SCHEMA, profiles.PROBES) == (document.SCHEMA, document.PROBES)
    fields = Switches.__struct_fields__
    assert set(fields) == set(fidelity.SWITCHES)
    for name, values in fidelity.SWITCHES.items():
        for value in (*values, "unknown"):
            msgspec.convert({**dict.fromkeys(fields, "unknown"), name: value}, Switches)


def test_what_is_preferred_holds_in_every_thread() -> None:
    before = fidelity.preferred()
    found: list[fidelity.Fidelity] = []
    wanted = fidelity.Fidelity().switched(**ELSEWHERE, profile="some device")
    fidelity.prefer(wanted)
    try:
        thread = threading.Thread(target=lambda: found.append(fidelity.current()))
        thread.start()
        thread.join()
        with fidelity.switched(contraction="on"):
            assert fidelity.current().f32_denormals == "kept"
        assert fidelity.current() == wanted
    finally:
        fidelity.prefer(before)
    assert found == [wanted]
    assert fidelity.current() == fidelity.Fidelity()


def test_run_and_replay_judge_under_a_profile(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    given = ["--executor", "host", "--profile", str(file)]
    assert main(["run", CASE, *given, "-n", "0", "--report", str(report)]) == 0
    executor = json.loads(report.read_text())["executor"]["details"]
    assert {name: executor[name] for name in ELSEWHERE} == ELSEWHERE
    assert executor["profile"].endswith("of host")
    (case,) = json.loads(report.read_text())["cases"]
    assert case["replay"].endswith(f"--profile {file}")
    assert fidelity.current() == fidelity.Fidelity()
    capsys.readouterr()
    assert main(["replay", CASE, *given]) == 0
    assert capsys.readouterr().out.startswith(executor["profile"])
    assert fidelity.current() == fidelity.Fidelity()


SCRIPT = """
import subprocess
import sys
import threading
import mlx.core as mx
kernel = mx.fast.metal_kernel("square", ["a"], ["o"],
                              "uint i = thread_position_in_grid.x; o[i] = a[i] * a[i] - 1.00048828125f;")
def run():
    (o,) = kernel(inputs=[mx.full((8,), 1 + 2.0**-12)], output_shapes=[(8,)], output_dtypes=[mx.float32],
                  grid=(8, 1, 1), threadgroup=(8, 1, 1))
    assert o.tolist() == [0.0] * 8, o.tolist()
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "again"], check=True, cwd="/")
thread = threading.Thread(target=run)
thread.start()
thread.join()
run()
"""


def test_check_runs_under_a_profile_in_every_thread_and_process(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, out = tmp_path / "script.py", tmp_path / "found.json"
    script.write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    assert main(["check", str(script), "--profile", file.name, "--schedules", "in-order", "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["asked"]["profile"] == file.name
    assert report["executor"]["profile"].endswith("of host")
    assert report["executor"]["contraction"] == "off"
    assert main(["check", str(script), "--schedules", "in-order", "--json", str(out)]) == 3


@pytest.mark.parametrize("verb", [["run", CASE], ["replay", CASE], ["check", "SCRIPT"]])
def test_no_verb_takes_a_profile_that_lies(
    verb: list[str],
    captured: Capture,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("raise AssertionError('the script ran')\n")
    path = tmp_path / "lie.json"
    path.write_bytes(edited(captured, lambda c: c.update(beyond_host=["fma.f16"])))
    assert profiles.read(path).beyond == ("fma.f16",)
    given = ["script.py" if word == "SCRIPT" else word for word in verb]
    assert main([*given, "--profile", str(path)]) == 2
    assert "'beyond_host' to name the probes" in capsys.readouterr().err


def test_a_profile_is_for_the_host_executor(file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    from mlx_assay.conformance.verbs import refusal

    monkeypatch.setattr(refusal, "checked_executor", lambda name: "metal")
    with pytest.raises(refusal.Refusal, match="Expected the executor 'host' for a profile but got 'metal'"):
        refusal.checked_profile(str(file), None)


def test_the_verb_records_shows_and_compares(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made.json"
    assert main(["capture", "-o", str(made), "--without", "sweeps", "--without", "limits.*"]) == 0
    assert "made by the host executor" in capsys.readouterr().out
    assert main(["capture", "--show", str(made)]) == 0
    assert "contraction.f32: fused" in capsys.readouterr().out
    assert main(["capture", "--compare", str(made), str(made)]) == 0
    assert capsys.readouterr().out == "the two answer alike in every bit\n"
    assert main(["capture", "--compare", str(made), str(file)]) == 1
    out = capsys.readouterr().out
    assert "contraction.f32 (a * b + c of floats in one expression): fused and rounded" in out
    assert "asked of one alone, so not compared: limits." in out
    made.write_bytes(made.read_bytes()[:-9])
    assert main(["capture", "--show", str(made)]) == 2
    assert "made.json: expected a capture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--executor", "vulkan"], 2, "Expected an executor"),
        (["--without", "nothing"], 2, "to leave out, but got 'nothing'"),
        (["-o", "script.py"], 2, "which is a program"),
        (["-o", "/nowhere/made.json"], 2, "Expected a file in a folder"),
        (["--show", "a.json", "--executor", "host"], 2, "--show or --compare alone"),
        (["--compare", "a.json", "b.json", "-o", "c.json"], 2, "--show or --compare alone"),
        (["--show", "absent.json"], 2, "expected a file to read"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["capture", *words]) == code
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
