"""What the compiler said of a kernel, in the author's own lines and in Metal's words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mlx_assay.impl.executors.rewriting import uncommented
from mlx_assay.impl.executors.signature import Text

_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^\s:][^\n:]*):(?P<line>\d+):\d+: (?P<kind>fatal error|error|warning|note): (?P<message>.*)$", re.M
)
_SPACES = {"__global": "device", "__constant": "constant", "__local": "threadgroup", "__private": "thread"}
_WORDS: tuple[tuple[str, str], ...] = (
    (r"'[^']*\bassay_threadgroup_\w+' \(aka ('[^']*')\)", r"\1"),
    (r" \(aka '[^']*\bassay::[^']*'\)", ""),
    (r"\b(\w+) __attribute__\(\(ext_vector_type\((\d)\)\)\)", r"\1\2"),
    (r" \(vector of \d '\w+(?: \w+)*' values\)", ""),
    (r"\bmake_(?=\w+[234]\b|vec\b)|\bassay::make<(?=\w+>)", ""),
    (r"\bassay::(bfloat|bool)_vector<(\d)>", r"\1\2"),
    (r"\bassay::packed_vector<(\w+), (\d)>", r"packed_\1\2"),
    (r"\b(global|local|generic|pipe|kernel|read_only|write_only|read_write)_\b", r"\1"),
    (r"C\+\+ for OpenCL(?: version \d+)?", "Metal"),
    (r"attempt to use a poisoned identifier", "'double' is not supported in Metal: use float"),
    *((rf"\b{theirs}\b", metals) for theirs, metals in _SPACES.items()),
    *((rf"\b{theirs[2:]} address space", f"{metals} address space") for theirs, metals in _SPACES.items()),
    (r"\b__generic ", ""),
    (r" \[-W[^\]]*\]$", ""),
)
# The kernel is no kernel to clang. In a body it is the rewriting that knows declarations without an initialiser.
_FUNCTIONS = "non-kernel function variable cannot be declared in {} address space"
_IN_KERNEL = {
    _FUNCTIONS.format("threadgroup"): "a threadgroup variable takes no initialiser: let a thread assign to it",
    _FUNCTIONS.format("constant"): "a constant variable stands outside of functions: declare it in the header",
}
_ASSERTION = re.compile(r"static assertion failed(?: due to requirement '.*?')?: (?=\w)")
_UNBALANCED = re.compile(
    r"extraneous closing brace|expected '}'|expected unqualified-id|function definition is not allowed"
)
_CONSTANT = re.compile(r"error' attribute: (function constant \w+ \((\w+)\) has no value: [^\n]*)")
_UNDEFINED = re.compile(r"^undefined symbol (\w+)", re.M)


class _Message(NamedTuple):
    file: str
    line: int
    message: str


def _groups(said: str) -> Iterator[list[re.Match[str]]]:
    """Each error with the notes behind it."""
    group: list[re.Match[str]] = []
    for match in _DIAGNOSTIC.finditer(said):
        if match["kind"] != "note":
            if group:
                yield group
            group = []
        if match["kind"].endswith("error") or group:
            group.append(match)
    if group:
        yield group


def metals(message: str) -> str:
    """A message of clang's about C++ for OpenCL, in Metal's words."""
    for theirs, own in _WORDS:
        message = re.sub(theirs, own, message)
    return message


def _brace(code: str) -> tuple[int, str] | None:
    """The line of a brace without a partner, and what is wrong with it."""
    opened: list[int] = []
    for match in re.finditer(r"[{}\n]", uncommented(code)):
        line = code.count("\n", 0, match.start()) + 1
        if match[0] == "{":
            opened.append(line)
        elif match[0] == "}" and not opened:
            return line, "extraneous closing brace ('}')"
        elif match[0] == "}":
            opened.pop()
    return (opened[0], "this '{' is not closed") if opened else None


def _messages(text: Text, said: str) -> Iterator[_Message]:
    own = {"source": text.source, "header": text.header}
    for group in _groups(said):
        error = group[0]
        placed = next((match for match in group if match["file"] in own), None)
        message = metals(error["message"])
        if _UNBALANCED.search(message) and (placed is None or not _line(text, placed["file"], int(placed["line"]))):
            for file, code in own.items():
                if (brace := _brace(code)) is not None:
                    yield _Message(file, brace[0], brace[1])
                    return
        if placed is not None:
            if placed is not error:
                message = _ASSERTION.sub("", message)
            if placed["file"] == "source":
                message = _IN_KERNEL.get(message, message)
            yield _Message(placed["file"], int(placed["line"]), message)
        elif error["file"] == "signature":
            yield _Message("signature", int(error["line"]), message)


def _line(text: Text, file: str, number: int) -> str:
    lines = {"source": text.source, "header": text.header, "signature": text.signature}[file].split("\n")
    return lines[number - 1].strip() if number <= len(lines) else ""


def _without_lines(text: Text, said: str) -> Iterator[str]:
    """What is found after the compiler's front end, which knows no line: told where the text names it."""
    for message, name in dict.fromkeys(_CONSTANT.findall(said)):
        yield _named(text, rf"\b{name}\s*\[\[", message)
    if (undefined := _UNDEFINED.search(said)) is not None:
        # In C++ a name stands in its symbol behind its length.
        lengths = re.finditer(r"(?=(\d+))", undefined[1])
        names = [undefined[1][m.end(1) :][: int(m[1])] for m in lengths] or [undefined[1]]
        name = next((n for n in names if re.search(rf"\b{re.escape(n)}\s*\(", text.source + text.header)), undefined[1])
        yield _named(text, rf"\b{re.escape(name)}\s*\(", f"{name} is declared and used, and nothing defines it")


def _named(text: Text, pattern: str, message: str) -> str:
    for file, code in (("source", text.source), ("header", text.header)):
        if (found := re.search(pattern, uncommented(code))) is not None:
            return _told(text, file, code.count("\n", 0, found.start()) + 1, message)
    return message


def _told(text: Text, file: str, number: int, message: str) -> str:
    return f"{file} line {number}: error: {message}\n    {_line(text, file, number)}"


def explain(text: Text, said: str) -> str:
    """The compiler's errors, each in the author's own text with the author's own line; else all that it said.

    An error within the runtime's headers or MLX's is told at the line that led there.
    """
    if not re.fullmatch(r"\w+", text.name):
        return f"the name of its function would be {text.name!r}: a kernel's name has letters, digits and _ alone"
    if found := list(_without_lines(text, said)):
        return "\n".join(found)
    own, generated = [], []
    for file, number, message in dict.fromkeys(_messages(text, said)):
        if file == "signature":
            generated.append(f"{message}: in the generated signature, `{_line(text, file, number)}`")
        else:
            own.append(_told(text, file, number, message))
    # What the signature's types or names break besides is no news where the author's own lines are wrong.
    return "\n".join(own or generated) or metals(said)
