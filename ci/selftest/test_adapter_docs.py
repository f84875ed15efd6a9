"""docs/adapters.md and the schema: the dialogue is what is said, the tables hold what the code holds."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import mlx.core as mx
import msgspec
import pytest

from mlx_assay.conformance.adapters import channel, protocol, target
from mlx_assay.conformance.adapters.program import Program, Told
from mlx_assay.conformance.process import bounds
from mlx_assay.conformance.process.implementation import TOLD
from mlx_assay.conformance.verbs.adapter import STEPS
from mlx_assay.fixtures.codec import NAMES
from mlx_assay.fixtures.kind import kinds

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
PAGE = (ROOT / "docs/adapters.md").read_text()
SCHEMA = ROOT / "conformance/adapters/protocol.schema.json"
EXECUTOR = {"name": "host", "simd_sum": "ascending-butterfly", "f32_denormals": "flushed"}
PARAMETERS = {"apply_token_bitmask": ("logits", "bits"), "logit_softcap": ("x", "cap")}


def dialogue() -> list[str]:
    found = re.search(r"```text\n(→ .*?)```", PAGE, re.S)
    assert found is not None
    return found[1].splitlines()


def test_the_dialogue_is_what_is_said(tmp_path: Path) -> None:
    scratch, log = tmp_path / "own", tmp_path / "log"
    scratch.mkdir()
    argv = (sys.executable, "-S", "-E", str(PROGRAMS / "overheard.py"), str(log))
    program = Program(argv, str(scratch), EXECUTOR, PARAMETERS)
    program.started.operations.append("logit_softcap")
    program.allow(1 << 12)
    functions = program.functions()
    logits = mx.zeros((1, 33), mx.bfloat16)
    masked = functions["apply_token_bitmask"](logits, mx.array([1, 1], mx.int32))
    assert masked.view(mx.uint16).tolist() == [[0, *[0xFF80] * 31, 0]]
    for name, arguments in (("apply_token_bitmask", (logits, None)), ("logit_softcap", (logits, 30.0))):
        with pytest.raises(Told):
            functions[name](*arguments)
    assert program.stop()
    said = log.read_text(encoding="utf-8").replace(str(scratch), "/tmp/mlx-assay-program-x")
    assert said.splitlines() == dialogue()


def test_the_dialogue_fits_the_schema() -> None:
    schema = json.loads(SCHEMA.read_text())
    for line in dialogue():
        jsonschema.validate(json.loads(line[2:]), schema)


def test_the_published_schema_is_the_structs_own() -> None:
    assert SCHEMA.read_text() == json.dumps(protocol.schema(), indent=2) + "\n"
    jsonschema.Draft202012Validator.check_schema(protocol.schema())


WRONG: list[Any] = [
    {"seq": 1},
    {"ok": True},
    {"seq": 1, "ok": False},
    {"seq": 1, "ok": True, "error": "x"},
    {"seq": 1, "ok": True, "type": "ValueError"},
    {"seq": 1, "error": "x", "type": "KeyError"},
    {"seq": 1, "ok": True, "more": 1},
    {"seq": "1", "ok": True},
    {"seq": 1, "unsupported": True},
    {"seq": 1, "plan": {}, "ok": True},
    [],
]
RIGHT: list[Any] = [
    {"seq": 1, "ok": True},
    {"seq": 0, "error": ""},
    {"seq": 7, "error": "no", "type": "IndexError"},
    {"seq": 7, "unsupported": "no"},
    {"seq": 7, "plan": {"launches": []}},
]


@pytest.mark.parametrize("answer", [*WRONG, *RIGHT], ids=str)
def test_schema_and_decoder_agree(answer: Any) -> None:
    schema = {**protocol.schema(), "$ref": "#/$defs/Answer"}
    del schema["oneOf"]
    fits = not list(jsonschema.Draft202012Validator(schema).iter_errors(answer))
    try:
        protocol.decode_answer(json.dumps(answer).encode())
        decoded = True
    except msgspec.ValidationError:
        decoded = False
    assert (fits, decoded) == (answer in RIGHT, answer in RIGHT)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (30.0, {"is": "float", "bits": "0x403e000000000000"}),
        (-0.0, {"is": "float", "bits": "0x8000000000000000"}),
        (float("inf"), {"is": "float", "bits": "0x7ff0000000000000"}),
        (5e-324, {"is": "float", "bits": "0x0000000000000001"}),
        (-7, {"is": "integer", "value": -7}),
        (True, {"is": "boolean", "value": True}),
        (None, {"is": "none"}),
        ("lut\n", {"is": "text", "value": "lut\n"}),
    ],
)
def test_plain_arguments_are_sent_whole(given: Any, sent: dict[str, Any]) -> None:
    assert json.loads(protocol.encode(protocol.value(given))) == sent


def test_an_integer_that_readers_lose_is_refused() -> None:
    protocol.value(2**53 - 1)
    with pytest.raises(OverflowError, match="53 bits"):
        protocol.value(2**53)


def test_the_page_names_what_the_code_holds() -> None:
    assert protocol.LINE_LIMIT == 1 << 20 and "at most 1 MiB" in PAGE  # noqa: PT018
    for name in (*channel.ENVIRONMENT, *TOLD, *NAMES.values()):
        assert f"`{name}`" in PAGE, name
    assert bounds.FILE_LIMIT == 4 << 30
    assert f'[project.entry-points."{target.GROUP}"]' in PAGE
    fields = [
        field.encode_name for struct in (protocol.Started, protocol.Answer) for field in msgspec.structs.fields(struct)
    ]
    assert [name for name in fields if f"`{name}" not in PAGE and f'"{name}"' not in PAGE] == []


def test_the_page_names_every_step_of_the_check() -> None:
    table = PAGE.partition("| step | looks at |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([a-z ]+) \|", table, re.M) == [name for name, *_ in STEPS]


def test_contracts_expect_no_error_that_the_protocol_cannot_tell() -> None:
    allowed = set(protocol.Builtin.__args__)
    found: set[str] = set()
    for kind in kinds().values():
        if kind.name.startswith("error/") or "error" in kind.tags:
            for case in list(kind.cases("quick"))[:2]:
                found.update(name for subcase in kind.subcases(case) for name in subcase.raises)
    assert {"ValueError", "TypeError"} <= found <= allowed
