"""`mlx-assay check` on scripts that end in every way: what is told, and the exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from mlx_assay.conformance.checking import gathering, request
from mlx_assay.conformance.checking.report import CheckReport, decode
from mlx_assay.conformance.cli import main
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, EXIT_USAGE

KERNEL = """
import mlx.core as mx

def make(source, name="k"):
    return mx.fast.metal_kernel(name=name, input_names=["x"], output_names=["y"], source=source)

def launch(kernel, threads=64):
    return kernel(inputs=[mx.arange(64)], grid=(threads, 1, 1), threadgroup=(64, 1, 1),
                  output_shapes=[(64,)], output_dtypes=[mx.int32])[0]

sound = make("uint i = thread_position_in_grid.x; y[i] = x[i] + 1;", "sound")
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def report(self) -> CheckReport:
        return decode(self.out.encode())


Call = Callable[..., Done]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Runs the verb in a folder of its own; the script has a process of its own, as always."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> Done:
        code = main(["check", *words])
        return Done(code, *capfd.readouterr())

    return call


@pytest.fixture
def checked(call: Call, tmp_path: Path) -> Call:
    """Checks a script; JSON comes on standard output, text on standard error."""

    def checked(script: str, *options: str, arguments: tuple[str, ...] = ()) -> Done:
        (tmp_path / "script.py").write_text(KERNEL + textwrap.dedent(script))
        return call("script.py", "--json", *options, *(("--", *arguments) if arguments else ()))

    return checked


