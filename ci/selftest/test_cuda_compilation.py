"""What of the cuda executor needs no GPU: PTX of every built-in kernel's text, and an error where there is no GPU."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from checker.corpus import Row, rows

from mlx_assay import impl
from mlx_assay.impl import executors
from mlx_assay.impl.executors import diagnosis, fidelity, host
from mlx_assay.impl.executors.cuda import compilation, sums
from mlx_assay.impl.executors.signature import Definition, InputKind, Text, generate
from mlx_assay.impl.executors.translation import translate
from mlx_assay.impl.kernels import normalized_argmax, token_bitmask
from mlx_assay.impl.kernels.text import metal_text

NO_GPU = pytest.mark.skipif(mx.cuda.is_available(), reason="NOT RUN: this machine has an NVIDIA GPU")
BODY = """
    threadgroup float held[64];
    uint i = thread_position_in_grid.x;
    held[i % 64] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = simd_sum(held[63 - i % 64]) / x[i] + tanh(x[i]);
"""


def program(source: str, dtype: str = "float", **switches: str) -> compilation.Program:
    """A kernel `y` of `x`, both of one Metal dtype, compiled for a threadgroup of at most 256."""
    definition = Definition("probe", ("x",), ("y",), source)
    text = generate(definition, (InputKind(dtype, False, False),), (dtype,))
    held = fidelity.current().switched(**{"f32_denormals": "kept", **switches})
    return compilation.build(text.name, translate(text, compilation.entry), "sm_90", 256, held)


def test_threadgroup_memory_is_laid_out_and_counted() -> None:
    made = program(
        "threadgroup half a[3]; threadgroup float4 b[2]; a[0] = half(x[0]); b[1] = 1.0f; y[0] = a[0] + b[1].x;"
    )
    assert made.threadgroup_bytes == 48
    assert program("y[0] = x[0];").threadgroup_bytes == 0


def test_arithmetic_is_metals() -> None:
    ptx = program(BODY).ptx.decode()
    assert ".shared" in ptx
    assert "bar.sync" in ptx
    assert "shfl.sync" in ptx
    assert "div.rn.f32" in ptx
    assert "div.full" not in ptx
    assert "assay_array" not in ptx


@pytest.mark.parametrize(("contraction", "fused"), [("on", True), ("off", False)])
def test_products_and_sums_are_fused_where_the_text_says_so(contraction: str, fused: bool) -> None:
    ptx = program("y[0] = x[0] * x[1] + x[2];", contraction=contraction).ptx.decode()
    assert ("fma.rn.f32" in ptx) == fused
    assert ("mul.rn.f32" in ptx) != fused


def test_nothing_is_fused_across_statements() -> None:
    assert "fma" not in program("float p = x[0] * x[1]; y[0] = p + x[2];").ptx.decode()


def test_a_text_that_does_not_compile_is_told_in_the_compilers_words() -> None:
    with pytest.raises(Exception, match="undeclared identifier 'nowhere'"):
        program("y[0] = nowhere;")


def launched() -> dict[str, str]:
    """The translated text of every kernel that the built-in operations launch in a few calls, by name and arguments."""
    found: dict[str, str] = {}
    run = host.HostKernel.text

    def text(self: host.HostKernel, inputs: Any, dtypes: Any, template: Any) -> Text:
        made = run(self, inputs, dtypes, template)
        found[made.name] = translate(made, compilation.entry)
        return made

    with executors.use("host"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(host.HostKernel, "text", text)
        for dtype in (mx.bfloat16, mx.float16, mx.float32):
            x = mx.arange(3 * 1100).reshape(3, 1100).astype(dtype)
            normalized_argmax._kernel.cache_clear()
            token_bitmask._kernel.cache_clear()
            mx.eval(impl.normalized_argmax(x), impl.apply_token_bitmask(x, mx.full((35,), -1, mx.int32)))
    return found


def test_the_sampling_kernels_become_ptx_that_nvidias_assembler_takes(tmp_path: Path) -> None:
    texts = launched()
    assert len([name for name in texts if "normalized_argmax_maxima" in name]) == 3
    assert len([name for name in texts if "token_bitmask" in name]) == 3
    ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
    for name, source in texts.items():
        made = compilation.build(name, source, "sm_90", 128, fidelity.current().switched(f32_denormals="kept"))
        assert f".entry {made.entry}(" in made.ptx.decode(), name
        if ptxas:
            path = tmp_path / "kernel.ptx"
            path.write_bytes(made.ptx)
            done = subprocess.run(
                [ptxas, "-arch=sm_90", str(path), "-o", f"{path}.cubin"], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("body", "checked"),
    [
        ("uint i = thread_position_in_grid.x; y[i] = x[i] + x[2 * i + 1];", False),
        ("for (uint k = 0; k < 64; k += 2) y[k] = x[k];", False),
        ("threadgroup float4 s[4]; s[0] = float4(x[0]); y[0] = s[int(x[1]) & 3].x;", False),
        ("y[0] = (*(const device float4*)(x + int(x[0]))).x;", True),
        ("*(device float2*)(y + int(x[0])) = float2(1);", True),
    ],
)
def test_an_address_is_asked_for_its_alignment_only_where_it_may_lack_it(body: str, checked: bool) -> None:
    assert ("apart" in program(body).ptx.decode()) == checked


def test_what_is_known_of_an_array_is_known_in_a_long_kernel_too() -> None:
    steps = "".join(f"y[{i} * n + i] = metal::fma(x[i + {i} * n], x[i], y[i]); " for i in range(300))
    body = f"const uint i = thread_position_in_grid.x, n = threads_per_grid.x; {steps}"
    assert "apart" not in program(body).ptx.decode()


def test_volatile_and_atomic_access_stays_as_it_is() -> None:
    ptx = program("volatile device float* p = y; p[0] = x[0]; p[1] = p[0];").ptx.decode()
    assert "st.volatile" in ptx
    assert "ld.volatile" in ptx


HALVES = """
    uint i = thread_position_in_grid.x;
    const half a = x[i], b = x[i + 1];
    half c = fma(a, b, a + b) - a * b;
    if (a < b) c = -c;
    if (a == b) c += half(1);
    c = fmin(max(abs(c), b), fmax(a, min(c, b)));
    half2 v = half2(a, b) * half2(c) + half2(b);
    c += dot(v, v) + sqrt(a) + exp2(b) + half(float(a) * float(b)) + half(any(v > half2(a)));
    y[i] = isnan(c) ? a : c;
