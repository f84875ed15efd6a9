"""Operators on the Python that launches kernels: grids, checks, constants, and MLX's own operations."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import cached_property

from mlx_assay.conformance.mutation.operator import Edit, Operator

COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
CALCULATED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
CALLS = {
    "argmax": "argmin",
    "logsumexp": "max",
    "tanh": "sin",
    "ceil": "floor",
    "zeros": "ones",
    "where": "minimum",
    "min": "max",
    "max": "min",
}
DTYPES = {"bfloat16": "float16", "float16": "bfloat16", "float32": "float16", "uint32": "int32", "int32": "uint32"}
LAUNCHES = ("grid", "threadgroup", "output_shapes", "output_dtypes", "template", "inputs")


class Module:
    """A module's text and its tree; annotations, docstrings and messages are left alone."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._starts = [0]
        for row in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(row))
        self._rows = text.splitlines()

    def at(self, line: int, column: int) -> int:
        """The place of an AST's position, whose columns count bytes."""
        row = self._rows[line - 1].encode()
        return self._starts[line - 1] + len(row[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node stands."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def said(self, node: ast.expr | ast.stmt) -> str:
        """A node's text."""
        start, end = self.span(node)
        return self.text[start:end]

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node that decides what is computed."""
        found: list[ast.AST] = []
        pending: list[ast.AST] = [self.tree]
        while pending:
            node = pending.pop()
            found.append(node)
            pending += self._parts(node)
        return found

    def _parts(self, node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.If) and "TYPE_CHECKING" in self.said(part.test):
                    continue
                if isinstance(part, ast.AST):
                    yield part


def _between(module: Module, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Edit]:
    """The operator that stands between two operands, behind closing and before opening parentheses."""
    first, last = module.span(left)[1], module.span(right)[0]
    at = module.text.find(old, first, last)
    if at >= 0:
        yield Edit(at, at + len(old), new)


def _compared(module: Module) -> Iterator[Edit]:
    for node in module.nodes:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for place, kind in enumerate(node.ops):
                yield from _between(module, operands[place], operands[place + 1], *COMPARED[type(kind)])


def _calculated(module: Module) -> Iterator[Edit]:
    for node in module.nodes:
        if isinstance(node, ast.BinOp) and type(node.op) in CALCULATED:
            yield from _between(module, node.left, node.right, *CALCULATED[type(node.op)])


def _unasked(module: Module) -> Iterator[Edit]:
    for node in module.nodes:
        if not isinstance(node, ast.BoolOp):
            continue
        neutral = "True" if isinstance(node.op, ast.And) else "False"
        yield from (Edit(*module.span(value), neutral) for value in node.values)


def _extents(module: Module) -> set[ast.AST]:
    """What stands in the extents of a grid: a thread too many is no fault, and launcher-order has the axes."""
    keywords = (node for node in module.nodes if isinstance(node, ast.keyword) and node.arg in LAUNCHES[:2])
    return {part for keyword in keywords for part in ast.walk(keyword.value)}


def constants(module: Module) -> Iterator[Edit]:
    """Whole numbers, truth values and zeros."""
    extents = _extents(module)
    for node in module.nodes:
        if node in extents:
            continue
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield Edit(*module.span(node), str(node.value + 1))
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield Edit(*module.span(node), str(not node.value))
        elif isinstance(node, ast.Constant) and type(node.value) is float and node.value == 0:
            yield Edit(*module.span(node), "-0.0")


def _conditions(module: Module) -> Iterator[Edit]:
    for node in module.nodes:
        if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare):
            start, end = module.span(node.test)
            yield Edit(start, end, f"not ({module.text[start:end]})")


def _refusals(module: Module) -> Iterator[Edit]:
    """An argument that should be refused is not."""
    for node in module.nodes:
        if isinstance(node, ast.Raise):
            yield Edit(*module.span(node), "pass")


def _statements(module: Module) -> Iterator[Edit]:
    """A check, or another call for its effect, that is not made."""
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield Edit(*module.span(node), "pass")


def _calls(module: Module) -> Iterator[Edit]:
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in {**CALLS, **DTYPES}:
            _, end = module.span(node)
            yield Edit(end - len(node.attr), end, {**CALLS, **DTYPES}[node.attr])


def _launches(module: Module) -> Iterator[Edit]:
    """Extents of a grid that change places, arrays that do, and values of a template's names, which go by these."""
    for node in module.nodes:
        if isinstance(node, ast.keyword) and node.arg in LAUNCHES and isinstance(node.value, ast.List | ast.Tuple):
            parts = node.value.elts
            if node.arg == "template":
                parts = [part.elts[1] for part in parts if isinstance(part, ast.Tuple) and len(part.elts) == 2]
            for one, other in itertools.pairwise(parts):
                start, end = module.span(one)[0], module.span(other)[1]
                middle = module.text[module.span(one)[1] : module.span(other)[0]]
                yield Edit(start, end, f"{module.said(other)}{middle}{module.said(one)}")


def _keywords(module: Module) -> Iterator[Edit]:
    """A value that MLX would choose otherwise is not given."""
    for node in module.nodes:
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("axis", "keepdims", "dtype", "output_dtype"):
                    start, end = module.span(keyword.value)
                    start = module.text.rindex(",", 0, start) if "," in module.said(node) else start
                    yield Edit(start, end, "")


OPERATORS = (
    Operator("launcher-comparison", "a comparison of the launcher is another one", _compared),
    Operator("launcher-arithmetic", "the launcher calculates something else", _calculated),
    Operator("launcher-condition-part-dropped", "one of several conditions is not asked", _unasked),
    Operator("launcher-constant", "a constant of the launcher is one more, or the other one", constants),
    Operator("launcher-condition-negated", "the launcher asks the opposite", _conditions),
    Operator("launcher-refusal-dropped", "wrong arguments are not refused", _refusals),
    Operator("launcher-statement-dropped", "a check is not made", _statements),
    Operator("launcher-operation", "another operation of MLX, or another dtype", _calls),
    Operator("launcher-order", "extents or arrays of a launch change places", _launches),
    Operator("launcher-keyword-dropped", "an axis or a dtype is left to MLX", _keywords),
)
