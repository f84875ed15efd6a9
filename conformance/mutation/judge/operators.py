"""Operators on the Python that judges: those of launchers, and faults that only a judge can have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mlx_assay.conformance.mutation import launchers
from mlx_assay.conformance.mutation.launchers import Module
from mlx_assay.conformance.mutation.operator import Edit, Operator

OTHER = {
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "keys": "values",
    "items": "keys",
    "union": "intersection",
    "intersection": "union",
    "weakest": "max",
    "SAME_BITS": "DIFFERS",
    "SAME_VALUE": "SAME_BITS",
    "WITHIN_ULP": "SAME_VALUE",
    "DIFFERS": "SAME_BITS",
    "ERROR": "SAME_BITS",
    "little": "big",
    "big": "little",
}


def _other(module: Module) -> Iterator[Edit]:
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in OTHER:
            _, end = module.span(node)
            yield Edit(end - len(node.attr), end, OTHER[node.attr])
        elif isinstance(node, ast.Name) and node.id in OTHER:
            yield Edit(*module.span(node), OTHER[node.id])


def _constants(module: Module) -> Iterator[Edit]:
    """Those of launchers, but for negative ones, which stand for an axis or for what remains."""
    return (edit for edit in launchers.constants(module) if module.text[edit.start - 1] != "-")


def _assignments(module: Module) -> Iterator[Edit]:
    """Of an element, or to what a variable holds; a name without a value would only be an error."""
    for node in module.nodes:
        if isinstance(node, ast.AugAssign) or (
            isinstance(node, ast.Assign) and all(isinstance(target, ast.Subscript) for target in node.targets)
        ):
            yield Edit(*module.span(node), "pass")


def _inverted(module: Module) -> Iterator[Edit]:
    for node in module.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not | ast.USub):
            start, _ = module.span(node)
            yield Edit(start, module.span(node.operand)[0], "")


def _yields(module: Module) -> Iterator[Edit]:
    """A reason, a finding or a row that is not told."""
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom):
            yield Edit(*module.span(node), "yield from ()")


def _early(module: Module) -> Iterator[Edit]:
    """What is returned early, where a condition holds, is not."""
    for node in module.nodes:
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Return):
            yield Edit(*module.span(node.test), "False")


RENAMED = ("launcher-", "judge-")
LEFT_OUT = ("launcher-order", "launcher-keyword-dropped", "launcher-constant")

OPERATORS: tuple[Operator[Module], ...] = (
    *(
        Operator(one.name.replace(*RENAMED), one.fault.replace("launcher", "judge"), one.find)
        for one in launchers.OPERATORS
        if one.name not in LEFT_OUT
    ),
    Operator("judge-constant", "a constant of the judge is one more, or the other one", _constants),
    Operator("judge-other", "another verdict, quantifier or order of bytes", _other),
    Operator("judge-assignment-dropped", "an element keeps its value", _assignments),
    Operator("judge-inversion-dropped", "a negation or a sign is lost", _inverted),
    Operator("judge-reason-dropped", "what is found is not told", _yields),
    Operator("judge-early-return-dropped", "a special case is not told apart", _early),
)