"""


@pytest.mark.parametrize("denormals", ["flushed", "kept"])
def test_denormals_of_halves_are_kept_whatever_becomes_of_those_of_floats(denormals: str) -> None:
    made = program(HALVES, "half", f32_denormals=denormals).ptx.decode()
    of_halves = re.findall(r"^(?:@%p\d+ )?((?!cvt)[\w.]+\.f16(?:x2)?) ", made, re.M)
    assert {word.partition(".")[0] for word in of_halves} >= {"add", "mul", "fma", "setp", "neg", "abs"}
    assert not [word for word in of_halves if ".ftz" in word]
    assert ("sqrt.rn.ftz.f32" in made) == (denormals == "flushed")


def test_magnitudes_of_shorts_are_not_left_to_ptxas() -> None:
    ptx = program("y[0] = float(bfloat(x[0]));", "short").ptx.decode()
    assert "abs.s16" not in ptx
    assert "max.s16" in ptx


SUM = """\
\tshr.u32 \t%r2, %r1, 8;
\tand.b32 \t%r3, %r2, 16711935;
\tand.b32 \t%r4, %r1, 16711935;
\tadd.s32 \t%r5, %r3, %r4;
\tshr.u32 \t%r6, %r5, 16;
\tand.b32 \t%r7, %r5, 511;
\tadd.s32 \t%r8, %r6, %r7;
"""
JOINED = "\tor.b32 \t%r9, %r8, 1258291200;\n"
TURNED = SUM.replace("%r2, %r1, 8;\n\tand.b32 \t%r3, %r2", "%r2, %r1, 8;\n\tand.b32 \t%r4, %r2").replace(
    "%r4, %r1", "%r3, %r1"
)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (SUM, "\tdp4a.u32.u32 \t%r8, %r1, 16843009, 0;\n"),
        (SUM + JOINED, "\tdp4a.u32.u32 \t%r9, %r1, 16843009, 1258291200;\n"),
        (SUM + JOINED.replace("1258291200", "512"), "%r1, 16843009, 0;\n\tor.b32 \t%r9, %r8, 512;\n"),
        (TURNED, "\tdp4a.u32.u32 \t%r8, %r1, 16843009, 0;\n"),
        (SUM.replace("511", "65535"), "\tdp4a.u32.u32 \t%r8, %r1, 16843009, 0;\n"),
    ],
)
def test_a_sum_of_four_bytes_becomes_the_gpus_own(text: str, made: str) -> None:
    assert sums.summed(text).endswith(made)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%r1, 8;", "%r1, 16;"),
        ("%r2, 16711935", "%r2, 16711680"),
        ("%r1, 16711935", "%r0, 16711935"),
        ("%r5, %r3, %r4", "%r5, %r3, %r3"),
        ("%r5, 16;", "%r5, 8;"),
        ("%r5, 511", "%r5, 255"),
        ("%r5, 511", "%r4, 511"),
        ("%r8, %r6, %r7", "%r8, %r6, %r6"),
        ("%r8, %r6, %r7", "%r8, %r5, %r7"),
    ],
)
def test_what_is_no_sum_of_four_bytes_stays(old: str, new: str) -> None:
    assert SUM.count(old) == 1
    assert sums.summed(SUM.replace(old, new)) == SUM.replace(old, new)


def test_the_trellis_code_is_a_sum_of_four_bytes() -> None:
    header = metal_text("trellis/codebook")
    definition = Definition("probe", ("x",), ("y",), "y[0] = trellis_bits(trellis_sum(uint(x[0])));", header)
    text = generate(definition, (InputKind("float", False, False),), ("float",))
    ptx = compilation.build(
        text.name, translate(text, compilation.entry), "sm_90", 128, fidelity.current()
    ).ptx.decode()
    assert re.search(r"dp4a\.u32\.u32 %r\d+,%r\d+,16843009,1258291200;", ptx)


def test_programs_of_one_kernel_have_entries_of_their_own() -> None:
    one, other = program("y[0] = x[0];"), program("y[0] = x[1];")
    assert one.entry != other.entry
    assert one.entry.startswith("custom_kernel_probe_float_float_")
    for made in (one, other):
        assert f".entry {made.entry}(" in made.ptx.decode()


SAMPLE = list(rows())[::16]


@pytest.mark.parametrize("row", SAMPLE, ids=[row.name for row in SAMPLE])
def test_sound_kernels_of_the_corpus_become_ptx(row: Row) -> None:
    launch = row.twin.launch
    arrays = [*launch["inputs"], *launch["outputs"]]
    types = {
        array.name: host.type_name(getattr(mx, {"bool": "bool_"}.get(array.dtype, array.dtype))) for array in arrays
    }
    inputs = tuple(
        InputKind(types[array.name], array.shape == (), int(np.prod(array.shape)) < 8) for array in launch["inputs"]
    )
    definition = Definition(
        "row",
        tuple(array.name for array in launch["inputs"]),
        tuple(array.name for array in launch["outputs"]),
        row.twin.texts["source"],
        row.twin.texts["header"],
        launch["ensure_row_contiguous"],
        launch["atomic_outputs"],
    )
    values = tuple(
        host._template_value(name, getattr(mx, v) if isinstance(v, str) else v) for name, v in launch["template"]
    )
    text = generate(definition, inputs, tuple(types[array.name] for array in launch["outputs"]), values)
    made = compilation.build(text.name, translate(text, compilation.entry), "sm_80", 1024, fidelity.current())
    assert f".entry {made.entry}(" in made.ptx.decode()


def test_two_back_ends_in_one_place_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"mlx": "0.32.4", "mlx-cpu": "0.32.4", "mlx-cuda-13": "0.32.3"}
    monkeypatch.setattr(diagnosis, "_version", lambda name: versions.get(name, ""))
    found = diagnosis._back_end()
    assert "mlx-cpu and mlx-cuda-13 have the same files" in found.state
    assert found.mend == "pip uninstall -y mlx-cpu && pip install --force-reinstall --no-deps mlx-cuda-13==0.32.3"
    del versions["mlx-cpu"]
    assert diagnosis._back_end().mend == ""


@NO_GPU
def test_a_run_on_cuda_without_a_gpu_is_incomplete(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "mlx_assay.conformance.cli", "run", "--executor", "cuda", "apply_token_bitmask")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "NVIDIA GPU" in done.stdout + done.stderr


@NO_GPU
def test_cuda_metal_without_a_gpu_is_an_error() -> None:
    with pytest.raises(executors.ExecutorUnavailable, match="NVIDIA GPU"), impl.cuda_metal():
        pass


@NO_GPU
def test_no_gpu_is_an_error_and_no_fall_back() -> None:
    reason = executors.available("cuda")
    assert reason is not None
    assert "cuda13" in reason
    with pytest.raises(executors.ExecutorUnavailable, match="cuda"), executors.use("cuda"):
        pass
