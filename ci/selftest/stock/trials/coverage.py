"""Which headers and kernels of MLX the trials reach."""

from __future__ import annotations

import re
from functools import cache

from mlx_assay.impl.executors import headers
from mlx_assay.impl.executors.stock.function import functions
from mlx_assay.impl.executors.stock.naming import define
from mlx_assay.impl.executors.stock.preprocessing import preprocess
from trials.trial import Trial


def subject(kernel: str) -> str:
    """The operation of an elementwise kernel, else the function: what OPAQUE is by."""
    definition = define(kernel)
    if definition is None:
        return re.sub(r"(_looped)?(b?float\d+)$", "", kernel)
    operation = re.search(r"\b[A-Z]\w+\b", definition.arguments)
    elementwise = definition.function.startswith(("unary", "binary"))
    return operation[0] if operation and elementwise else definition.function


@cache
def _closure(header: str) -> frozenset[str]:
    text = (headers.root() / headers.KERNELS / header).read_text()
    included = re.findall(rf'#include "{headers.KERNELS.as_posix()}/([^"]+)"', text)
    return frozenset({header}.union(*(_closure(name) for name in included)))


def reached_headers(trials: tuple[Trial, ...]) -> set[str]:
    """Every header that some trial's text holds."""
    found = set(_closure("utils.h"))
    for trial in trials:
        definition = define(trial.kernel)
        named = definition.headers if definition else (trial.header,) if trial.header.endswith(".h") else ()
        found |= {name for header in named for name in _closure(header)}
    return found


def reached_functions(trials: tuple[Trial, ...]) -> set[tuple[str, str]]:
    """Header and function of every kernel that is launched."""
    found = set()
    for trial in trials:
        for kernel in (trial.kernel, *trial.also):
            definition = define(kernel)
            found.add((trial.header, definition.function if definition else kernel.partition("<")[0]))
    return found


def kernels() -> set[tuple[str, str]]:
    """Header and function of every kernel that MLX's headers define, but for those of newer GPUs' tensor operations."""
    found = set()
    for header in headers.names():
        if headers.unreachable(header):
            continue
        text = (headers.root() / headers.KERNELS / header).read_text()
        if "kernel" in text:
            included = "".join(f'#include "{(headers.KERNELS / h).as_posix()}"\n' for h in ("utils.h", header))
            defined = functions(preprocess(included))
            found |= {(header, name) for name in defined if re.search(rf"\b{name}\s*\(", text)}
    return found
