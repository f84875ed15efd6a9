"""The file of a capture: canonical, sealed, and believed in nothing that its bits do not show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from mlx_assay.conformance.capture import document, recording
from mlx_assay.conformance.capture.comparison import circumstances, differences, unasked
from mlx_assay.conformance.capture.document import Capture, encode, seal
from mlx_assay.conformance.capture.reading import SIZE_LIMIT, BadCapture, decode, read
from mlx_assay.conformance.capture.rendering import compared, shown
from mlx_assay.impl.executors import fidelity

replace = msgspec.structs.replace
PUBLISHED = Path(document.__file__).with_name("capture.schema.json")
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def whole() -> Capture:
    return recording.capture("host")


@pytest.fixture(scope="module")
def other() -> Capture:
    """The host executor with every switch elsewhere, without sweeps."""
    with fidelity.switched(contraction="off", f32_denormals="kept", simd_sum="reverse-sequential"):
        return recording.capture("host", ["sweeps"])


def sealed(capture: Capture, edit: Edit) -> bytes:
    """The file after an edit by somebody who knows how to seal it, in canonical form wherever it has one."""
    contents = json.loads(encode(capture))
    edit(contents)
    contents["seal"] = ""
    text = json.dumps(contents, indent=2, ensure_ascii=False).encode() + b"\n"
    return text.replace(b'"seal": ""', b'"seal": "' + seal(text).encode() + b'"', 1)


def probe(contents: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (probe for probe in contents["probes"] if probe["name"] == name)
    return dict_of(found)


def dict_of(found: object) -> dict[str, Any]:
    assert isinstance(found, dict)
    return found


def test_a_file_is_read_back_whole(whole: Capture, other: Capture, tmp_path: Path) -> None:
    for capture in (whole, other):
        (tmp_path / "made.json").write_bytes(encode(capture))
        again = read(tmp_path / "made.json")
        assert replace(again, seal="") == capture
        assert encode(again) == encode(capture)
        assert decode(sealed(capture, lambda contents: None)) == again


def test_the_schema_is_published_and_holds(whole: Capture) -> None:
    assert json.loads(PUBLISHED.read_text()) == document.schema()
    jsonschema.validate(json.loads(encode(whole)), document.schema())


def test_a_file_is_small_and_fit_for_a_diff(whole: Capture) -> None:
    text = encode(whole).decode()
    assert len(text) < 80_000
    assert text.isascii()
    assert sum(line.lstrip().startswith('"answer"') for line in text.splitlines()) == len(whole.probes)


LIES: dict[str, tuple[Edit, str]] = {
    "an answer": (lambda c: probe(c, "fma.f16").update(answer="rounded twice"), "that its bits show, 'rounded once'"),
    "a switch": (lambda c: c["switches"].update(contraction="off"), "contraction=on"),
    "a sum's order": (lambda c: c["switches"].update(simd_sum="sequential"), "simd_sum=ascending-butterfly"),
    "a switch and its answer": (
        lambda c: (
            c["switches"].update(simd_sum="sequential"),
            probe(c, "simd-sum.f32").update(answer="sequential"),
        ),
        "'ascending-butterfly', but got 'sequential'",
    ),
    "nothing beyond host": (
        lambda c: probe(c, "fma.f16").update(results="3c02", answer="rounded twice"),
        "'beyond_host' to name the probes",
    ),
    "all beyond host": (lambda c: c.update(beyond_host=["fma.f16"]), "'beyond_host' to name the probes"),
    "a GPU": (lambda c: c.update(device_class="applegpu_g15s"), "the device class of what executor 'host' runs on"),
    "an executor": (lambda c: c["executor"].update(executor="cuda"), "what executor 'cuda' runs on"),
    "operands": (lambda c: probe(c, "fma.f16").update(operands="0000 0000 0000"), "the operands of probe fma.f16"),
    "results too many": (
        lambda c: probe(c, "fma.f16").update(results="3c01 3c01"),
        "expected 1 results of 4 hex digits",
    ),
    "results too long": (
        lambda c: probe(c, "fma.f16").update(results="00003c01"),
        "expected 1 results of 4 hex digits",
    ),
    "a refusal with results": (
        lambda c: probe(c, "fma.f16").update(answer="refused", refusal="no"),
        "expected no results of probe fma.f16",
    ),
    "a refusal without words": (
        lambda c: probe(c, "fma.f16").update(answer="refused", results=""),
        "no results of probe",
    ),
    "a probe left away": (lambda c: c["probes"].pop(), "every probe of this version, once, in order"),
    "a probe twice": (lambda c: c["probes"].append(c["probes"][0]), "every probe of this version, once, in order"),
    "probes in another order": (lambda c: c["probes"].reverse(), "every probe of this version, once, in order"),
    "a sweep left away": (lambda c: c["sweeps"].pop(), "every sweep of this version, once, in order, or none"),
    "more inexact than normal": (lambda c: c["sweeps"][0].update(inexact=65537), "parts no larger than the whole"),
    "another count": (lambda c: c["sweeps"][0].update(arguments=65537), "the stream's count of arguments"),
    "an accuracy": (lambda c: c["sweeps"][0].update(worst_ulp=0, worst=None), "a distance where results are inexact"),
    "a distance": (lambda c: c["sweeps"][0].update(worst_ulp=7), "a worst place that has this distance"),
    "a worst place": (
        lambda c: c["sweeps"][0]["worst"].update(reference="3c08"),
        "a worst place that has this distance",
    ),
    "no worst place": (lambda c: c["sweeps"][0].update(worst=None), "the worst place where there is a distance"),
    "too many special": (lambda c: c["sweeps"][0].update(special=65536), "no more special arguments than there are"),
    "a date": (lambda c: c.update(captured="2026-13-45T99:00:00+00:00"), "expected a date"),
    "a terminal's escape": (lambda c: c["device"].update(device_name="\x1b[31m"), "expected printable text"),
    "a right-to-left mark": (lambda c: c["device"].update(device_name="\u202eM3"), "expected printable text"),
    "an unknown field": (lambda c: c.update(golden=True), "unknown field `golden`"),
    "a seal of another kind": (lambda c: c.update(schema="urn:mlx-assay:capture:2"), "Invalid enum value"),
    "other probes": (lambda c: c.update(probes_version=2), "expected probes of version 1 but got 2"),
    "upper case": (lambda c: probe(c, "fma.f16").update(results="3C01"), "matching regex"),
    "a long word": (lambda c: c["device"].update(device_name="x" * 401), "length <= 400"),
    "many words": (lambda c: c["device"].update({f"k{i}": "" for i in range(65)}), "length <= 64"),
    "a negative count": (lambda c: c["sweeps"][0].update(lost=-1), ">= 0"),
    "a number as text": (lambda c: c["sweeps"][0].update(lost="0"), "Expected `int`"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_says_what_its_bits_do_not_is_refused(whole: Capture, lie: str) -> None:
    edit, told = LIES[lie]
    with pytest.raises(BadCapture) as caught:
        decode(sealed(whole, edit))
    assert told in str(caught.value)


def test_a_hand_edit_breaks_the_seal(whole: Capture) -> None:
    with pytest.raises(BadCapture, match="expected contents of the seal"):
        decode(encode(whole).replace(b"rounded once", b"rounded twice"))
    with pytest.raises(BadCapture, match="expected contents of the seal"):
        decode(encode(whole).replace(b"\n", b"\r\n"))


def test_another_form_of_the_same_contents_is_refused(whole: Capture) -> None:
    compact = json.dumps(json.loads(encode(whole))).encode()
    empty = compact.replace(json.loads(compact)["seal"].encode(), b"")
    assert b'"seal": ""' in empty
    with pytest.raises(BadCapture, match="expected the canonical form"):
        decode(empty.replace(b'"seal": ""', b'"seal": "' + seal(empty).encode() + b'"'))
    twice = sealed(whole, lambda contents: None).replace(b"{", b'{"seal": "",', 1)
    with pytest.raises(BadCapture):
        decode(twice)


def test_damage_is_named_wherever_it_is(whole: Capture) -> None:
    good = encode(whole)
    for place in range(0, len(good), len(good) // 60):
        with pytest.raises(BadCapture):
            decode(good[:place])
        changed = bytearray(good)
        changed[place] ^= 1
        with pytest.raises(BadCapture):
            decode(bytes(changed))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"probes_version": 1}',
        b'{"probes_version": "1"}',
        b"\0" * 99,
    ],
    ids=range(9),
)
def test_what_is_no_capture_is_named(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(text)
    with pytest.raises(BadCapture, match=r"bad\.json: expected a capture"):
        read(tmp_path / "bad.json")


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadCapture, match="expected a file to read"):
        read(tmp_path)
    with pytest.raises(BadCapture, match="expected a file to read"):
        read(tmp_path / "absent.json")
    (tmp_path / "huge.json").write_bytes(b" " * (SIZE_LIMIT + 1))
    with pytest.raises(BadCapture, match=f"expected at most {SIZE_LIMIT} bytes"):
        read(tmp_path / "huge.json")


def test_a_refused_probe_is_sound(whole: Capture) -> None:
    def edit(contents: dict[str, Any]) -> None:
        probe(contents, "fma.f16").update(answer="refused", results="", refusal="no such function")
        contents["beyond_host"] = ["fma.f16"]

    made = decode(sealed(whole, edit))
    assert made.beyond_host == ["fma.f16"]
    assert differences(whole, made) == [
        "fma.f16 (fma of halves beside a midpoint): rounded once and refused (no such function)"
    ]


def test_what_differs_is_said_in_words(whole: Capture, other: Capture) -> None:
    lines = differences(whole, other)
    assert (
        "contraction.f32 (a * b + c of floats in one expression): fused and rounded: [0] 33800000 and 00000000" in lines
    )
    assert (
        "denormals.f32.operand (2^-130 * 2^100 and -2^-130 * 2^100): flushed and kept: "
        "[0] 00000000 and 30800000, [1] 80000000 and b0800000"
    ) in lines
    assert any(line.startswith("simd-sum.f32") and line.endswith("and 120 more") for line in lines)
    assert {line.partition(" ")[0] for line in lines} == {name for name, q in questions().items() if q.follows}
    assert unasked(whole, other) == ["sweeps"]
    assert "executor contraction: on and off" in circumstances(whole, other)
    text, alike = compared(whole, other)
    assert not alike
    assert text[-1] == f"{len(lines)} answers differ"
    assert compared(whole, whole) == (["the two answer alike in every bit"], True)


def questions() -> Any:
    from mlx_assay.conformance.capture.questions import BY_NAME

    return BY_NAME


def test_a_sweep_that_differs_is_said_in_words(whole: Capture) -> None:
    first = whole.sweeps[0]
    changed = replace(whole, sweeps=[replace(first, digest="0" * 64, special=5), *whole.sweeps[1:]])
    (line,) = differences(whole, changed)
    assert line.startswith(f"precise exp of float16: {first.inexact} of {first.normal} inexact")
    assert line.endswith("5 special otherwise")


def test_a_capture_is_shown_with_all_its_answers(whole: Capture) -> None:
    text = list(shown(whole))
    assert "made by the host executor: it says how this suite computes on a CPU, and nothing of any GPU" in text
    assert any(line.startswith("  fma.f16: rounded once") for line in text)
    assert sum(line.startswith("  ") for line in text) == len(whole.probes) + len(whole.sweeps)
