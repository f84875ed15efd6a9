"""A small stand-in for GitHub's runner: expressions of the kinds that the workflows have, and an action's own steps."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from standin import Stage

ROOT = Path(__file__).parents[2]
PYTHON = f'case "$*" in "-m pip "*) exit 0 ;; *) exec "{sys.executable}" "$@" ;; esac'
ASSAY = f'exec "{sys.executable}" -m mlx_assay.conformance.cli "$@"'
_CONTEXT = re.compile(r"\b(inputs|matrix|steps|vars|needs|github|env|runner)((?:\.[A-Za-z_][\w-]*)+)")
Contexts = Mapping[str, Any]


def evaluated(text: str, contexts: Contexts) -> Any:
    """The value of one expression; a name that is not there is empty, as it is for GitHub."""

    def looked(path: str) -> Any:
        value: Any = contexts
        for part in path.split("."):
            value = value.get(part, "") if isinstance(value, Mapping) else ""
        return value

    inside = text.removeprefix("${{").removesuffix("}}").strip()
    inside = _CONTEXT.sub(r"looked('\1\2')", inside).replace("!cancelled()", "True").replace("always()", "True")
    inside = inside.replace("&&", "and").replace("||", "or")
    names = {"looked": looked, "format": str.format, "__builtins__": {}}
    return eval(inside, names)


def filled(values: Mapping[str, Any], contexts: Contexts) -> dict[str, str]:
    """Values with their expressions filled in, as strings, which is how an action gets them."""

    def told(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {
        name: re.sub(r"\$\{\{.*?\}\}", lambda found: told(evaluated(found[0], contexts)), told(value))
        for name, value in values.items()
    }


class Runner:
    """Runs an action's steps one by one; `kept` is what other actions were given in between."""

    def __init__(self, stage: Stage, assay: str = ASSAY, python: str = PYTHON) -> None:
        self.stage = stage
        self.kept: list[dict[str, str]] = []
        inner = stage.folder / "inner"
        stage.put("python", python, at=inner)
        stage.put("mlx-assay", assay, at=inner)
        stage.put("python3", f'for last; do :; done; mkdir -p "$last/bin"; cp "{inner}"/* "$last/bin"')

    def run(self, action: Path, **inputs: str) -> tuple[bool, dict[str, str]]:
        """Whether every step passed, and the action's outputs."""
        loaded = yaml.safe_load((action / "action.yml").read_text())
        given = {name: told.get("default", "") for name, told in loaded["inputs"].items()} | inputs
        assert set(given) == set(loaded["inputs"])
        steps: dict[str, dict[str, dict[str, str]]] = {}
        contexts = {"inputs": given, "steps": steps, "runner": {"temp": str(self.stage.temp)}}
        passed = True
        for step in loaded["runs"]["steps"]:
            condition = step.get("if", "${{ always() }}")
            unconditional = "cancelled()" in condition
            if not (passed or unconditional) or not evaluated(condition, contexts):
                continue
            if "uses" in step:
                self.kept.append({**filled(step.get("with", {}), contexts), "uses": step["uses"]})
                continue
            passed &= self._body(action, step, contexts)
        outputs = {name: told["value"] for name, told in loaded["outputs"].items()}
        return passed, filled(outputs, contexts)

    def _body(self, action: Path, step: dict[str, Any], contexts: Contexts) -> bool:
        (self.stage.folder / "output").write_text("")
        paths = "".join(f'PATH="{path}:$PATH"\n' for path in (self.stage.folder / "path").read_text().split())
        body = self.stage.folder / "body"
        body.write_text(f"#!/bin/bash\nset -eo pipefail\n{paths}{step['run']}\n")
        body.chmod(0o755)
        given = filled(step.get("env", {}), contexts)
        done = self.stage.run(body, GITHUB_ACTION_PATH=str(action), **given)
        print(step["name"], done.stdout[-2000:], done.stderr[-2000:])
        contexts["steps"][step.get("id", "")] = {"outputs": self.stage.outputs}
        return done.returncode == 0
