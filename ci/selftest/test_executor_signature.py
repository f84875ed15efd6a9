"""The generated kernel text equals MLX's own, character by character: MLX prints it while it records an export."""

import itertools
import re
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl.executors.host import HostKernel
from mlx_assay.impl.executors.signature import ATTRIBUTES, TYPES, Definition

SCALAR, SMALL, LARGE = (), (7,), (8,)

CASES: dict[str, dict[str, Any]] = {
    "plain": {"source": "uint i = thread_position_in_grid.x; out[i] = a[i];"},
    "no-attribute": {"source": "out[0] = a[0];"},
    "scalar-input": {"source": "out[0] = a;", "shapes": [SCALAR]},
    "seven-elements-lie-in-constant-space": {"source": "out[0] = a[0];", "shapes": [SMALL]},
    "eight-elements-lie-in-device-space": {"source": "out[0] = a[0];", "shapes": [LARGE]},
    "empty-input": {"source": "out[0] = 0;", "shapes": [(0,)]},
    "shape-strides-ndim": {"source": "out[0] = a_shape[0] + a_strides[0] + a_ndim; /* grid_size */"},
    "shape-of-a-scalar-is-not-passed": {"source": "out[0] = a + b_shape[0]; // a_shape", "shapes": [SCALAR, LARGE]},
    "shape-without-attribute": {"source": "out[0] = a_shape[0];"},
    "two-outputs-with-shape-without-attribute": {"source": "x[0] = y[0] = a_shape[0];", "outputs": ["x", "y"]},
    "names-within-names": {"source": "out[0] = aa_shape[0];", "inputs": ["a", "aa"], "shapes": [LARGE, LARGE]},
    "attribute-within-attribute": {
        "source": "out[0] = dispatch_threads_per_threadgroup.x + thread_position_in_grid.y;"
    },
    "every-attribute": {"source": "// " + " ".join(ATTRIBUTES)},
    "atomic": {"source": "uint i = thread_position_in_grid.x;", "atomic_outputs": True},
    "header-without-last-newline": {"source": "out[0] = 1;", "header": "constant int k = 3;"},
    "templates": {
        "source": "out[0] = T(N) + T(B);",
        "template": [("T", mx.bfloat16), ("N", 12), ("B", True), ("C", False), ("U", mx.int64)],
    },
    "negative-template": {"source": "out[0] = N;", "template": [("N", -3)]},
}

DTYPES = [getattr(mx, name) for name in TYPES if name not in {"bool", "float64"}]


def printed(path: Path, capfd: pytest.CaptureFixture[str], arguments: dict[str, Any], call: dict[str, Any]) -> str:
    kernel: Any = mx.fast.metal_kernel(**arguments)
    inputs = call.pop("inputs")
    mx.export_function(str(path), lambda *xs: kernel(inputs=list(xs), verbose=True, **call)[0], *inputs)
    found = re.search(r"```\n(.*)\n```\n", capfd.readouterr().out, re.S)
    assert found is not None, "MLX printed no kernel"
    return found[1]


def both(
    path: Path, capfd: pytest.CaptureFixture[str], case: dict[str, Any], dtypes: list[Any], outputs: list[Any]
) -> tuple[str, str]:
    shapes = case.get("shapes", [LARGE])
    names = case.get("inputs", ["a", "b", "c"][: len(shapes)])
    output_names = case.get("outputs", ["out"])
    arguments = {
        "name": "probe",
        "input_names": names,
        "output_names": output_names,
        "source": case["source"],
        "header": case.get("header", ""),
        "atomic_outputs": case.get("atomic_outputs", False),
    }
    inputs = [mx.zeros(s).astype(d) for s, d in zip(shapes, dtypes, strict=True)]
    template = case.get("template")
    call = {
        "inputs": inputs,
        "template": template,
        "grid": (8, 1, 1),
        "threadgroup": (8, 1, 1),
        "output_shapes": [(8,)] * len(output_names),
        "output_dtypes": outputs,
    }
    theirs = printed(path, capfd, arguments, call)
    definition = Definition("probe", tuple(names), tuple(output_names), case["source"], arguments["header"])
    definition = Definition(**{**vars(definition), "atomic_outputs": arguments["atomic_outputs"]})
    return str(HostKernel(definition).text(inputs, outputs, template or ())), theirs


@pytest.mark.parametrize("name", CASES)
def test_text_equals_mlx(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    n = len(case.get("shapes", [LARGE]))
    ours, theirs = both(
        tmp_path / "f.mlxfn", capfd, case, [mx.float32] * n, [mx.float16] * len(case.get("outputs", [1]))
    )
    assert ours == theirs


def test_every_dtype(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for index, (dtype, shape) in enumerate(itertools.product(DTYPES, (SCALAR, SMALL, LARGE))):
        case = {"source": "out[0] = a_shape[0];", "shapes": [shape], "template": [("T", dtype)]}
        ours, theirs = both(tmp_path / f"{index}.mlxfn", capfd, case, [dtype], [dtype])
        assert ours == theirs
