"""Scale: synthetic cases of a large suite are selected as those of a small one are, and in no squared time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic

STAGE = Path(__file__).parent
COUNT = 20 * synthetic.A_ROW
SCRIPT = f"""
import json, sys, time
sys.path.insert(0, {str(STAGE)!r})
import synthetic
synthetic.install({COUNT})
from mlx_assay.conformance.selection import select
cases = select([]).cases
ids = [case.id for case in cases]
chosen = ids[::40]
began = time.process_time()
one_by_one = [case.id for case in select(chosen[::-1]).cases]
exact = time.process_time() - began
globbed = [case.id for case in select(["*/bfloat16/*?vocab=1025"]).cases]
began = time.process_time()
select([])
print(json.dumps([len(ids), len(set(ids)), one_by_one == chosen, len(globbed), exact, time.process_time() - began]))
"""


def test_many_whole_ids_cost_little_more_than_the_selection_itself() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    cases, distinct, ordered, globbed, exact, plain = json.loads(done.stdout)
    assert (cases, distinct, ordered) == (COUNT, COUNT, True)
    assert globbed == COUNT // (len(synthetic.DTYPES) * len(synthetic.VOCABULARIES))
    # One look at every case for each of the 400 ids would take a hundred times as long as the selection.
    assert exact < 10 * plain + 1


def test_a_number_of_cases_that_the_grid_cannot_have_is_refused() -> None:
    with pytest.raises(ValueError, match=f"Expected a multiple of {synthetic.A_ROW} cases"):
        synthetic.kinds(COUNT + 1)


def test_a_staged_run_of_synthetic_cases_loses_none(tmp_path: Path) -> None:
    count = 2 * synthetic.A_ROW
    staged = {"PYTHONPATH": str(STAGE), "PYTEST_PLUGINS": "staged", "MLX_ASSAY_STAGE": json.dumps({"cases": count})}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, str(STAGE / "staged.py"), "run", "-n", "2", "--junit", "junit.xml"]
    done = subprocess.run(command, cwd=tmp_path, env=kept | staged, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "mlx-assay-report.json").read_bytes())
    assert report["totals"] == report["totals"] | {"declared": count, "executed": count, "same-bits": count}
    junit = (tmp_path / "junit.xml").read_text()
    assert junit.count("<testcase ") == count
    assert junit.count('<property name="mlx_assay" ') == count
