"""Kernels of the processes that a script starts are checked as its own are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

KERNEL = '''
import mlx.core as mx

def launch(index):
    kernel = mx.fast.metal_kernel(name="shift", input_names=["x"], output_names=["y"], source=f"""
      uint i = thread_position_in_grid.x;
      y[i] = x[{index}];
    """)
    (y,) = kernel(inputs=[mx.arange(64)], grid=(64, 1, 1), threadgroup=(64, 1, 1), output_shapes=[(64,)],
                  output_dtypes=[mx.int32])
    mx.eval(y)
    return y.tolist()
'''
LINE = KERNEL.splitlines().index("      y[i] = x[{index}];") + 1


class Done(NamedTuple):
    code: int
    report: Any
    err: str

    @property
    def kinds(self) -> set[str]:
        return {finding["kind"] for finding in self.report["findings"]}

    @property
    def problems(self) -> list[tuple[str, str]]:
        return [(problem["what"], problem["message"]) for problem in self.report["problems"]]


def checked(folder: Path, script: str, **variables: str) -> Done:
    (folder / "kernels.py").write_text(KERNEL)
    (folder / "script.py").write_text(textwrap.dedent(script))
    command = [
        sys.executable,
        "-m",
        "mlx_assay.conformance.cli",
        "check",
        "script.py",
        "--json",
        "--schedules=in-order",
    ]
    run = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=120)
    return Done(run.returncode, json.loads(run.stdout), run.stderr)


def test_a_subprocess_is_checked_in_whichever_folder_it_runs(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    script = """
        import subprocess, sys
        from kernels import launch
        launch("63 - i")
        code = "import sys; sys.path.insert(0, '..'); from kernels import launch; launch('i + 1')"
        subprocess.run([sys.executable, "-c", code], cwd="inside")
    """
    done = checked(tmp_path, script)
    assert done.code == 1, done.err
    assert "out-of-bounds" in done.kinds
    stray = next(finding for finding in done.report["findings"] if finding["kind"] == "out-of-bounds")
    place = stray["accesses"][0]["location"]
    assert (place["file"], place["line"]) == ("kernels.py", LINE)
    assert done.report["totals"]["launches"] == 2
    assert [kernel["launches"] for kernel in done.report["kernels"]] == [1, 1]
    assert done.problems == []


def test_workers_of_multiprocessing_are_checked(tmp_path: Path) -> None:
    script = """
        import multiprocessing
        from kernels import launch
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(launch, ["63 - i", "63 - i", "i"])[2] == list(range(64))
    """
    done = checked(tmp_path, script)
    assert (done.code, done.kinds, done.problems) == (0, set(), []), done.err
    assert [kernel["launches"] for kernel in done.report["kernels"]] == [2, 1]


def test_a_process_that_a_kernel_ends_is_told(tmp_path: Path) -> None:
    script = """
        import subprocess, sys
        code = '''
        from kernels import launch
        import os, threading, time
        threading.Timer(2, os.abort).start()
        launch("i]; while (x[i] < 64) { y[i] += 1; } y[i] = x[i")
        '''
        subprocess.run([sys.executable, "-c", code.replace("        ", "")])
    """
    done = checked(tmp_path, script)
    assert done.code == 3, done.err
    assert done.problems == [("subprocess", "a process that the script started ended while kernel 'shift' ran")]


def test_processes_without_kernels_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.theirs = 5")
    script = """
        import subprocess, sys
        from kernels import launch
        launch("i")
        code = "import sys; print(theirs, len([name for name in sys.modules if 'numpy' in name or 'mlx.' in name]))"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (told.stdout, told.stderr) == ("5 0\\n", ""), told
    """
    done = checked(tmp_path, script, PYTHONPATH=str(tmp_path / "own"))
    assert (done.code, done.problems) == (0, []), done.err


def test_what_no_process_sends_is_told(tmp_path: Path) -> None:
    script = """
        import os, pathlib
        from kernels import launch
        launch("i")
        folder = pathlib.Path(os.environ["PYTHONPATH"].partition(os.pathsep)[0])
        (folder / "told-me").write_text("{}")
    """
    done = checked(tmp_path, script)
    assert done.code == 3
    assert [what for what, _ in done.problems] == ["channel"]


@pytest.mark.parametrize("broken", ["not JSON", "{}"])
def test_a_process_that_cannot_be_watched_runs_and_is_told(tmp_path: Path, broken: str) -> None:
    script = f"""
        import os, pathlib, subprocess, sys
        from kernels import launch
        launch("i")
        folder = pathlib.Path(os.environ["PYTHONPATH"].partition(os.pathsep)[0])
        (folder / "settings.json").write_text({broken!r})
        code = "import mlx.core as mx; assert (mx.arange(3) + 1).tolist() == [1, 2, 3]"
        subprocess.run([sys.executable, "-c", code], check=True)
    """
    done = checked(tmp_path, script)
    assert done.code == 3, done.err
    assert [what for what, _ in done.problems] == ["subprocess"]
    assert "a process is not checked" in done.problems[0][1]
