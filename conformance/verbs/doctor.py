"""The verb `doctor`: each part that a run needs, its state, and the command that mends it.

Every part is looked at in a process of its own, since a broken library may end the process that imports it. This module
needs nothing but the standard library.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, requires, version

from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE

PROBE_SECONDS = 240
"""The first start of a compiler or of a large library on a cold disk takes its time."""
OLDEST_PYTHON = (3, 11)
INSTALL = f"{sys.executable} -m pip install"

MLX = """
import json, mlx.core as mx
total = (mx.arange(4) + 1).sum().item()
state = f"{mx.__version__}, {mx.default_device()}, metal {mx.metal.is_available()}"
print(json.dumps([["mlx back end", total == 10, state, ""]]))
"""
EXECUTORS = """
import json
from mlx_assay.impl import executors
spare = {f"executor {name}" for name in executors.NAMES if name != executors.current()}
spare |= set() if executors.current() == "host" else {"compiler", "cache"}
print(json.dumps([[part, not mend, state, mend, part not in spare] for part, state, mend in executors.doctor()]))
"""
ORACLE_NAMES = """
import json
from mlx_assay.oracles import registry
print(json.dumps([[name, True, "", ""] for name in registry.NAMES]))
"""
ORACLE = """
import json, sys
from mlx_assay.oracles import registry
name = sys.argv[1]
missing = registry.availability(name)
if missing is None:
    registry.load(name).self_test()
    owner = {"numpy_reference": "numpy", "stock_metal": "mlx"}.get(name, registry.load(name).REQUIRES[0])
    state = f"{owner} {registry.load(name).version()}, self-test passed"
else:
    state = missing
mend = registry.load(name).REQUIRES[1] if missing else ""
print(json.dumps([["oracle " + name.replace("_", "-"), missing is None, state, mend]]))
"""


@dataclass(frozen=True)
class Finding:
    """One part: its state in a few words and, where it is not as it must be, what mends it.

    A part that is not `needed` (an executor beside this machine's own) may be absent.
    """

    part: str
    sound: bool
    state: str
    mend: str = ""
    needed: bool = True

    @property
    def label(self) -> str:
        """ok, absent or BROKEN."""
        return "ok" if self.sound else "BROKEN" if self.needed else "absent"


def doctor(say: Callable[[str], object] = print) -> int:
    """Prints every finding; returns 0 if all parts that are needed are sound, else 3."""
    sound = True
    for finding in findings():
        sound &= finding.sound or not finding.needed
        say(f"{finding.label:8}{finding.part}: {finding.state}")
        if finding.mend:
            say(f"        mend: {finding.mend}")
    say("every part that a run needs is there and works" if sound else "some parts are missing or broken")
    return EXIT_CONFORMS if sound else EXIT_INCOMPLETE


def findings() -> Iterator[Finding]:
    """What is found, part by part."""
    yield python()
    yield from packages()
    (backend,) = probe("mlx back end", MLX, mend="")
    yield backend if backend.sound else replace(backend, mend=backend_mend(backend.state))
    yield graph_compiler()
    if not backend.sound:
        return
    yield from probe("executors", EXECUTORS, mend=f"{INSTALL} ziglang, or put clang 19 or newer on the PATH")
    names = list(probe("oracles", ORACLE_NAMES, mend=f"{INSTALL} 'mlx-assay[all]'"))
    if not all(name.sound for name in names):
        yield from names
        return
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda name: list(oracle(name.part)), names):
            yield from found


def backend_mend(said: str) -> str:
    """What brings MLX's back end to life, from what was said where it could not be loaded."""
    if sys.platform == "darwin":
        return f"{INSTALL} mlx"
    if "libcuda.so" in said:
        return (
            "install NVIDIA's driver, which MLX's CUDA back end needs; or take the CPU's: "
            f"{sys.executable} -m pip uninstall -y mlx-cuda-12 mlx-cuda-13 && {INSTALL} --force-reinstall 'mlx[cpu]'"
        )
    cuda = any(library in said for library in ("libnv", "libcu", "libnccl"))
    return f"{INSTALL} --force-reinstall 'mlx[cuda13]'" if cuda else f"{INSTALL} 'mlx[cpu]'"


def graph_compiler() -> Finding:
    """What MLX fuses compiled graphs with; a run does without, and then judges no fused kernel."""
    if sys.platform == "darwin":
        return Finding("graph compiler", True, "Metal's")
    found = shutil.which("g++")
    state = found or "no g++: compiled graphs run operation by operation"
    return Finding(
        "graph compiler", found is not None, state, "" if found else "install your system's g++", needed=False
    )


def python() -> Finding:
    """The interpreter."""
    release = ".".join(map(str, sys.version_info[:3]))
    sound = sys.version_info >= OLDEST_PYTHON
    return Finding("python", sound, f"{release} at {sys.executable}", "" if sound else "install Python 3.11 or newer")


def packages() -> Iterator[Finding]:
    """The distributions that this one requires without an extra."""
    try:
        required = [line for line in requires("mlx-assay") or [] if "extra ==" not in line]
        yield Finding("mlx-assay", True, version("mlx-assay"))
    except PackageNotFoundError:
        yield Finding("mlx-assay", False, "not installed", f"{INSTALL} mlx-assay")
        return
    for line in required:
        requirement, _, marker = line.partition(";")
        if "platform_system" in marker and not _here(marker):
            continue
        name = requirement.split("[")[0].split(">")[0].split("=")[0].strip()
        try:
            yield Finding(name, True, version(name))
        except PackageNotFoundError:
            yield Finding(name, False, "not installed", f"{INSTALL} '{requirement.strip()}'")


def _here(marker: str) -> bool:
    return {"darwin": "Darwin", "linux": "Linux"}.get(sys.platform, "") in marker


def oracle(name: str) -> Iterator[Finding]:
    """An oracle's library and its self-test."""
    return probe(
        f"oracle {name.replace('_', '-')}",
        ORACLE,
        name,
        mend="report the fault: an oracle that is wrong must not judge",
    )


def probe(part: str, code: str, *arguments: str, mend: str) -> Iterator[Finding]:
    """Runs a program that prints its findings as JSON; one that dies, hangs or raises is a finding too."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, timeout=PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        yield Finding(part, False, f"no answer in {PROBE_SECONDS} s", mend)
        return
    try:
        if done.returncode == 0:
            yield from (Finding(*found) for found in json.loads(done.stdout.splitlines()[-1]))
            return
    except (ValueError, IndexError, TypeError):
        pass
    yield Finding(part, False, _end(done), mend)


def _end(done: subprocess.CompletedProcess[str]) -> str:
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if done.returncode < 0:
        return f"killed by {signal.Signals(-done.returncode).name}"
    return said[-1] if said else f"ended with status {done.returncode} and said nothing that can be read"
