"""The executors' door: choosing one, its errors, traces, reports, and a cache that tells kernels apart."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl import executors
from mlx_assay.impl.executors import metal_kernel, objects, toolchain
from mlx_assay.impl.executors.cache import CACHE_VARIABLE
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.host import HostKernel
from mlx_assay.impl.executors.signature import Definition
from mlx_assay.impl.executors.translation import translate

NO_METAL = pytest.mark.skipif(mx.metal.is_available(), reason="asks what happens where there is no Metal")


def probe(expression: str, name: str = "probe") -> Any:
    return metal_kernel(name, ["a"], ["out"], f"uint i = thread_position_in_grid.x; out[i] = {expression};")


def call(kernel: Any, x: mx.array, **changes: Any) -> Any:
    arguments = {
        "inputs": [x],
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
        "grid": (x.size, 1, 1),
        "threadgroup": (32, 1, 1),
    }
    with executors.use("host"):
        return kernel(**{**arguments, **changes})[0]


def test_names_and_the_current_executor() -> None:
    assert executors.NAMES == ("metal", "cuda", "host")
    assert executors.current() == ("metal" if mx.metal.is_available() else "cuda" if mx.cuda.is_available() else "host")
    with executors.use("host"):
        assert executors.current() == "host"
    assert executors.available("host") is None


def test_an_unknown_executor() -> None:
    for ask in (executors.available, executors.describe):
        with pytest.raises(executors.UnknownExecutor, match="'hsot': expected one of metal, cuda, host"):
            ask("hsot")
    with pytest.raises(executors.UnknownExecutor), executors.use("hsot"):
        pass


@NO_METAL
def test_no_metal_is_an_error_and_no_fall_back() -> None:
    assert "host" in (executors.available("metal") or "")
    with pytest.raises(executors.ExecutorUnavailable, match="'metal' cannot run here"), executors.use("metal"):
        pass
    with pytest.raises(executors.ExecutorUnavailable):
        executors.describe("metal")


def test_the_choice_is_the_contexts_own() -> None:
    seen: list[str] = []
    with executors.use("host"):
        thread = threading.Thread(target=lambda: seen.append(executors.current()))
        thread.start()
        thread.join()
    assert seen == [executors.current()]


def test_a_report_says_what_decides_the_bits() -> None:
    said = executors.describe("host")
    assert said["contraction"] == "on"
    assert said["f32_denormals"] == "flushed"
    assert "clang" in said["compiler_version"]
    assert all(isinstance(v, str) and v for v in said.values())


def test_the_doctor_runs_a_canary() -> None:
    findings = {f.part: f for f in executors.doctor()}
    assert findings["executor host"].state.startswith("runs")
    assert findings["executor host"].mend == ""
    if not mx.metal.is_available():
        assert findings["executor metal"].mend


def test_the_doctor_says_how_to_get_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise toolchain.ToolchainError("no clang: pip install 'ziglang>=0.15'")

    monkeypatch.setattr("mlx_assay.impl.executors.choice.toolchain", none)
    monkeypatch.setattr("mlx_assay.impl.executors.diagnosis.toolchain", none)
    findings = {f.part: f for f in executors.doctor()}
    assert "pip install" in findings["compiler"].mend
    assert findings["executor host"].state == "unavailable"
    with pytest.raises(executors.ExecutorUnavailable, match="pip install"), executors.use("host"):
        pass


@pytest.fixture
def forgetful() -> Iterator[None]:
    """The toolchain is looked for anew, before and after."""
    toolchain.toolchain.cache_clear()
    yield
    toolchain.toolchain.cache_clear()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(("name", "value"), [("missing_features", ("f16c", "fma")), ("machine", "riscv64")])
def test_a_processor_below_the_baseline_is_named(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, name, lambda: value)
    reason = executors.available("host")
    assert reason is not None
    assert ("f16c, fma" in reason and "AVX2" in reason) or "riscv64" in reason


@pytest.mark.parametrize(("system", "processor"), [("linux", "aarch64"), ("darwin", "arm64"), ("linux", "x86_64")])
def test_other_machines_objects_can_be_made(
    system: str, processor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled, not run: the language's options and the scheduler's assembly differ by processor and system."""
    source = (
        "uint i = thread_position_in_grid.x; threadgroup T s[64]; s[i] = a[i]; out[i] = simd_sum(s[i] * T(2) + s[i]);"
    )
    definition = Definition("other", ("a",), ("out",), source)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    compiler = toolchain.toolchain()
    for dtype in (mx.float16, mx.bfloat16):
        text = translate(HostKernel(definition).text([mx.zeros((64,)).astype(dtype)], [dtype], [("T", dtype)]))
        kernel = tmp_path / f"{dtype}.clcpp"
        kernel.write_text(text)
        for switches in (Fidelity(), Fidelity(contraction="off", f32_denormals="kept")):
            objects._compile_kernel(kernel, tmp_path / "kernel.o", switches)
    magic = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe"}[system]
    assert (tmp_path / "kernel.o").read_bytes().startswith(magic)
    for name in objects.RUNTIME_SOURCES:
        objects._compile_runtime(compiler, toolchain.RUNTIME / name, tmp_path / "runtime.o")
        assert (tmp_path / "runtime.o").read_bytes().startswith(magic)


