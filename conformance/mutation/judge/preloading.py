"""Which modules a fault cannot reach when they are imported, so that one process imports them for all forks."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

PACKAGE = "mlx_assay"


class Modules:
    """The modules of a copy of the repository, and those of its self-tests, by name; and what each imports as it is."""

    def __init__(self, root: Path) -> None:
        self._folders = {PACKAGE: root, "": root / "ci" / "selftest"}
        self._imports: dict[str, frozenset[str]] = {}

    def path(self, name: str) -> Path | None:
        """The file of a module, or None for one that is not of this repository."""
        first, _, rest = name.partition(".")
        folder = self._folders[PACKAGE if first == PACKAGE else ""]
        inner = rest if first == PACKAGE else name
        base = folder.joinpath(*inner.split(".")) if inner else folder
        return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)

    def imports(self, name: str) -> frozenset[str]:
        """The modules of this repository that are imported when this one is, directly."""
        if name not in self._imports:
            path = self.path(name)
            tree = ast.parse(path.read_text("utf-8")) if path else ast.Module([], [])
            named = {one for node in _run(tree) for one in _named(node)}
            parents = {one.rpartition(".")[0] for one in named | {name}}
            self._imports[name] = frozenset(one for one in named | parents if one and self.path(one)) - {name}
        return self._imports[name]

    def reached(self, names: Collection[str]) -> set[str]:
        """All that is imported with these modules, themselves included."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.imports(name)
        return found

    def apart(self, tests: Sequence[str], changed: str) -> list[str]:
        """What self-tests import, by way of others too, and what none of whose imports leads to `changed`."""
        reached = self.reached(list(tests)) - set(tests)
        return sorted(name for name in reached if changed not in self.reached([name]))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run when a module is imported: those of functions are not."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
