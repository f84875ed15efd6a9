"""What Metal refuses and C++ for OpenCL takes: found in an author's text, told in the words of Metal's compiler.

Of pointers, references and variables only those of types that the text spells out are judged: a macro, a template's
parameter or `auto` may hold the address space. What stands between `#if` and `#endif` may not be there: it is passed
over. MLX's own headers, which Metal takes, are the test: nothing of this is found in them.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_SPACE = re.compile(r"\b(?:device|constant|threadgroup|thread|ray_data|object_data)\b")
_SCALARS = (
    r"bool|u?char|u?short|u?int|u?long|unsigned|signed|half|bfloat|float|size_t|ptrdiff_t|u?int(?:8|16|32|64)_t|"
    r"b?float16_t|complex64_t|atomic_(?:u?int|bool|float|ulong)"
)
_VECTORS = (
    r"(?:bool|u?char|u?short|u?int|u?long|half|bfloat|float)[234](?:x[234])?|(?:metal::)?(?:vec|atomic)\s*<[^<>;{}]*>"
)
_STRUCT = re.compile(r"\b(?:struct|class|union)\s+(\w+)\s*(?:final\s*)?[:{]")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if|endif)", re.M)
_QUALIFIERS = r"(?:(?:static|const|constexpr|inline|volatile)\s+)*"
_BEFORE = re.compile(r"[\w\s]*\Z")
_NAMESPACE = re.compile(r"(?:\bnamespace\b[\w:\s]*|\bextern\s*)\Z")
_AGGREGATE = re.compile(r"\b(?:struct|class|union|enum)\b[^()=;]*\Z")
_KERNEL = re.compile(r"\[\[\s*kernel\s*\]\]|\bkernel\b")
_THREADGROUP = re.compile(r"\s*threadgroup\s[^*&()=]*\Z")

_WORDS = {
    r"goto(?=\s+\w+\s*;)": "Metal has no goto",
    r"virtual": "virtual functions are not supported in Metal",
    r"(?:__)?asm(?:__)?(?=\s*(?:volatile\s*)?\()": "Metal has no assembly in a kernel's text",
    r"long\s+long": "'long long' is not supported in Metal: use long, which has 64 bits",
    r"long\s+double|double": "'double' is not supported in Metal: use float",
    r"__(?:global|local|private|constant|generic|kernel)": "a word of OpenCL: the address spaces of Metal are device, "
    "threadgroup, thread and constant",
}
_WORD = re.compile("|".join(f"(?P<w{i}>\\b{pattern}\\b)" for i, pattern in enumerate(_WORDS)))
_INTERNAL = re.compile(r"(?<![\w:])assay\s*::\s*\w+|\b(?:__)?assay_\w+|\bASSAY_\w+")


class Restriction(NamedTuple):
    """What is refused: where in the text it begins, and the message."""

    at: int
    message: str


class _Statement(NamedTuple):
    """What ends with a semicolon: where it begins, its text, and where it stands: program, aggregate or function."""

    at: int
    text: str
    scope: str
    kernel: bool


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _unconditional(code: str) -> str:
    """The code without directives and what depends on a condition, every character in its place."""
    out, depth, at = [], 0, 0
    for match in _CONDITION.finditer(code):
        part = code[at : match.start()]
        out.append(re.sub(r"[^\n]", " ", part) if depth else part)
        depth += 1 if match[1] == "if" else -1
        at = match.start()
    rest = code[at:]
    return _DIRECTIVE.sub(_blanked, "".join(out) + (re.sub(r"[^\n]", " ", rest) if depth > 0 else rest))


def _scope(head: str, outer: str) -> str:
    if outer != "function" and _NAMESPACE.search(head):
        return outer
    return "aggregate" if _AGGREGATE.search(head) else "function"


def _statements(code: str, body: bool) -> Iterator[_Statement]:
    """Statements with braces of initialisers in them. `body`: the code is a kernel's body."""
    stack = [("function", True)] if body else [("program", False)]
    start, inside = 0, 0
    for match in re.finditer(r"[;{}]", code):
        at, mark, head = match.start(), match[0], code[start : match.start()]
        scope, kernel = stack[-1]
        if inside or (mark == "{" and re.search(r"=\s*\Z|\]\s*\Z", head) and "[[" not in head):
            inside += (mark == "{") - (mark == "}")
            continue
        if mark == "{":
            inner = _scope(head, scope)
            stack.append((inner, kernel or (inner == "function" and _KERNEL.search(head) is not None)))
        elif mark == "}":
            if len(stack) > 1:
                stack.pop()
        else:
            lead = len(head) - len(head.lstrip())
            yield _Statement(start + lead, head.strip(), scope, kernel)
        start = at + 1


def _own_types(*texts: str) -> str:
    names = {name for text in texts for name in _STRUCT.findall(text)}
    return "|".join([_SCALARS, _VECTORS, *sorted(names)])


def _pointers(code: str, types: str) -> Iterator[Restriction]:
    """Pointers and references of a type that is spelled out, without an address space."""
    declared = re.compile(
        rf"(?<![\w.:>])(?:metal::)?(?:{types})\s*(?:const\s*)?(?P<mark>[*&])(?![&=\d.])(?!\s*\(?\s*\d)"
    )
    for match in declared.finditer(code):
        before = _BEFORE.search(code, max(0, match.start() - 200), match.start())
        words = before[0].split() if before else []
        # A word that is no qualifier may be a macro, or the type may be a function's whose space stands before.
        own = [w for w in words if w not in _PLAIN]
        if own or _SPACE.match(code[match.end() :].lstrip()):
            continue
        kind = "pointer" if match["mark"] == "*" else "reference"
        yield Restriction(match.start(), f"{kind} type must have explicit address space qualifier")


_PLAIN = frozenset(
    {
        *("const", "constexpr", "volatile", "static", "inline", "METAL_FUNC", "explicit", "friend"),
        *("return", "else", "do", "struct", "typename", "using", "typedef"),
    }
)


def _variables(code: str, types: str, body: bool) -> Iterator[Restriction]:
    variable = re.compile(
        rf"{_QUALIFIERS}(?:auto|(?:metal::)?(?:{types}))(?:\s+(?:const|constexpr)\b)?\s+\w+\s*(?:\[[^;]*?\]\s*)*(?:=(?!=).*|\{{.*)?\Z",
        re.S,
    )
    for at, text, scope, kernel in _statements(code, body):
        if scope == "program" and variable.match(text):
            yield Restriction(at, "program scope variable must reside in constant address space")
        elif scope == "function" and text.startswith("static ") and variable.match(text):
            yield Restriction(at, "static variable must reside in constant address space")
        elif scope == "function" and not kernel and _THREADGROUP.match(text):
            yield Restriction(at, "non-kernel function variable cannot be declared in threadgroup address space")


def _names(code: str) -> Iterator[Restriction]:
    for match in _WORD.finditer(code):
        yield Restriction(match.start(), list(_WORDS.values())[int((match.lastgroup or "w0")[1:])])
    if not re.search(r"\bnamespace\s+assay\b", code):
        for match in _INTERNAL.finditer(code):
            yield Restriction(match.start(), f"use of undeclared identifier '{match[0]}'")


def restrictions(code: str, others: str = "", body: bool = False) -> list[Restriction]:
    """What of a text without comments Metal refuses, in its order.

    `others` is text that declares types besides. `body`: the text is a kernel's body, else declarations.
    """
    code = _unconditional(code)
    types = _own_types(code, others)
    found = [*_pointers(code, types), *_variables(code, types, body), *_names(code)]
    return sorted(found)