@pytest.mark.usefixtures("forgetful")
def test_no_compiler_is_named_with_its_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_on_path", lambda: None)
    monkeypatch.setattr(toolchain, "_in_wheel", lambda: None)
    assert executors.available("host") == (
        "no clang 19 or newer on the PATH and no ziglang wheel: pip install 'ziglang>=0.15'"
    )


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"inputs": []}, ValueError, "Expected `inputs` to have size 1 but got size 0"),
        ({"output_shapes": []}, ValueError, "`output_shapes`"),
        ({"output_dtypes": []}, ValueError, "`output_dtypes`"),
        ({"template": [("T", 1.5)]}, ValueError, "Invalid template argument"),
        ({"grid": (1, 1)}, TypeError, "`grid`"),
        ({"nonsense": 1}, TypeError, "nonsense"),
    ],
)
def test_wrong_arguments(changes: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(probe("a[i]"), mx.zeros((64,)), **changes)


def test_wrong_definitions() -> None:
    with pytest.raises(ValueError, match="at least one output"):
        metal_kernel("k", ["a"], [], "")
    with pytest.raises(ValueError, match="Unknown compile option `x`"):
        metal_kernel("k", ["a"], ["b"], "", compile_options={"x": 1})
    with pytest.raises(ValueError, match="math_mode"):
        metal_kernel("k", ["a"], ["b"], "", compile_options={"math_mode": "wild"})


def test_verbose_prints_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    call(probe("a[i]"), mx.zeros((64,)), verbose=True)
    out = capsys.readouterr().out
    assert out.startswith("Generated source code for `probe`:\n```\n[[kernel]] void custom_kernel_probe_float_float(\n")


def test_python_numbers_are_inputs() -> None:
    assert call(probe("a + 1.0f"), mx.zeros((32,)), inputs=[2.5]).tolist() == [3.5] * 32


@pytest.mark.parametrize("transformation", [mx.compile, mx.vmap])
def test_a_trace_is_refused(transformation: Any) -> None:
    seen: list[bool] = []

    def traced(x: mx.array) -> mx.array:
        seen.append(executors.tracing(x))
        return call(probe("a[i]"), x)  # type: ignore[no-any-return]

    with pytest.raises(RuntimeError, match=r"'probe'.*trace on the executor 'host'.*mx\.disable_compile"):
        transformation(traced)(mx.zeros((4, 8)))
    assert seen == [True]
    assert executors.tracing(mx.zeros((3,))) is False


def test_shapeless_traces_are_seen() -> None:
    seen: list[bool] = []

    def traced(x: mx.array) -> mx.array:
        seen.append(executors.shapeless_tracing())
        return x * 2

    traced(mx.zeros((3,)))
    mx.compile(traced)(mx.zeros((3,)))
    mx.compile(traced, shapeless=True)(mx.zeros((4,)))
    mx.compile(lambda x: mx.compile(traced)(x), shapeless=True)(mx.zeros((5,)))
    assert seen == [False, False, True, True]


def test_kernels_of_one_name_are_told_apart() -> None:
    x = mx.arange(64).astype(mx.float32)
    twice, plus = call(probe("a[i] * 2"), x), call(probe("a[i] + 100"), x)
    mx.eval(twice, plus)
    assert twice.tolist() == [2 * v for v in range(64)]
    assert plus.tolist() == [v + 100 for v in range(64)]
    assert call(probe("a[i] * 2"), x).tolist() == twice.tolist()


def test_lazy_and_eager_agree() -> None:
    x = mx.arange(64).astype(mx.float32)
    for _ in range(10):
        lazy = call(probe("a[i] * 2"), call(probe("a[i] + 1"), x * 3) - 5)
        assert lazy.tolist() == [2 * (3 * v + 1 - 5) for v in range(64)]


def test_a_warm_cache_on_disk_tells_kernels_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    script = (
        "import sys, mlx.core as mx\n"
        "from mlx_assay.impl.executors import metal_kernel, use\n"
        "k = metal_kernel('probe', ['a'], ['out'], 'out[thread_position_in_grid.x] = ' + sys.argv[1] + ';')\n"
        "with use('host'):\n"
        "    print(k(inputs=[mx.ones((8,))], output_shapes=[(8,)], output_dtypes=[mx.float32], grid=(8, 1, 1),\n"
        "            threadgroup=(8, 1, 1))[0].tolist()[0])\n"
    )

    def run(expression: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, expression], capture_output=True, text=True, check=True, timeout=120
        ).stdout.strip()

    assert [run("a[0] * 2"), run("a[0] + 100"), run("a[0] * 2")] == ["2.0", "101.0", "2.0"]
    parts = len(objects.RUNTIME_SOURCES)
    assert len(list((tmp_path / "compiled").iterdir())) in (parts + 5, parts + 6), (
        "the scheduler and its parts, two kernels, the prelude twice, perhaps a lock"
    )


def test_sixteen_threads_compile_sixteen_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    x = mx.arange(32).astype(mx.float32)
    mx.eval(x)
    results: dict[int, list[float]] = {}

    def work(k: int) -> None:
        kernel = probe(f"simd_sum(a[i]) + {k}")
        for _ in range(3):
            results[k] = call(kernel, x).tolist()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: [496.0 + k] * 32 for k in range(16)}
