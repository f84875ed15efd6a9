"""compute-sanitizer over every kernel, which has to be clean, and over the planted faults: what it finds of them.

    python ci/sanitize OUT.json [--tools memcheck,racecheck,initcheck,synccheck] [--jobs 8]

Needs an NVIDIA GPU and compute-sanitizer (the CUDA toolkit's, or the wheel nvidia-cuda-sanitizer-api). Exit code 1:
a kernel that should be clean is not; 2: usage; 3: no GPU, or no compute-sanitizer. docs/cuda.md holds the table that
ci/sanitize/table.py makes of OUT.json.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import launches

from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

HERE = Path(__file__).resolve().parent

SIDES = ("built-in", "sound", "faulty")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
OPTIONS = {"memcheck": ["--destroy-on-device-error", "kernel"], "racecheck": ["--racecheck-report", "all"]}
"""One process runs many kernels, faulty ones too; of races the default report showed none here."""
LIMIT = 100_000
"""The most reports of one process."""
PATIENCE, START = 10, 60
"""Seconds in which a kernel has to end, and the process to begin with the first."""
NEVER = {"hang": "never ends"}
"""Files of the corpus whose faulty kernels no GPU should be given."""
FALSE = {
    (
        "sound",
        "race/atomic-load-and-plain-write",
        "racecheck",
    ): "a store that is relaxed and atomic, st.relaxed in PTX, is taken for a plain one",
}
"""Reports of what is no fault, with the reason."""
_REPORT = re.compile(r"^========= (?P<text>(?!    |COMPUTE|ERROR SUMMARY|RACECHECK SUMMARY|Target).+)$", re.M)
_KERNEL = re.compile(r"custom_kernel_(\w+?)_[0-9a-f]{12}\b")


def sanitizer() -> str:
    """compute-sanitizer's path; Refusal: there is none."""
    nvidia = find_spec("nvidia")
    roots = nvidia.submodule_search_locations or () if nvidia else ()
    wheels = [str(path) for root in roots for path in Path(root).glob("*/bin")]
    path = os.pathsep.join([*os.get_exec_path(), "/usr/local/cuda/bin", *wheels])
    found = shutil.which("compute-sanitizer", path=path)
    if found is None:
        raise Refusal(
            "Expected compute-sanitizer but it is not there: install the CUDA toolkit, or the wheel "
            "nvidia-cuda-sanitizer-api",
            EXIT_INCOMPLETE,
        )
    return found


def reports(log: str) -> Iterator[tuple[str, str]]:
    """Each report of a log: the names of the kernels in it, in the first's words, and its first line."""
    starts = [match.start() for match in _REPORT.finditer(log)]
    for start, end in zip(starts, [*starts[1:], len(log)], strict=False):
        part = log[start:end]
        kernels = _KERNEL.findall(part)
        yield (kernels[0] if kernels else "", part.partition("\n")[0].removeprefix("========= ").strip())


def watched(command: list[str], out: Path) -> tuple[str, bool]:
    """What a command prints, and whether it was ended because nothing more came."""
    with out.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.DEVNULL, env=os.environ | {"MLX_USE_CUDA_GRAPHS": "0"},
            start_new_session=True,
        )  # fmt: skip
        size, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            if out.stat().st_size != size:
                size, since = out.stat().st_size, time.monotonic()
            if time.monotonic() - since > (PATIENCE if size else START):
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return out.read_text(), True
    return out.read_text(), False


