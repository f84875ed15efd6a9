"""The fixture `host_metal` with the checker: findings fail a test, told as the verb tells them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

SOURCE = """
  threadgroup int held[64];
  uint i = thread_position_in_grid.x;
  held[i] = x[i];
  y[i] = held[63 - i];
"""
MODULE = f'''
import mlx.core as mx
import pytest

def launch(barrier):
    source = """{SOURCE}""".replace("x[i];", "x[i];" + barrier)
    kernel = mx.fast.metal_kernel(name="turned", input_names=["x"], output_names=["y"], source=source)
    (y,) = kernel(inputs=[mx.arange(64)], grid=(64, 1, 1), threadgroup=(64, 1, 1),
                  output_shapes=[(64,)], output_dtypes=[mx.int32])
    return y

SOUND = " threadgroup_barrier(mem_flags::mem_threadgroup);"
'''
TESTS = (
    MODULE
    + """
def test_unchecked(host_metal):
    launch("")

@pytest.mark.mlx_assay_check
def test_race(host_metal):
    launch("")

@pytest.mark.mlx_assay_check
def test_sound(host_metal):
    assert launch(SOUND).tolist() == list(range(63, -1, -1))

@pytest.mark.mlx_assay_check(ignore=["race", "depends-on-schedule", "depends-on-garbage", "uninitialised-read"])
def test_ignored(host_metal):
    launch("")

@pytest.mark.mlx_assay_check(kernels=["other*"])
def test_none_of_the_name(host_metal):
    launch("")

@pytest.mark.mlx_assay_check
def test_its_own_failure(host_metal):
    launch("")
    assert False, "own"

@pytest.mark.mlx_assay_check(ignore=["races"])
def test_wrong_word(host_metal):
    pass

@pytest.mark.mlx_assay_check
def test_fixture_forgotten():
    pass

@pytest.mark.mlx_assay_check
def test_fixture_asked_for_late(request):
    request.getfixturevalue("host_metal")
    launch("")

@pytest.mark.mlx_assay_check
@pytest.mark.usefixtures("host_metal")
def test_fixture_by_mark():
    launch(SOUND)

@pytest.mark.mlx_assay_check(enabled=False)
def test_left_out():
    pass

def test_block(host_metal):
    launch("")
    with host_metal.checked():
        launch(SOUND)
    with host_metal.checked():
        launch("")
    assert False, "not reached"
"""
)
ALL = (
    MODULE
    + """
def test_race(host_metal):
    launch("")

def test_idle(host_metal):
    pass

def test_without_the_fixture():
    pass

@pytest.mark.mlx_assay_check(enabled=False)
def test_left_out(host_metal):
    launch("")

def test_block_inside(host_metal):
    with host_metal.checked(ignore=["race", "uninitialised-read", "depends-on-schedule", "depends-on-garbage"]):
        launch("")
