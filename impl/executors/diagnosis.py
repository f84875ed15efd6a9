"""What an executor is, for reports, and whether it works here, for `doctor`."""

import importlib.metadata
import platform
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mlx.core as mx

from mlx_assay.impl.executors import cache, choice, crew, fidelity
from mlx_assay.impl.executors.cuda import device
from mlx_assay.impl.executors.cuda.kernel import settings
from mlx_assay.impl.executors.kernel import metal_kernel
from mlx_assay.impl.executors.toolchain import ToolchainError, baseline, machine, toolchain


class Finding(NamedTuple):
    """One part of the machinery: its state, and how to mend it ("" where there is nothing to mend)."""

    part: str
    state: str
    mend: str


_BACK_ENDS: dict[str, Callable[[], bool]] = {"Metal": mx.metal.is_available, "CUDA": device.present}
_WHEELS = ("mlx-cpu", "mlx-cuda-12", "mlx-cuda-13")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe(name: str) -> dict[str, str]:
    """What decides an executor's bits. UnknownExecutor: no such executor; ExecutorUnavailable: it cannot run here."""
    if (reason := choice.available(name)) is not None:
        raise choice.ExecutorUnavailable(f"executor {name!r} cannot run here: {reason}")
    if name == "metal":
        return {"executor": name, "mlx": importlib.metadata.version("mlx")} | {
            k: str(v) for k, v in mx.device_info().items()
        }
    if name == "cuda":
        return {
            "executor": name,
            "mlx": importlib.metadata.version("mlx"),
            "compiler": toolchain().source,
            "compiler_version": toolchain().version,
            **settings().described(),
            "f16_denormals": "kept",
            "transcendentals": "libdevice, f32",
            **device.described(),
        }
    compiler, switches = toolchain(), fidelity.current()
    mode = "MXCSR FTZ DAZ" if machine() == "x86_64" else "FPCR FZ"
    return {
        "executor": name,
        "mlx": importlib.metadata.version("mlx"),
        "compiler": compiler.source,
        "compiler_version": compiler.version,
        "baseline": baseline(),
        **switches.described(),
        "f16_denormals": "kept",
        "mode": mode if switches.flushes else "no denormal flag",
        "schedule": choice.current_schedule(),
        "threads": str(crew.threads()),
        "transcendentals": "C library, f32",
        "cpu": _processor(),
    }


def _canary(name: str) -> Finding:
    kernel = metal_kernel(
        "canary", ["x"], ["y"], "uint i = thread_position_in_grid.x; y[i] = x[i] * 2.0f + 1.0f;", "", True, False
    )
    x = mx.array([float(i) for i in range(64)])
    part = f"executor {name}"
    try:
        with choice.use(name):
            (y,) = kernel(
                inputs=[x], grid=(64, 1, 1), threadgroup=(32, 1, 1), output_shapes=[(64,)], output_dtypes=[mx.float32]
            )
            got = y.tolist()
    except Exception as error:
        return Finding(part, f"failed: {error}", "report this with the text above")
    if got != [2.0 * i + 1.0 for i in range(64)]:
        return Finding(part, f"wrong: x * 2 + 1 over 0..63 gave {got}", "report this with the text above")
    return Finding(part, "runs: x * 2 + 1 is right", "")


def _back_end() -> Finding:
    """Which of MLX's back ends runs, and whether wheels of several lie in one another's place."""
    active = next((name for name, there in _BACK_ENDS.items() if there()), "CPU")
    installed = [name for name in _WHEELS if _version(name)]
    state = f"{_version('mlx')}, {active}"
    if len(installed) < 2:
        return Finding("MLX's back end", state, "")
    kept = next((name for name in installed if "cuda" in name), installed[-1])
    others = [name for name in installed if name != kept]
    return Finding(
        "MLX's back end",
        f"{state}; {' and '.join(installed)} have the same files",
        f"pip uninstall -y {' '.join(others)} && pip install --force-reinstall --no-deps {kept}=={_version(kept)}",
    )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cache() -> Finding:
    if (problem := cache.problem()) is not None:
        return Finding("cache", problem.reason, problem.mend)
    folder = cache.shared()
    entries = folder.entries()
    return Finding("cache", f"{folder.path}, {len(entries)} entries, {sum(e.bytes for e in entries) >> 20} MiB", "")


def doctor() -> list[Finding]:
    """MLX's back end, the compiler, and a kernel compiled, run and checked on each executor that is available."""
    findings = [_back_end()]
    try:
        compiler = toolchain()
        findings.append(Finding("compiler", f"{compiler.version} at {compiler.source}", ""))
        findings.append(_cache())
    except ToolchainError as error:
        findings.append(Finding("compiler", "missing", str(error)))
    for name in choice.NAMES:
        reason = choice.available(name)
        findings.append(Finding(f"executor {name}", "unavailable", reason) if reason else _canary(name))
    return findings
