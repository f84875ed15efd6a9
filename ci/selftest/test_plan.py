"""Launch plans: what they may say, that the current executor runs them, and that none is an answer by being wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.conformance.adapters import plan
from mlx_assay.conformance.adapters.inclusion import refused
from mlx_assay.conformance.adapters.launches import MOST_OUTPUT_BYTES
from mlx_assay.impl import executors

Document = dict[str, Any]
X = {"is": "argument", "name": "x", "argument": "x"}
SCHEMA = Path(plan.__file__).with_name("plan.schema.json")


def launch(**changes: Any) -> Document:
    """Eight float32 doubled."""
    made = {
        "name": "double",
        "source": "const uint i = thread_position_in_grid.x; out[i] = x[i] * factor;",
        "inputs": [X, {"is": "constant", "name": "factor", "dtype": "float32", "bits": ["0x40000000"]}],
        "outputs": [{"name": "out", "dtype": "float32", "shape": [8]}],
        "grid": [8, 1, 1],
        "threadgroup": [8, 1, 1],
    }
    return made | changes


def document(*launches: Document, **result: Any) -> bytes:
    return json.dumps(
        {"launches": list(launches or [launch()]), "result": {"launch": 0, "output": "out"} | result}
    ).encode()


@pytest.fixture
def x() -> Iterator[mx.array]:
    with executors.use("host"):
        yield mx.arange(8).astype(mx.float32)


def test_plan_launches_in_turn(x: mx.array) -> None:
    """An output becomes an input, an argument is looked at as another dtype and shape, the answer as another shape."""
    halves = launch(
        name="halves",
        source="const uint i = thread_position_in_grid.x; low[i] = words[i] & 0xffff; high[i] = words[i] >> 16;",
        inputs=[{**X, "name": "words", "view": "uint32", "shape": [2, 4]}],
        outputs=[{"name": name, "dtype": "uint16", "shape": [8]} for name in ("low", "high")],
    )
    joined = launch(
        name="joined",
        source="const uint i = thread_position_in_grid.x; out[i] = T(uint(high[i]) * FACTOR + (ADD ? low[i] : 0));",
        inputs=[{"is": "output", "name": name, "launch": 0, "output": name} for name in ("high", "low")],
        outputs=[{"name": "out", "dtype": "uint32", "shape": [8]}],
        template=[
            {"is": "dtype", "name": "T", "value": "uint32"},
            {"is": "int", "name": "FACTOR", "value": 65536},
            {"is": "bool", "name": "ADD", "value": True},
        ],
    )
    found = plan.run(document(halves, joined, launch=1, view="float32", shape=[4, 2]), {"x": x})
    assert np.array_equal(np.array(found), np.array(x).reshape(4, 2))


@pytest.mark.parametrize("library", ["mx", "numpy", "torch"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_plan_keeps_every_bit(dtype: str, library: str) -> None:
    """Payloads of NaN, both zeros and denormals, as arguments of each library and as constants."""
    width = 4 if dtype == "float32" else 2
    top = {"bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000}[dtype]
    sign = 1 << (8 * width - 1)
    words = [0, sign, 1, sign | 1, top, top | sign, top | 1, top | sign | 5, top - 1]
    bits = np.array(words, dtype=f"u{width}")
    host = bits.view(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    given: Any = host
    if library == "mx":
        given = mx.array(bits).view(getattr(mx, dtype))
    elif library == "torch":
        torch = pytest.importorskip("torch")
        given = torch.from_numpy(bits.view(f"i{width}")).view(getattr(torch, dtype))
    same = launch(
        name="same",
        source="const uint i = thread_position_in_grid.x; out[i] = x[i]; out[9 + i] = own[i];",
        inputs=[
            {**X, "view": f"uint{8 * width}"},
            {
                "is": "constant",
                "name": "own",
                "dtype": f"uint{8 * width}",
                "shape": [9],
                "bits": [f"0x{word:0{2 * width}x}" for word in words],
            },
        ],
        outputs=[{"name": "out", "dtype": f"uint{8 * width}", "shape": [18]}],
        grid=[9, 1, 1],
    )
    with executors.use("host"):
        found = plan.run(document(same, view=dtype), {"x": given})
    assert str(found.dtype).endswith(dtype)
    assert np.array(found.view(getattr(mx, f"uint{8 * width}"))).tolist() == words * 2


def test_plan_reads_what_lies_scattered(x: mx.array) -> None:
    own = launch(
        source="const uint i = thread_position_in_grid.x; out[i] = x[i * x_strides[0]];",
        inputs=[X],
        outputs=[{"name": "out", "dtype": "float32", "shape": [4]}],
        grid=[4, 1, 1],
        ensure_row_contiguous=False,
    )
    assert np.array(plan.run(document(own), {"x": x[::2]})).tolist() == [0, 2, 4, 6]


def test_plan_runs_under_the_poison_of_the_call(x: mx.array) -> None:
    half = launch(grid=[4, 1, 1])
    with executors.poison(0x40E00000):
        assert np.array(plan.run(document(half), {"x": x}))[4:].tolist() == [7, 7, 7, 7]
        half["init_value"] = "0xbf800000"
        assert np.array(plan.run(document(half), {"x": x}))[4:].tolist() == [-1, -1, -1, -1]


CONSTANT = {"is": "constant", "name": "factor", "dtype": "float32", "bits": ["0x40000000"]}
BROKEN: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "Expected a launch plan"),
    "deep": (b"[" * 100_000, "Expected a launch plan"),
    "no launch": (b'{"launches": [], "result": {"launch": 0, "output": "out"}}', r"\$\.launches"),
    "many launches": (document(*[launch()] * 17), r"\$\.launches"),
    "unknown word": (document(launch(verbose=True)), "verbose"),
    "long source": (document(launch(source=" " * (1 << 18) + ";")), r"launches\[0\]\.source"),
    "name": (document(launch(name="a b")), r"launches\[0\]\.name"),
    "float": (document(launch(init_value=0.5)), "init_value"),
    "grid": (document(launch(grid=[8, 1])), r"launches\[0\]\.grid"),
    "negative grid": (document(launch(grid=[-1, 1, 1])), r"launches\[0\]\.grid"),
    "no threadgroup": (document(launch(threadgroup=[0, 1, 1])), r"launches\[0\]\.threadgroup"),
    "threads": (document(launch(threadgroup=[1024, 2, 1])), r"launch 0, 'double': .*\(2048\)"),
    "dtype": (document(launch(outputs=[{"name": "out", "dtype": "float64", "shape": [8]}])), "dtype"),
    "shape": (document(launch(outputs=[{"name": "out", "dtype": "float32", "shape": [-1]}])), "shape"),
    "bytes": (
        document(launch(outputs=[{"name": "out", "dtype": "float32", "shape": [MOST_OUTPUT_BYTES // 4 + 1]}])),
        f"at most {MOST_OUTPUT_BYTES} bytes",
    ),
    "overflow": (document(launch(outputs=[{"name": "out", "dtype": "float32", "shape": [2**31 - 1] * 3}])), "at most"),
    "no output": (document(launch(outputs=[])), "outputs"),
    "argument": (document(launch(inputs=[{**X, "argument": "y"}, CONSTANT])), "one of x, cap, but got 'y'"),
    "number": (document(launch(inputs=[{**X, "argument": "cap"}, CONSTANT])), "'cap' is float: give its value as"),
    "names": (document(launch(inputs=[X, {**CONSTANT, "name": "x"}])), "'x' stands twice"),
    "later launch": (
        document(launch(inputs=[{"is": "output", "name": "x", "launch": 0, "output": "out"}, CONSTANT])),
        "Expected an earlier launch, one of 0, but got number 0",
    ),
    "reshape": (document(launch(inputs=[{**X, "shape": [9]}, CONSTANT])), r"8 elements, as \[8\] has, but got \[9\]"),
    "view": (document(launch(inputs=[{**X, "view": "uint16"}, CONSTANT])), "view of the width of .*float32"),
    "elements": (document(launch(inputs=[X, {**CONSTANT, "shape": [2]}])), "2 elements for shape"),
    "digits": (document(launch(inputs=[X, {**CONSTANT, "bits": ["0x4000"]}])), "8 hex digits for float32"),
    "capitals": (document(launch(inputs=[X, {**CONSTANT, "bits": ["0x7FC00000"]}])), "bits"),
    "truth": (document(launch(inputs=[X, {**CONSTANT, "dtype": "bool", "bits": ["0x02"]}])), "0x00 or 0x01"),
    "buffers": (
        document(launch(inputs=[{**CONSTANT, "name": f"c{n}"} for n in range(31)])),
        "at most 31 inputs and outputs together but got 32",
    ),
    "result": (document(output="sum"), "one of out, but got 'sum'"),
    "result's launch": (document(launch=1), "an earlier launch, one of 1, but got number 1"),
    "text": (document(launch(source="out[0] = y;")), "launch 0, 'double': .*undeclared identifier 'y'"),
    "template": (document(launch(template=[{"is": "int", "name": "N", "value": 2**31}])), "template"),
}


@pytest.mark.parametrize(("given", "told"), BROKEN.values(), ids=BROKEN)
def test_plan_that_is_none_is_told_where_it_is_wrong(given: bytes, told: str, x: mx.array) -> None:
    with pytest.raises(plan.PlanError, match=f"(?s){told}") as caught:
        plan.run(given, {"x": x, "cap": 1.0})
    assert type(caught.value).__bases__ == (Exception,), "no exception that a contract expects"


@pytest.mark.parametrize(
    "text",
    [
        '#include "/etc/hostname"',
        "#include </etc/hostname>",
        '#include "mlx/../../hostname.h"',
        '# /* a\n b */ /* c */ include "/etc/hostname"',
        '#incl\\\nude "/etc/hostname"',
        '#include <metal_stdlib> \\\n "/etc/hostname"',
        "#include HEADER",
        '%:include "/etc/hostname"',
        '??=include "/etc/hostname"',
        '#import "/etc/hostname"',
        '#include_next "/etc/hostname"',
        'constant uchar bytes[] = {\n#embed "/etc/hostname"\n};',
        '#if __has_include("/etc/hostname")\n#endif',
        '#pragma GCC dependency "/etc/hostname"',
        '_Pragma("GCC dependency \\"/etc/hostname\\"")',
    ],
)
def test_plan_includes_no_file_of_the_machine(text: str, x: mx.array) -> None:
    for part in ("header", "source"):
        with pytest.raises(plan.PlanError, match=f"include nothing but Metal's headers.*but the {part} has"):
            plan.run(document(launch(**{part: f"\n{text}\n"})), {"x": x})


def test_plan_includes_headers_of_metal_and_mlx(x: mx.array) -> None:
    header = '#include <metal_stdlib>\n  #  include "mlx/backend/metal/kernels/utils.h" // to include is fine\n'
    assert np.array(plan.run(document(launch(header=header)), {"x": x})).tolist() == (np.array(x) * 2).tolist()
    assert refused("// what is to include #1\n#pragma unroll\n#define A(b) #b\n") is None
    assert refused("#" + "/**/" * 30_000) is None, "in linear time"


def test_plan_schema_is_published() -> None:
    assert json.loads(SCHEMA.read_text()) == plan.schema(), "regenerate conformance/adapters/plan.schema.json"


def test_plan_of_the_documentation_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "adapters.md").read_text()
    text = page.partition("## Launch plans")[2].partition("```json\n")[2].partition("```")[0]
    logits = mx.arange(600).reshape(3, 200).astype(mx.bfloat16)
    with executors.use("host"):
        found = plan.run(json.dumps(json.loads(text)["plan"]).encode(), {"logits": logits})
    assert found.shape == (3, 200)
    assert mx.array_equal(found, logits * 0.5)