def batch(tool: str, side: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """What a tool says of each kernel; a process that ends before its time is followed by another for the rest."""
    found: dict[str, dict[str, Any]] = {}
    left = list(names)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            command = [sanitizer(), "--tool", tool, "--log-file", str(log), "--print-limit", str(LIMIT)]
            command += OPTIONS.get(tool, [])
            command += ["--target-processes", "all", sys.executable, str(HERE / "launches.py"), side, *left]
            out, hung = watched(command, Path(folder) / "out")
            text = log.read_text() if log.exists() else ""
        begun = re.findall(r"^BEGIN (\S+)$", out, re.M)
        if not begun:
            sys.exit(f"{tool} {side}: nothing ran: {out[-500:]}{text[-500:]}")
        raised = dict(re.findall(r"^RAISED (\S+) (.*)$", out, re.M))
        for name in begun:
            found[name] = {"raised": raised.get(name, ""), "reports": 0, "first": ""}
        if hung:
            found[begun[-1]]["raised"] = f"no end within {PATIENCE} s"
        for kernel, line in reports(text):
            name = _named(kernel, side, begun)
            told = found.setdefault(name, {"raised": "", "reports": 0, "first": ""})
            told["reports"] += 1
            told["first"] = told["first"] or line[:200]
        left = left[len(begun) :]
    return found


def _named(kernel: str, side: str, begun: list[str]) -> str:
    """The row of a kernel, by its name before its types; of built-in ones their own."""
    if side == "built-in":
        return kernel or "(no kernel of this project)"
    fitting = [name for name in begun if kernel.startswith(re.sub(r"\W", "_", name) + "_")]
    return max(fitting, key=len, default=kernel or "(no kernel of this project)")


def all_of(tools: list[str], side: str, names: list[str], jobs: int) -> dict[str, dict[str, Any]]:
    """By name, by tool, what was said."""
    share = -(-len(names) // max(1, jobs // len(tools)))
    parts = [(tool, names[k : k + share]) for tool in tools for k in range(0, len(names), share)]
    said: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for (tool, _), found in zip(parts, pool.map(lambda p: batch(p[0], side, p[1]), parts), strict=True):
            for name, what in found.items():
                before = said.setdefault(name, {}).setdefault(tool, {"raised": "", "reports": 0, "first": ""})
                before["reports"] += what["reports"]
                for key in ("raised", "first"):
                    before[key] = before[key] or what[key]
    return said


def kinds_of_faults() -> dict[str, dict[str, Any]]:
    """Of each faulty kernel its kinds and whether the checker of this project finds it, as its tests hold it to."""
    listed = tomllib.loads((HERE.parent / "selftest" / "checker" / "open.toml").read_text()).get("faulty", {})
    return {
        row.name: {
            "kinds": sorted({kind for mark in row.faulty.marks if mark.role == "fault" for kind in mark.kinds[:1]}),
            "checker": not row.unseen and row.name not in listed,
        }
        for row in launches.rows()
        if row.faulty
    }


def machine() -> dict[str, str]:
    """What the run was made on."""
    import mlx.core as mx

    from mlx_assay.impl.executors import describe

    asked = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    told = subprocess.run(asked, capture_output=True, text=True).stdout.strip() if shutil.which(asked[0]) else "?"
    version = subprocess.run((sanitizer(), "--version"), capture_output=True, text=True).stdout
    return {
        "gpu": told,
        "mlx": mx.__version__,
        "sanitizer": (re.findall(r"ersion (\S+)", version) or ["?"])[0],
        "compiler": describe("cuda")["compiler_version"],
    }


def some_of(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Reads names with commas between them."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        if wrong := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"expected some of {','.join(known)} but got {wrong[0]!r}")
        return names

    return read


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog="python ci/sanitize", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", metavar="OUT.json", type=Path, help="where what was found is written, side by side")
    tools = "what runs, with commas between (default: %(default)s)"
    parser.add_argument("--tools", default=",".join(TOOLS), type=some_of(TOOLS), help=tools)
    sides = "over which kernels: this project's, the corpus's sound ones, its faulty ones (default: %(default)s)"
    parser.add_argument("--sides", default=",".join(SIDES), type=some_of(SIDES), help=sides)
    parser.add_argument("--jobs", type=int, default=8, help="processes at a time (default: 8)")
    return parser.parse_args()


def main() -> None:
    """Runs everything; exit code 1 where what should be clean is not, 3 where nothing can run."""
    given = arguments()
    try:
        checked_executor("cuda")
        sanitizer()
    except Refusal as refusal:
        print(f"ci/sanitize: {refusal}", file=sys.stderr)
        sys.exit(refusal.code)
    tools, sides = given.tools, launches.sides()
    faulty = [name for name in sides["faulty"] if name.partition("/")[0] not in NEVER]
    document: dict[str, Any] = {"machine": machine(), "faults": kinds_of_faults()}
    asked = {"built-in": list(sides["built-in"]), "sound": list(sides["sound"]), "faulty": faulty}
    for side, names in asked.items():
        if side not in given.sides:
            continue
        document[side] = all_of(tools, side, names, given.jobs)
        document.setdefault("launched", {})[side] = len(names)
        given.out.write_text(json.dumps(document, indent=1))
    unclean = [
        f"{side} {name} {tool}: {what['first']}"
        for side in ("built-in", "sound")
        for name, tools_ in document.get(side, {}).items()
        for tool, what in tools_.items()
        if what["reports"] and not name.startswith("(") and (side, name, tool) not in FALSE
    ]
    print("\n".join(unclean) or "clean")
    sys.exit(1 if unclean else 0)


if __name__ == "__main__":
    main()
