"""The compiler of the host executor: clang 19 or newer from the PATH, else the one inside the `ziglang` wheel."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OLDEST_CLANG = 19
RUNTIME = Path(__file__).parent / "runtime"

# FMA and F16C are in the baseline, so that the same bits come out of every machine that can run it.
X86_BASELINE = "x86-64-v3"
X86_FEATURES = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"})
ARM_BASELINE = "armv8.2-a+fp16"

# clang takes these for granted of OpenCL on x86_64 and not on arm64.
_LANGUAGE = (
    "cl_khr_fp16",
    "__opencl_c_generic_address_space",
    "__opencl_c_program_scope_global_variables",
    "__cl_clang_function_pointers",
    "__cl_clang_bitfields",
)
# A fiber's stack less what the runtime's own functions take of it.
MAX_FRAME_BYTES = 200 * 1024
KERNEL_FLAGS = (
    *("-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-cl-single-precision-constant", "-O2"),
    *("-Xclang", "-cl-ext=" + ",".join(f"+{feature}" for feature in _LANGUAGE)),
    *("-ffp-contract=on", "-fstack-clash-protection"),
    # A loop without end has to stay one, whatever C++ lets a compiler assume of it.
    *("-fPIC", "-fsigned-char", "-fvisibility=hidden", "-fno-math-errno", "-fno-finite-loops"),
    *("-Wno-everything", "-fdiagnostics-color=never", "-ferror-limit=5", "-fno-elide-type"),
    f"-Wframe-larger-than={MAX_FRAME_BYTES}",
    # Warnings that are errors by default, in Metal's compiler too.
    *("-Werror=return-mismatch", "-Werror=return-type", "-Werror=c++11-narrowing"),
)
# What the compiler may assume and fold of f32, as the launch will compute it.
DENORMAL_FLAGS = {
    "flushed": ("-Xclang", "-fdenormal-fp-math-f32=preserve-sign,preserve-sign"),
    "kept": ("-Xclang", "-fdenormal-fp-math-f32=ieee,ieee"),
}
RUNTIME_FLAGS = ("-std=c++20", "-O2", "-fPIC", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off")


@dataclass(frozen=True)
class Toolchain:
    """A compiler: `clang` and `link` are the beginnings of command lines."""

    clang: tuple[str, ...]
    link: tuple[str, ...]
    version: str
    source: str

    @property
    def target(self) -> tuple[str, ...]:
        return ("--target=" + target(), "-march=" + baseline())


class ToolchainError(RuntimeError):
    """No compiler, or a processor below the baseline."""


def machine() -> str:
    """`x86_64` or `arm64`."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "aarch64": "arm64"}.get(name, name)


def target() -> str:
    """The triple that objects are made for."""
    if sys.platform == "darwin":
        return f"{machine()}-apple-macos13"
    return f"{'aarch64' if machine() == 'arm64' else machine()}-unknown-linux-gnu"


def baseline() -> str:
    """The instruction set that objects may use."""
    return ARM_BASELINE if machine() == "arm64" else X86_BASELINE


@cache
def missing_features() -> tuple[str, ...]:
    """What this processor lacks of the baseline; empty where the operating system does not tell."""
    if machine() != "x86_64":
        return ()
    try:
        found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        return ()
    return tuple(sorted(X86_FEATURES - set(found[1].split()))) if found else ()


def _version(command: tuple[str, ...]) -> tuple[int, str] | None:
    try:
        done = subprocess.run((*command, "--version"), capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    first = done.stdout.partition("\n")[0]
    found = re.search(r"clang version (\d+)", first)
    return (int(found[1]), first.strip()) if found else None


def _on_path() -> Toolchain | None:
    names = ("clang", *(f"clang-{n}" for n in range(30, OLDEST_CLANG - 1, -1)))
    for name in names:
        path = shutil.which(name)
        version = _version((path,)) if path else None
        # Apple numbers its clang otherwise and may lack the OpenCL front end: the wheel's is known.
        if path and version and version[0] >= OLDEST_CLANG and "Apple" not in version[1]:
            link = (path, "-shared", *(("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()))
            return Toolchain((path,), link, version[1], path)
    return None


def _in_wheel() -> Toolchain | None:
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    zig = str(Path(next(iter(spec.submodule_search_locations))) / ("zig.exe" if os.name == "nt" else "zig"))
    version = _version((zig, "clang"))
    if version is None or version[0] < OLDEST_CLANG:
        return None
    link: tuple[str, ...]
    if sys.platform == "darwin":
        # zig's own linker spends a minute on its first use, and a Mac with its developer tools has another.
        cc = shutil.which("cc")
        link = (cc,) if cc else (zig, "cc")
        link += ("-shared", "-Wl,-undefined,dynamic_lookup")
    else:
        link = (zig, "ld.lld", "-shared")
    return Toolchain((zig, "clang"), link, f"{version[1]} (ziglang)", zig)


@cache
def toolchain() -> Toolchain:
    """The compiler to use. ToolchainError: there is none, or the processor is too old; the message says the mend."""
    if machine() not in {"x86_64", "arm64"}:
        raise ToolchainError(f"the host executor runs on x86_64 and arm64, and this processor is {machine()}")
    if lacking := missing_features():
        raise ToolchainError(
            f"the host executor compiles for {X86_BASELINE}, and this processor lacks {', '.join(lacking)}: "
            "use a machine with AVX2, FMA and F16C (2013 or later)"
        )
    found = _on_path() or _in_wheel()
    if found is None:
        raise ToolchainError(
            f"no clang {OLDEST_CLANG} or newer on the PATH and no ziglang wheel: pip install 'ziglang>=0.15'"
        )
    return found
