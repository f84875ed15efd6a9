"""From Metal text to C++ for OpenCL: what the language cannot say by a header is rewritten here.

Address spaces, attributes, half and vectors are the language's own. Rewritten are unsuffixed floating literals (float
in Metal), `vec<T, N>(...)`, `threadgroup` variables (memory of the threadgroup, not of the thread), Metal's pragmas and
bfloat literals. Lines keep their numbers, so that the compiler speaks of the author's own.
"""

import re
from itertools import count

from mlx_assay.impl.executors.signature import Parameter, Text

PRELUDE = '#include "mlx.h"\n#include "constructors.h"\n'

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.S)
_BFLOAT_LITERAL = re.compile(r"(?<![\w.])((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[bB][fF]\b")
_FLOAT_LITERAL = re.compile(
    r"(?<![\w.])(0[xX][\da-fA-F]*\.?[\da-fA-F]*[pP][+-]?\d+|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])"
)
_VECTOR = re.compile(r"\bvec\s*<")
_THREADGROUP = re.compile(r"(?:(?<=[;{}:\n])|\A)(\s*)(?:alignas\([^()]*\)\s*)?threadgroup\s+([^;{}]*);")
_DECLARATOR = re.compile(r"(?P<type>.+?[\s>])\s*(?P<name>[A-Za-z_]\w*)\s*(?P<sizes>(?:\[[^\]]*\]\s*)*)\Z", re.S)
_CHOICE = re.compile(r"(?P<mark>::|[?:])")
_PLACE = re.compile(r"\s*([A-Za-z_]\w*(?:\s*\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]|(?:\.|->)\w+)*)\s*(?=[:;,)\]}?]|\Z)")
_CONTRACT_PRAGMA = re.compile(r'(#\s*pragma\s+|_Pragma\(\s*")METAL\s+fp\s+contract')
_OTHER_PRAGMA = re.compile(r"#\s*pragma\s+METAL\b[^\n]*")

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


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    return text if text[0] in "\"'" else "\n" * text.count("\n") or " "


def _closing(code: str, start: int, opening: str, closing: str) -> int:
    """The index after the bracket that closes the one before `start`, or -1."""
    depth = 1
    for i in range(start, len(code)):
        depth += (code[i] == opening) - (code[i] == closing)
        if depth == 0:
            return i + 1
    return -1


def _constructors(code: str) -> str:
    """`vec<T, 4>(` becomes `make_vec<T, 4>(`; as a type it stays."""
    out, at = [], 0
    for match in _VECTOR.finditer(code):
        end = _closing(code, match.end(), "<", ">")
        out.append(code[at : match.start()])
        called = end > 0 and code[end:].lstrip().startswith("(")
        out.append("make_vec<" if called else match.group())
        at = match.end()
    return "".join(out) + code[at:]


def _outside(text: str) -> str:
    """The text without what stands in square or angle brackets."""
    return re.sub(r"\[[^\]]*\]|<[^<>]*>", "", text)


def _split(text: str) -> list[str]:
    """At the commas that are outside of every bracket."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<[(") - (c in ">])")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _variables(declaration: str, numbers: "count[int]") -> str | None:
    if re.search(r"[*&=(]", _outside(declaration)):
        return None
    first, *others = _split(re.sub(r"\balignas\([^()]*\)", "", declaration))
    match = _DECLARATOR.match(first.strip())
    if match is None:
        return None
    base = match["type"].strip()
    out = []
    for declarator in [f"{match['name']}{match['sizes']}", *others]:
        name, _, sizes = declarator.strip().partition("[")
        name, number = name.strip(), next(numbers)
        kind = f"assay_threadgroup_{number}"
        out.append(
            f"typedef {base} {kind}{'[' + sizes if sizes else ''}; "
            f"threadgroup {kind}& {name} = assay::threadgroup_variable<{number}, {kind}>();"
        )
    return " ".join(out) + "\n" * declaration.count("\n")


def _choices(code: str) -> str:
    """Operands of `c ? x : y` that are plain places become values, see `assay::value`."""
    out, at, open_questions = [], 0, 0
    for match in _CHOICE.finditer(code):
        if match["mark"] == "::":
            continue
        if match["mark"] == "?":
            open_questions += 1
        elif open_questions:
            open_questions -= 1
        else:
            continue
        place = _PLACE.match(code, match.end())
        if place is not None:
            out += [code[at : place.start(1)], f"assay::value({place[1]})"]
            at = place.end(1)
    return "".join(out) + code[at:]


def rewrite(text: str, numbers: "count[int] | None" = None, classes: bool = False) -> str:
    """Metal text as C++ for OpenCL, line for line.

    `numbers` counts the threadgroup variables of one kernel. `classes`: some scalars are of a class (bfloat).
    """
    numbers = numbers or count()
    code = _COMMENT.sub(_blank, text)
    code = _CONTRACT_PRAGMA.sub(r"\1clang fp contract", code)
    code = _OTHER_PRAGMA.sub("", code)
    code = _BFLOAT_LITERAL.sub(lambda m: f"bfloat({m[1] if re.search('[.eE]', m[1]) else m[1] + '.0'}f)", code)
    code = _FLOAT_LITERAL.sub(r"\1f", code)
    code = _constructors(code)
    code = _choices(code) if classes else code
    return _THREADGROUP.sub(lambda m: m[1] + (_variables(m[2], numbers) or m[0][len(m[1]) :]), code)


def _argument(parameter: Parameter, index: int) -> str:
    if not parameter.attribute:
        kind = parameter.type
        return f"*({kind[:-1]}*)b[{index}]" if kind.endswith("&") else f"({kind})b[{index}]"
    name = parameter.name
    if name in _POSITION:
        return _POSITION[name]
    return f"uint3(p->{name}[0], p->{name}[1], p->{name}[2])" if parameter.type == "uint3" else f"p->{name}"


def _line(file: str) -> str:
    return f'#line 1 "{file}"\n'


def translate(text: Text) -> str:
    """One translation unit: the kernel and `assay_thread`, which runs one thread of it."""
    numbers, classes = count(), "bfloat" in str(text)
    header = text.header
    # A header without a last newline runs into the signature, as it does on Metal.
    ended = not header or header.endswith("\n")
    arguments = ", ".join(_argument(p, i) for i, p in enumerate(text.parameters))
    return "".join(
        (
            PRELUDE,
            _line("header"),
            rewrite(header, numbers, classes),
            _line("signature") if ended else "",
            rewrite(text.signature, numbers),
            _line("source"),
            rewrite(text.source, numbers, classes),
            "\n}\n",
            _line("entry"),
            '#define ASSAY_ENTRY extern "C" __attribute__((visibility("default")))\n',
            "ASSAY_ENTRY void assay_thread(const ulong* b, const assay::Position* p) {\n",
            f"{text.name}{text.template_arguments}({arguments});\n}}\n",
            "ASSAY_ENTRY uint assay_threadgroup_bytes() { return assay::threadgroup_bytes; }\n",
        )
    )
