"""The kernels in preprocessed Metal text: their parameters, template parameters, host names and function constants."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["buffer", "threadgroup", "value"]

_ATTRIBUTE = re.compile(r"\[\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\]")
_KERNEL = re.compile(r"(?:\[\[\s*kernel\b[^\]]*\]\]|(?<!\w)kernel)\s+void\s+(\w+)\s*\(")
_TEMPLATE = re.compile(r"template\s*<")
_HOST_NAME = re.compile(
    r"template\s*\[\[\s*host_name\(\s*((?:\"[^\"]*\"\s*)+)\)\s*\]\]\s*(?:\[\[\s*kernel\s*\]\]|kernel)\s*"
    r"(?:decltype\s*\(|void\s)"
)
_CONSTANT = re.compile(
    r"(?P<head>(?:\b(?:static|constexpr|const)\s+)*\bconstant\s+(?:(?:const|constexpr)\s+)*)(?P<type>\w+)\s+(?P<name>\w+)\s*"
    r"\[\[\s*function_constant\(\s*(?P<index>\d+)\s*\)\s*\]\]\s*;"
)
_WORDS = re.compile(r"\b(?:const|volatile|device|constant|threadgroup|thread|coherent\([^()]*\))\b|[*&]|__restrict\w*")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    `kind` says where its value comes from: a buffer or threadgroup memory, whose index is `location`, or the attribute.
    `condition` names the function constant without which it is not there.
    """

    type: str
    name: str
    kind: Kind
    location: int = -1
    attribute: str = ""
    condition: str | None = None

    @property
    def element(self) -> str:
        """The type of what it points to."""
        return " ".join(_WORDS.sub(" ", self.type).split())

    @property
    def writable(self) -> bool:
        return self.kind == "buffer" and not re.search(r"\bconst\b|\bconstant\b", self.type)


@dataclass(frozen=True)
class TemplateParameter:
    """One parameter of a template: `default` is "" where there is none."""

    name: str
    default: str
    is_type: bool


@dataclass(frozen=True)
class Function:
    """A kernel, or the template of one."""

    name: str
    template: tuple["TemplateParameter", ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Instance:
    """What a host name stands for."""

    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    """A function constant."""

    type: str
    name: str
    index: int


def closing(text: str, start: int, opening: str, shutting: str) -> int:
    """The index of the bracket that closes the one before `start`. ValueError: nothing closes it."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == opening) - (text[i] == shutting)
        if depth == 0:
            return i
    raise ValueError(f"nothing closes the {opening!r} of {text[max(start - 40, 0) : start]!r}")


def split(text: str) -> tuple[str, ...]:
    """At the commas outside of every bracket; nothing of an empty text."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<[({") - (c in ">])}")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return tuple(p for p in (*parts, text[start:].strip()) if p)


def _unmarked(text: str) -> str:
    return re.sub(r"^# \d+ .*$|^#line.*$", "", text, flags=re.M)


def _parameter(text: str, free: int) -> Parameter:
    attributes = [a for found in _ATTRIBUTE.finditer(text) for a in split(found[1])]
    plain = " ".join(_ATTRIBUTE.sub(" ", text).split())
    plain = re.sub(r"\s*\[[^\]]*\]$", "", plain) if plain.endswith("]") else plain
    array = text.count("[") > 2 * text.count("[[") and "*" not in plain
    found = re.fullmatch(r"(.*?[\s*&>])(\w+)", plain)
    if found is None:
        raise ValueError(f"the kernel's parameter {plain!r} has no type and name")
    type_, name = found[1].strip() + ("*" if array else ""), found[2]
    known = {a.partition("(")[0].strip(): a.partition("(")[2].rpartition(")")[0].strip() for a in attributes}
    condition = known.pop("function_constant", None)
    if "buffer" in known or not known:
        return Parameter(type_, name, "buffer", int(known.get("buffer", free)), "", condition)
    if "threadgroup" in known:
        return Parameter(type_, name, "threadgroup", int(known["threadgroup"]), "", condition)
    return Parameter(type_, name, "value", -1, next(iter(known)), condition)


def _parameters(text: str) -> tuple[Parameter, ...]:
    out: list[Parameter] = []
    for part in split(_unmarked(text)):
        taken = {p.location for p in out if p.kind == "buffer"}
        free = next(n for n in range(len(taken) + 1) if n not in taken)
        out.append(_parameter(part, free))
    return tuple(out)


def _template_parameter(text: str) -> TemplateParameter:
    declared, _, default = text.partition("=")
    is_type = declared.split()[0] in ("typename", "class", "template")
    return TemplateParameter(re.findall(r"\w+", declared)[-1], default.strip(), is_type)


def _template(text: str, end: int) -> tuple[TemplateParameter, ...]:
    """The template parameters of what begins at `end`."""
    for found in reversed(list(_TEMPLATE.finditer(text, max(0, end - 4000), end))):
        stop = closing(text, found.end(), "<", ">")
        if not text[stop + 1 : end].strip():
            return tuple(_template_parameter(p) for p in split(_unmarked(text[found.end() : stop])))
        return ()
    return ()


def functions(text: str) -> dict[str, tuple[Function, ...]]:
    """The kernels that a text defines, by name; templates may be overloaded."""
    found: dict[str, tuple[Function, ...]] = {}
    for match in _KERNEL.finditer(text):
        end = closing(text, match.end(), "(", ")")
        if text[end + 1 :].lstrip()[:1] == "{":
            parameters = _parameters(text[match.end() : end])
            made = Function(match[1], _template(text, match.start()), parameters)
            found[made.name] = (*found.get(made.name, ()), made)
    return found


def chosen(overloads: tuple[Function, ...], arguments: tuple[str, ...]) -> Function:
    """The overload that takes these template arguments. ValueError: none does."""
    values = tuple(re.fullmatch(r"-?\d\w*|true|false", a) is not None for a in arguments)
    for function in overloads:
        template = function.template
        enough = all(p.default for p in template[len(arguments) :]) and len(arguments) <= len(template)
        if enough and all(p.is_type != value for p, value in zip(template, values, strict=False)):
            return function
    raise ValueError(f"no kernel {overloads[0].name!r} takes the template arguments <{', '.join(arguments)}>")


def instances(text: str) -> tuple[str, dict[str, Instance]]:
    """The text without its instantiations, and what each host name stands for."""
    kept, at, found = [], 0, {}
    for match in _HOST_NAME.finditer(text):
        stop = text.index(";", match.end())
        name, _, rest = _unmarked(text[match.end() : stop]).strip().partition("<")
        arguments = split(rest[: closing(rest, 0, "<", ">")]) if rest else ()
        found["".join(re.findall(r'"([^"]*)"', match[1]))] = Instance(name.strip(), arguments)
        kept.append(text[at : match.start()] + "\n" * text.count("\n", match.start(), stop))
        at = stop + 1
    return "".join(kept) + text[at:], found


def constants(text: str) -> tuple[Constant, ...]:
    """The function constants that a text declares."""
    return tuple(Constant(m["type"], m["name"], int(m["index"])) for m in _CONSTANT.finditer(text))