def line_of(folder: Path, mark: str) -> int:
    lines = (folder / "script.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if mark in line)


class Ending(NamedTuple):
    """A script's last lines, the exit code, and the problem that is told (its name, and a part of its message)."""

    script: str
    code: int
    what: str = ""
    message: str = ""


ENDINGS = {
    "sound": Ending("print(launch(sound).tolist()[:2])", EXIT_CONFORMS),
    "no kernel": Ending("print(mx.arange(3))", EXIT_INCOMPLETE, "nothing", "no kernel of mx.fast.metal_kernel"),
    "exception": Ending("launch(sound); raise KeyError('mark')", EXIT_INCOMPLETE, "exception", "KeyError: 'mark'"),
    "status 0": Ending("launch(sound); raise SystemExit", EXIT_CONFORMS),
    "status 4": Ending("launch(sound); raise SystemExit(4)", EXIT_INCOMPLETE, "exit", "status 4"),
    "at once": Ending(
        "import os; launch(sound); os._exit(0)", EXIT_INCOMPLETE, "exit", "ended its process at once, with status 0"
    ),
    "signal": Ending("import os; launch(sound); os.abort()", EXIT_INCOMPLETE, "crash", "killed by SIGABRT"),
    "syntax": Ending("launch(sound) = mark", EXIT_INCOMPLETE, "syntax", "SyntaxError"),
    "in a thread": Ending(
        "import threading; launch(sound)\nthreading.Thread(target=lambda: [][0]).start()  # mark",
        EXIT_INCOMPLETE,
        "exception",
        "IndexError",
    ),
    "in a forked process": Ending(
        # Forked before MLX has threads, behind which it would wait for ever.
        "import os, signal\nif not os.fork(): signal.alarm(9); launch(sound); os._exit(0)\nos.wait(); launch(sound)",
        EXIT_INCOMPLETE,
        "fork",
        "launched in a forked process",
    ),
    "in a process forked after a launch": Ending(
        "import os\nlaunch(sound)\nif os.fork(): os.wait()\nelse:\n  try: launch(sound)\n  finally: os._exit(0)",
        EXIT_INCOMPLETE,
        "fork",
        "launched in a forked process",
    ),
    "reads standard input": Ending("launch(sound); input()  # mark", EXIT_INCOMPLETE, "exception", "EOFError"),
    "floods the channel": Ending(
        "import os; launch(sound)\nfor n in range(3, 40):\n  try: os.write(n, b'x' * 2**20)\n  except OSError: pass",
        EXIT_INCOMPLETE,
        "channel",
        "a line of more than",
    ),
    "writes to the channel": Ending(
        "import os; launch(sound)\nfor n in range(3, 40):\n  try: os.write(n, b'{}\\n')\n  except OSError: pass",
        EXIT_INCOMPLETE,
        "channel",
        "never sends",
    ),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_an_ending_is_told_and_never_clean_by_accident(checked: Call, tmp_path: Path, ending: Ending) -> None:
    done = checked(ending.script)
    report = done.report
    assert done.code == ending.code == report.exit_code, done.err
    assert [problem.what for problem in report.problems] == ([ending.what] if ending.what else [])
    assert all(ending.message in problem.message for problem in report.problems)
    assert report.totals.launches == (ending.what not in ("nothing", "syntax"))
    if "mark" in ending.script:
        place = report.problems[0].location
        assert place is not None
        assert (place.file, place.line) == ("script.py", line_of(tmp_path, "mark"))


def test_what_a_script_prints_goes_to_standard_error(checked: Call) -> None:
    done = checked("import sys\nlaunch(sound)\nprint('said', sys.argv)", arguments=("--rows", "3"))
    assert "said ['script.py', '--rows', '3']" in done.err
    assert done.report.asked.arguments == ["--rows", "3"]
    assert "clean: no finding in 1 kernel, 1 launch, 4 schedules" in done.err


def test_a_script_that_takes_too_long_is_ended_and_says_where_it_was(checked: Call, tmp_path: Path) -> None:
    begin = time.monotonic()
    done = checked("import time\nlaunch(sound)\ntime.sleep(300)", "--limit", "3")
    assert time.monotonic() - begin < 60
    assert done.code == EXIT_INCOMPLETE
    assert "took longer than 3 s" in done.report.problems[0].message
    assert f'script.py", line {line_of(tmp_path, "sleep")} in <module>' in done.err


def test_what_outlives_the_last_line_is_watched(checked: Call) -> None:
    done = checked(
        """
        import atexit, threading, time
        atexit.register(lambda: launch(sound))
        def late():
            time.sleep(0.2)
            launch(sound)
        threading.Thread(target=late).start()
        """,
    )
    assert done.code == EXIT_CONFORMS, done.err
    assert done.report.totals.launches == 2


FATAL = '''
launch(make("threadgroup int t[64]; uint i = thread_position_in_grid.x; t[i] = i; y[i] = t[63 - i];", "racy"))
endless = make("""
  int n = x[0] + 1;
  while (n != 0) n = n * 3 | 1;
  y[0] = n;
""", "endless")
launch(endless, 1)
deep = mx.fast.metal_kernel(
    name="deep", input_names=["x"], output_names=["y"], source="y[0] = depth(x[0] + 1);",
    header="int depth(int n) { volatile int a[64]; a[n & 63] = n; return n ? depth(n + 1) + a[n & 31] : 0; }",
)
launch(deep, 1)
launch(make("uint i = thread_position_in_grid.x; y[i] = x[i + 1];", "late"))
print("reached the end")
'''


def test_kernels_that_hang_or_crash_are_findings_and_the_next_ones_run(checked: Call, tmp_path: Path) -> None:
    done = checked(FATAL, "--launch-limit", "1", "--schedules", "in-order")
    kernels = done.report.kernels
    kinds = {(kernels[finding.kernel].name, finding.kind) for finding in done.report.findings}
    assert {("racy", "race"), ("endless", "hang"), ("deep", "crash"), ("late", "out-of-bounds")} <= kinds
    assert (done.code, done.report.complete, done.report.problems) == (EXIT_DIFFERS, True, [])
    hang = next(finding for finding in done.report.findings if finding.kind == "hang")
    assert hang.location is not None
    assert (hang.location.file, hang.location.line) == ("script.py", line_of(tmp_path, "while (n != 0)"))
    crash = next(finding for finding in done.report.findings if finding.kind == "crash")
    assert "SIGSEGV" in crash.message or "SIGBUS" in crash.message
    assert done.err.count("reached the end") == 1
    assert "the script runs again without kernel deep" in done.err


def test_what_earlier_schedules_found_in_a_kernel_that_crashes_is_told(
    checked: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLX_ASSAY_THREADS", "1")
    done = checked(
        '''
        deep = mx.fast.metal_kernel(
            name="deep", input_names=["x"], output_names=["y"],
            header="int depth(int n) { volatile int a[64]; a[n & 63] = n; return n ? depth(n + 1) + a[n & 31] : 0; }",
            source="""
              threadgroup int t[64];
              threadgroup atomic_uint n;
              uint i = thread_position_in_grid.x;
              if (i == 0) atomic_store_explicit(&n, 0u, memory_order_relaxed);
              threadgroup_barrier(mem_flags::mem_threadgroup);
              t[i] = i;
              y[i] = t[63 - i];  // mark
              uint before = atomic_fetch_add_explicit(&n, 1u, memory_order_relaxed);
              if (i == 0 && before == 0) y[i] = depth(1);
            """)
        launch(deep)
        launch(sound)
        '''
    )
    found = {finding.kind: finding for finding in done.report.findings}
    assert {"race", "crash"} <= set(found)
    assert found["race"].schedule == "in-order"
    assert line_of(tmp_path, "// mark") in {access.location.line for access in found["race"].accesses}
    assert (done.code, done.report.complete) == (EXIT_DIFFERS, True)


def test_a_launch_that_its_own_deadline_cannot_end_is_ended(
    checked: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "GRACE_SECONDS", 0.5)
    done = checked(
        """
        import time
        from mlx_assay.impl.executors import checker
        checked = checker.checked
        checker.checked = lambda **options: time.sleep(300)
        launch(sound)
        checker.checked = checked
        launch(make("uint i = thread_position_in_grid.x; y[i] = x[i];", "next"))
        """,
        *("--launch-limit", "1", "--schedules", "in-order"),
    )
    assert [finding.kind for finding in done.report.findings] == ["hang"]
    assert done.report.findings[0].launch is not None
    assert done.report.findings[0].launch.line == line_of(tmp_path, "return kernel(inputs")
    assert f'script.py", line {line_of(tmp_path, "time.sleep")}' in done.err
    assert (done.code, done.report.complete, done.report.totals.launches) == (EXIT_DIFFERS, True, 2)


def test_a_fault_of_the_checker_is_not_the_kernels(checked: Call, tmp_path: Path) -> None:
    done = checked(
        """
        import contextlib
        from mlx_assay.impl.executors import checker
        @contextlib.contextmanager
        def broken(**options):
            raise KeyError("a register")
            yield []
        checker.checked = broken
        print(launch(sound).tolist()[:2])
        """
    )
    (problem,) = done.report.problems
    assert (done.code, problem.what) == (EXIT_INCOMPLETE, "checker")
    assert problem.message == "the checker failed on kernel 'sound', which ran without it: KeyError: 'a register'"
    assert problem.location is not None
    assert problem.location.line == line_of(tmp_path, "return kernel(inputs")
    assert "[1, 2]" in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_tells_what_was_found(tmp_path: Path, number: signal.Signals) -> None:
    script = "launch(make('uint i = thread_position_in_grid.x; y[i] = x[i + 1];'))\nprint('found', flush=True)\n"
    (tmp_path / "script.py").write_text(
        f"{KERNEL}{script}import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(300)"
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "mlx_assay.conformance.cli", "check", "script.py", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert run.stdout is not None
    assert run.stderr is not None
    try:
        assert run.stderr.readline() == "found\n"
        child = int(run.stderr.readline())
        run.send_signal(number)
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    report = decode(out.encode())
    assert (run.returncode, [problem.what for problem in report.problems]) == (EXIT_DIFFERS, ["interrupted"])
    assert "out-of-bounds" in {finding.kind for finding in report.findings}
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_what_was_told_before_an_interruption_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = "launch(make('uint i = thread_position_in_grid.x; y[i] = x[i + 1];'))\nopen('found', 'w').close()\n"
    (tmp_path / "script.py").write_text(f"{KERNEL}{script}import time\ntime.sleep(300)")
    asked = 0

    def interrupted() -> bool:
        nonlocal asked
        asked += 1
        while not (tmp_path / "found").exists():
            time.sleep(0.01)
        # By now all is told, and the first answer let it be read: several lines wait behind the one that was heard.
        return asked > 1

    report = gathering.gathered(request.asked("script.py"), interrupted=interrupted)
    assert [problem.what for problem in report.problems] == ["interrupted"]
    assert "out-of-bounds" in {finding.kind for finding in report.findings}
    assert (asked, report.exit_code) == (2, EXIT_DIFFERS)


def test_a_kernel_that_does_not_compile_is_a_finding_at_its_line(checked: Call, tmp_path: Path) -> None:
    done = checked(
        '''
        wrong = make("""
          uint i = thread_position_in_grid.x;
          y[i] = unknown_name(x[i]);
        """)
        try:
            launch(wrong)
        except RuntimeError:
            print(launch(sound).shape)
        ''',
    )
    (finding,) = done.report.findings
    assert done.code == EXIT_DIFFERS
    assert (finding.kind, finding.severity) == ("compile-error", "error")
    assert "unknown_name" in finding.message
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("script.py", line_of(tmp_path, "unknown_name"))
    assert finding.launch is not None
    assert finding.launch.line == line_of(tmp_path, "return kernel(inputs")
    assert done.report.complete


def test_a_traceback_ends_at_the_scripts_own_line(checked: Call) -> None:
    done = checked("launch(make('y[0] = unknown_name;'))")
    assert "script.py" in done.err
    assert "unknown_name" in done.err
    assert not [name for name in ("watch.py", "kernel.py", "host.py", "observation.py") if name in done.err]


def test_kernels_that_are_not_asked_for_run_unchecked(checked: Call) -> None:
    lone = "uint i = thread_position_in_grid.x; if (i % 2) y[i] = simd_sum(x[0]);\\n y[i] = simd_max(i);"
    script = f"other = make('{lone}', 'other')\nlaunch(other); launch(sound)"
    done = checked(script, "--kernel", "so*")
    assert [(kernel.name, kernel.checked) for kernel in done.report.kernels] == [("other", False), ("sound", True)]
    assert (done.code, done.report.totals.launches) == (EXIT_CONFORMS, 1)
    assert "DivergenceWarning" not in done.err
    none = checked(script, "--kernel", "so")
    assert none.code == EXIT_INCOMPLETE
    assert "no kernel is called so; launched were other, sound" in none.report.problems[0].message


def test_a_function_of_a_module_is_called(call: Call, tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "smoke.py").write_text(
        f"{KERNEL}\ndef run(): launch(sound)\ndef needs(rows): launch(sound)\n"
    )
    done = call("kernels.smoke:run")
    assert done.code == EXIT_CONFORMS, done.err
    assert done.out.startswith("clean: no finding in 1 kernel, 1 launch")
    needs = call("kernels.smoke:needs")
    assert (needs.code, needs.out) == (EXIT_USAGE, "")
    assert "lacks some (missing a required argument: 'rows')" in needs.err


REFUSALS = {
    "no such file": (["missing.py"], "no such file"),
    "a folder": (["."], "but got the folder"),
    "a path and a function": (["a/b.py:f"], "name the module with dots"),
    "no target": ([], "but got none"),
    "not in UTF-8": (["script.py", "--", "\udcff"], "Expected text in UTF-8"),
    "an unknown kind": (["script.py", "--ignore", "races"], "one of race, "),
    "an unknown schedule": (["script.py", "--schedules", "in-order,random"], "but got 'random'"),
    "both to one place": (["script.py", "--json", "--sarif"], "Expected two places"),
    "over the script": (["script.py", "--json", "script.py"], "which is a program"),
    "over another program": (["--sarif", "other.py", "script.py"], "which is a program"),
    "in no folder": (["script.py", "--json=none/x.json"], "folder that can be written"),
}


@pytest.mark.parametrize(("words", "told"), REFUSALS.values(), ids=REFUSALS)
def test_a_wrong_request_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("raise SystemExit('must not run')")
    assert main(["check", *words]) == EXIT_USAGE
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("target", ["no_such_module:f", "json:no_such_function", "json:__name__"])
def test_a_function_that_is_not_there_is_refused(call: Call, target: str) -> None:
    done = call(target)
    assert (done.code, done.out) == (EXIT_USAGE, "")
    assert done.err.startswith("mlx-assay: Expected a ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNEL + "launch(sound)")
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "check", "script.py"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == EXIT_INCOMPLETE
    assert "mlx-assay: standard output cannot be written: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("script.py >&-", EXIT_CONFORMS, ""),
        ("script.py <&- >&- 2>&-", EXIT_CONFORMS, ""),
        ("script.py --json >&-", EXIT_USAGE, "mlx-assay: Expected standard output to be open"),
    ],
    ids=["output", "all three", "output that is asked for"],
)
def test_closed_streams(tmp_path: Path, command: str, code: int, told: str) -> None:
    (tmp_path / "script.py").write_text(KERNEL + "launch(sound)")
    line = f"{sys.executable} -m mlx_assay.conformance.cli check {command}"
    done = subprocess.run(line, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr[: len(told) or None]) == (code, told)


def test_standard_output_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNEL + "launch(sound)")
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "check", "script.py", "--json=/dev/stdout"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60)
    assert decode(done.stdout).verdict == "clean"
    assert done.stderr.startswith(b"clean")


def test_files_are_written_beside_the_text(call: Call, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNEL + "launch(sound)")
    done = call("--json", "found.json", "--sarif", "found.sarif", "script.py")
    assert done.code == EXIT_CONFORMS, done.err
    assert done.out.startswith("clean")
    assert decode((tmp_path / "found.json").read_bytes()).verdict == "clean"
    assert json.loads((tmp_path / "found.sarif").read_text())["version"] == "2.1.0"