"""
)


def ran(folder: Path, text: str, *options: str) -> list[str]:
    (folder / "test_theirs.py").write_text(text)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-rA", "test_theirs.py", *options],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return (done.stdout + done.stderr).splitlines()


def outcomes(lines: list[str]) -> dict[str, str]:
    words = [line.split(" ") for line in lines if line.startswith(("PASSED ", "FAILED ", "ERROR "))]
    return {word[1].rpartition("::")[2]: word[0] for word in words}


def test_findings_fail_the_test_that_asked_for_the_checker(tmp_path: Path) -> None:
    lines = ran(tmp_path, TESTS)
    assert outcomes(lines) == {
        "test_unchecked": "PASSED",
        "test_race": "FAILED",
        "test_sound": "PASSED",
        "test_ignored": "PASSED",
        "test_none_of_the_name": "FAILED",
        "test_its_own_failure": "FAILED",
        "test_wrong_word": "ERROR",
        "test_fixture_forgotten": "FAILED",
        "test_fixture_asked_for_late": "FAILED",
        "test_fixture_by_mark": "PASSED",
        "test_left_out": "PASSED",
        "test_block": "FAILED",
    }
    text = "\n".join(lines)
    number = next(n for n, line in enumerate(TESTS.splitlines(), 1) if "y[i] = held[63 - i];" in line)
    assert text.count(f"test_theirs.py:{number}:10: error: ") >= 3
    assert text.count("[race]") == 4
    assert "to use the fixture host_metal but it does not: nothing was checked" in text
    assert "   12 |   y[i] = held[63 - i];\n      |          ^~~~~~~~~~~~" in text.replace(f"   {number} |", "   12 |")
    assert "no kernel is called other*; launched were turned" in text
    assert "AssertionError: own" in text
    assert "AssertionError: not reached" not in text
    assert "Expected a kind of finding" in text


def test_the_configuration_asks_for_all_tests(tmp_path: Path) -> None:
    assert outcomes(ran(tmp_path, ALL, "-o", "mlx_assay_check=true")) == {
        "test_race": "FAILED",
        "test_idle": "PASSED",
        "test_without_the_fixture": "PASSED",
        "test_left_out": "PASSED",
        "test_block_inside": "PASSED",
    }


def test_kinds_that_the_configuration_ignores(tmp_path: Path) -> None:
    ignore = "mlx_assay_check_ignore=race uninitialised-read depends-on-schedule depends-on-garbage"
    found = outcomes(ran(tmp_path, ALL, "-o", "mlx_assay_check=true", "-o", ignore, "-k", "race"))
    assert found == {"test_race": "PASSED"}


MISTAKEN = """
import mlx.core as mx
import pytest

early = mx.fast.metal_kernel(name="early", input_names=["x"], output_names=["y"], source="y[0] = x[0];")

@pytest.mark.mlx_assay_check(scheduls="pct")
def test_unknown_option(host_metal):
    pass

@pytest.mark.mlx_assay_check(schedules="in-order,pct:three")
def test_schedules_in_one_text(host_metal):
    pass

def test_made_early(host_metal):
    one = (1, 1, 1)
    early(inputs=[mx.ones(8)], grid=one, threadgroup=one, output_shapes=[(1,)], output_dtypes=[mx.float32])
"""


def test_mistakes_are_told_without_the_plugins_own_code(tmp_path: Path) -> None:
    text = "\n".join(ran(tmp_path, MISTAKEN))
    assert "mlx_assay_check: expected kernels, ignore, schedules, seed" in text
    assert "but got scheduls" in text
    assert "but got 'pct:three'" in text
    assert "fixture.py" not in text
    assert "request.py" not in text
    assert "This kernel was made before the fixture host_metal began" in text


def test_a_wrong_word_of_the_configuration_is_told_once(tmp_path: Path) -> None:
    lines = ran(tmp_path, ALL, "-o", "mlx_assay_check=true", "-o", "mlx_assay_check_ignore=races")
    assert [line.startswith("ERROR: mlx_assay_check_ignore: ") for line in lines if "races" in line] == [True]


# Modules of MLX's models that other tests have loaded remember a machine without Metal; here they play no part.
@pytest.mark.filterwarnings("ignore::mlx_assay.impl.executors.RememberedNoMetal")
def test_a_block_fails_where_it_ends(host_metal: Any) -> None:
    def launch() -> mx.array:
        kernel = mx.fast.metal_kernel(name="turned", input_names=["x"], output_names=["y"], source=SOURCE)
        (y,) = kernel(
            inputs=[mx.arange(64)],
            grid=(64, 1, 1),
            threadgroup=(64, 1, 1),
            output_shapes=[(64,)],
            output_dtypes=[mx.int32],
        )
        return y

    launch()
    number = Path(__file__).read_text().splitlines().index("  y[i] = held[63 - i];") + 1
    told = rf"(?s)error: .*\[race\].*test_check_fixture.py:{number}:10: "
    with pytest.raises(pytest.fail.Exception, match=told), host_metal.checked():
        launch()
    with pytest.raises(pytest.fail.Exception, match="nothing checked"), host_metal.checked():
        pass
