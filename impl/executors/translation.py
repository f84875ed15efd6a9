"""From the text of a custom kernel to one translation unit: the language, MLX's utils.h, the kernel, an entry.

Every line keeps its number and the name of the text it stands in, so that the compiler speaks of the author's own.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import count

from mlx_assay.impl.executors.headers import INCLUDED, expand, line
from mlx_assay.impl.executors.restriction import restrictions
from mlx_assay.impl.executors.rewriting import rewrite, uncommented
from mlx_assay.impl.executors.signature import Parameter, Text

_POSITION = {
    "grid_origin": "uint3(0, 0, 0)",
    "grid_size": "uint3(p->threads_per_grid[0], p->threads_per_grid[1], p->threads_per_grid[2])",
    "dispatch_quadgroups_per_threadgroup": "((p->dispatch_threads_per_threadgroup[0] * "
    "p->dispatch_threads_per_threadgroup[1] * p->dispatch_threads_per_threadgroup[2] + 3) / 4)",
    "quadgroup_index_in_threadgroup": "(p->thread_index_in_threadgroup / 4)",
    "quadgroups_per_threadgroup": "((p->threads_per_threadgroup[0] * p->threads_per_threadgroup[1] * "
    "p->threads_per_threadgroup[2] + 3) / 4)",
    "thread_execution_width": "32u",
    "thread_index_in_quadgroup": "(p->thread_index_in_threadgroup % 4)",
    "threads_per_simdgroup": "32u",
}


@cache
def prelude() -> str:
    """What stands before the text of every kernel, as on Metal: the standard library and MLX's own utils.h."""
    return f'#include "metal.h"\n#include "constructors.h"\n{expand(INCLUDED, count(), set())}'


@cache
def known() -> frozenset[str]:
    """The headers that `prelude` holds."""
    seen: set[str] = set()
    expand(INCLUDED, count(), seen)
    return frozenset(seen)


def _argument(parameter: Parameter, index: int) -> str:
    if not parameter.attribute:
        kind = parameter.type
        return f"*({kind[:-1]}*)b[{index}]" if kind.endswith("&") else f"({kind})b[{index}]"
    name = parameter.name
    if name in _POSITION:
        return _POSITION[name]
    return f"uint3(p->{name}[0], p->{name}[1], p->{name}[2])" if parameter.type == "uint3" else f"p->{name}"


@lru_cache(maxsize=256)
def _refusals(header: str, source: str) -> str:
    """Text that makes the compiler refuse what Metal refuses, each at its own line."""
    header, source = uncommented(header), uncommented(source)
    return "".join(
        f"{line(file, code.count(chr(10), 0, found.at) + 1)}#error {found.message}\n"
        for file, code, others in (("header", header, ""), ("source", source, header))
        for found in restrictions(code, others, file == "source")
    )


def thread_entry(text: Text, arguments: str) -> str:
    """`assay_thread`, which runs one thread of the kernel, for the host's scheduler."""
    return (
        '#define ASSAY_ENTRY extern "C" __attribute__((visibility("default")))\n'
        "ASSAY_ENTRY void assay_thread(const ulong* b, const assay::Position* p) {\n"
        f"{text.name}{text.template_arguments}({arguments});\n}}\n"
        "ASSAY_ENTRY uint assay_threadgroup_bytes() { return assay::threadgroup_bytes; }\n"
    )


def translate(text: Text, entry: Callable[[Text, str], str] = thread_entry) -> str:
    """One translation unit, from `prelude` on: the kernel and what a machine enters it by.

    `entry` gets the text and the kernel's arguments, made of the addresses `b` and the position `p` points to.
    """
    numbers, classes = count(), "bfloat" in str(text)
    header = text.header
    # A header without a last newline runs into the signature, as it does on Metal.
    ended = not header or header.endswith("\n")
    arguments = ", ".join(_argument(p, i) for i, p in enumerate(text.parameters))
    return "".join(
        (
            prelude(),
            _refusals(header, text.source),
            line("header"),
            expand(rewrite(header, numbers, classes), numbers, set(known()), "header"),
            line("signature") if ended else "",
            rewrite(text.signature, numbers),
            line("source"),
            rewrite(text.source, numbers, classes),
            "\n}\n",
            line("entry"),
            entry(text, arguments),
        )
    )
