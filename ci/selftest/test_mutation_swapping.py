"""Faults that are put into functions that are there, and modules that a fault does not reach."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mlx_assay.conformance.mutation.judge.preloading import Modules
from mlx_assay.conformance.mutation.judge.swapping import Unswappable, swap, swaps

TEXT = """
from functools import cache

LIMIT = 3

@cache
def kept(x):
    return x + 1

class Held:
    bound = 2

    @property
    def size(self):
        return max(one + 1 for one in (1, 2))

    def outer(self, n):
        def inner(m):
            return m * n
        return inner(4)

pick = lambda x: x - 1
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    path = tmp_path / "swapped.py"
    path.write_text(TEXT)
    made = ModuleType("swapped")
    exec(compile(TEXT, str(path), "exec"), made.__dict__)
    monkeypatch.setitem(sys.modules, "swapped", made)
    made.path = str(path)  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("old", "new", "call", "want"),
    [
        ("x + 1", "x + 2", lambda m: m.kept(1), 3),
        ("one + 1", "one + 2", lambda m: m.Held().size, 4),
        ("m * n", "m - n", lambda m: m.Held().outer(3), 1),
        ("x - 1", "x + 1", lambda m: m.pick(1), 2),
        (
            "return x + 1",
            "if x:\n        return 7\n    return x + 1",
            lambda m: (m.kept(1), m.Held().outer(3)),
            (7, 12),
        ),
    ],
)
def test_a_function_that_is_there_does_what_the_changed_text_says(
    module: Any, old: str, new: str, call: Any, want: Any
) -> None:
    held = module.kept, module.Held, module.pick
    swap(TEXT, TEXT.replace(old, new), module.path)
    assert call(module) == want
    assert held == (module.kept, module.Held, module.pick)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("bound = 2", "bound = 3"),
        ("@cache\n", ""),
        ("def kept(x)", "def kept(x, y=1)"),
        ("def outer(self, n):", "def other(self, n):"),
    ],
)
def test_what_runs_when_a_module_is_imported_is_not_swapped(module: Any, old: str, new: str) -> None:
    with pytest.raises(Unswappable):
        swap(TEXT, TEXT.replace(old, new), module.path)
    assert (module.kept(1), module.Held.bound) == (2, 2)


def test_a_function_that_is_not_there_is_not_swapped(tmp_path: Path) -> None:
    assert len(swaps(TEXT, TEXT.replace("x + 1", "x + 2"), "nowhere.py")) == 1
    with pytest.raises(Unswappable, match="no function kept is there"):
        swap(TEXT, TEXT.replace("x + 1", "x + 2"), str(tmp_path / "nowhere.py"))


def test_what_imports_the_changed_module_is_not_apart(tmp_path: Path) -> None:
    texts = {
        "conformance/__init__.py": "",
        "conformance/changed.py": "",
        "conformance/near.py": "from mlx_assay.conformance import changed\n",
        "conformance/far.py": "if True:\n    import mlx_assay.conformance.near\n",
        "conformance/late.py": "def f():\n    import mlx_assay.conformance.changed\n",
        "conformance/apart.py": "import os\n",
        "conformance/unmet.py": "",
        "ci/selftest/beside.py": "from mlx_assay.conformance.late import f\n",
        "ci/selftest/test_a.py": "import beside\nfrom mlx_assay.conformance import apart, far\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    package = "mlx_assay.conformance"
    found = Modules(tmp_path).apart(["test_a"], f"{package}.changed")
    assert found == ["beside", package, f"{package}.apart", f"{package}.late"]
    everything = Modules(tmp_path).apart(["test_a"], "")
    assert set(everything) == {*found, *(f"{package}.{name}" for name in ("changed", "near", "far"))}
