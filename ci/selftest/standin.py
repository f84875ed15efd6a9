"""Stand-ins for commands that a step calls: they write down how they were called and do what a test says."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from mlx_assay.conformance.cli import parser

STEPS = Path(__file__).parents[1] / "steps"
VERDICTS = {0: "conforms", 1: "differs", 2: "usage", 3: "incomplete", 134: "incomplete"}
"""What a step tells for each status of the command line; 134 is an abort."""

_UNIT, _RECORD = "\x1f", "\x1e"
_SCRIPT = """#!/bin/sh
{{ printf %s "${{0##*/}}"; for a in "$@"; do printf '\\037%s' "$a"; done; printf '\\036'; }} >>"$CALLS"
{body}
"""


@dataclass
class Stage:
    """A folder with stand-ins on the PATH, and the files that GitHub gives to a step."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("bin", "temp", "work"):
            (self.folder / name).mkdir()
        for name in ("calls", "output", "path", "summary"):
            (self.folder / name).touch()

    def put(self, name: str, body: str = "", at: Path | None = None) -> None:
        """A command that is written down, then runs `body`."""
        path = (at or self.folder / "bin") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_SCRIPT.format(body=body))
        path.chmod(0o755)

    def run(self, step: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a step in a folder that is not this project's, with stand-ins before the system's commands."""
        given = {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "HOME": str(self.folder),
            "CALLS": str(self.folder / "calls"),
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_PATH": str(self.folder / "path"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
        }
        return subprocess.run(
            [str(step)],
            cwd=self.folder / "work",
            env=given | self.variables | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def calls(self) -> list[list[str]]:
        """Each call of a stand-in, its name first."""
        told = (self.folder / "calls").read_text()
        return [record.split(_UNIT) for record in told.split(_RECORD) if record]

    def of(self, name: str) -> list[list[str]]:
        """The arguments of each call of one stand-in."""
        return [call[1:] for call in self.calls if call[0] == name]

    @property
    def outputs(self) -> dict[str, str]:
        """What the step told later steps."""
        lines = (self.folder / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def temp(self) -> Path:
        """The step's RUNNER_TEMP."""
        return self.folder / "temp"


def parsed(given: list[str]) -> dict[str, object]:
    """The command line as the real parser takes it; one that it refuses ends the test."""
    return vars(parser().parse_args(given))
