"""The page on the cuda executor holds the table of the sanitizers' record."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_the_records() -> None:
    command = (sys.executable, "ci/sanitize/table.py", "ci/sanitize/record.json")
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made.count("\n") > 20
    assert made in (ROOT / "docs" / "cuda.md").read_text()
