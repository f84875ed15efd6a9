"""The layout's promises: what is shipped, who imports whom, what importing costs, what the text speaks of."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIDES = ("impl", "oracles", "fixtures", "conformance")
ALLOWED = {
    "impl": ("mlx_assay.impl",),
    "oracles": ("mlx_assay.oracles", "mlx_assay.impl.executors"),
    "fixtures": ("mlx_assay.fixtures",),
    "conformance": tuple(f"mlx_assay.{side}" for side in SIDES),
}


def modules(side: str) -> Iterator[Path]:
    return (path for path in sorted((ROOT / side).rglob("*.py")) if "__pycache__" not in path.parts)


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports break test modules that are imported twice"
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def crossings(tree: ast.AST, side: str) -> list[str]:
    """Imports of this project that a side may not make; `from mlx_assay.x import y` counts by its longer name."""
    ours = [name for name in imported(tree) if name.startswith("mlx_assay.")]
    prefixes = ALLOWED[side]
    return [
        name
        for name in ours
        if not any(
            name == allowed or name.startswith(allowed + ".") or allowed.startswith(name + ".") for allowed in prefixes
        )
    ]


@pytest.mark.parametrize("side", SIDES)
def test_imports(side: str) -> None:
    assert {str(path): found for path in modules(side) if (found := crossings(ast.parse(path.read_text()), side))} == {}


@pytest.mark.parametrize(
    ("side", "text"),
    [
        ("oracles", "from mlx_assay.impl.kernels import softcap"),
        ("impl", "import mlx_assay.oracles.stock_mlx"),
        ("fixtures", "from mlx_assay.conformance import judge"),
        ("oracles", "from mlx_assay import fixtures"),
    ],
)
def test_the_import_rule_can_fail(side: str, text: str) -> None:
    assert crossings(ast.parse(text), side)


def test_packages_are_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT).as_posix() for side in SIDES for path in modules(side)}
    assert set(listed["package-dir"].values()) == folders
    assert set(listed["packages"]) == {"mlx_assay." + folder.replace("/", ".") for folder in folders}


@pytest.mark.parametrize("side", SIDES)
def test_modules_stay_small(side: str) -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules(side)}
    assert {path: length for path, length in lengths.items() if length > 300} == {}
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert not vague & {path.stem for path in modules(side)}


def test_the_plugin_imports_nothing_heavy() -> None:
    heavy = ("torch", "xgrammar", "mlx", "mlx_lm", "numpy", "hypothesis", "transformers", "rich")
    check = f"import sys, mlx_assay.conformance.plugin; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_listing_cases_imports_no_hypothesis() -> None:
    check = "import sys, mlx_assay.fixtures.kind as k; print(len(k.kinds()) > 100, 'hypothesis' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "True False"
