"""From Metal text to C++ for OpenCL: what the language cannot say by a header is rewritten here.

Address spaces, attributes, half and vectors are the language's own. Rewritten are unsuffixed floating literals (float
in Metal), `vec<T, N>(...)`, `threadgroup` variables (memory of the threadgroup, not of the thread), Metal's pragmas and
bfloat literals. Lines keep their numbers, so that the compiler speaks of the author's own.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import count

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.S)
_BFLOAT_LITERAL = re.compile(r"(?<![\w.])((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[bB][fF]\b")
_FLOAT_LITERAL = re.compile(
    r"(?<![\w.])(0[xX][\da-fA-F]*\.?[\da-fA-F]*[pP][+-]?\d+|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])"
)
_VECTOR = re.compile(r"(?<!operator )\bvec\s*<")
# An object that a function returns lies in no address space yet: constructors, operators and constant references of the
# thread space take any but constant.
_THREAD_METHOD = re.compile(r"\)\s*(?:const\b\s*)?\bthread\b(?=\s*(?:const\b|noexcept\b|[:{;]))")
_THREAD_REFERENCE = re.compile(r"\b(?:const\s+thread|thread\s+const)\s+((?:\w+::)*\w+(?:\s*<[^<>;&]*>)?\s*&)")
_CONSTANT_METHOD = re.compile(r"(\)\s*)constant\b(?=\s*[:{;])")
_BODY = re.compile(r"\b(?:struct|class)\s+\w+[^;{}()]*\{")
_GIVES_OWN = re.compile(
    r"(?<=[;{}])\s*(?:METAL_FUNC\s+|inline\s+|constexpr\s+|const\s+)*thread\s[^;{}()=]*[&*]\s*(?:operator\S+?|\w+)\("
)
_STRUCT = re.compile(r"\b(?:struct|class)\s+(\w+)")
_BRACED = re.compile(r"(?<=[\w>])\(\s*\{([^{};]*)\}(?=\s*[,)])")
_THREADGROUP = re.compile(r"(?:(?<=[;{}:\n])|\A)(\s*)(?:alignas\([^()]*\)\s*)?threadgroup\s+([^;{}]*);")
_DECLARATOR = re.compile(r"(?P<type>.+?[\s>])\s*(?P<name>[A-Za-z_]\w*)\s*(?P<sizes>(?:\[[^\]]*\]\s*)*)\Z", re.S)
_CHOICE = re.compile(r"(?P<mark>::|[?:])")
_PLACE = re.compile(
    r"\s*((?:[A-Za-z_]\w*(?:<[^<>;?]*>)?::)*[A-Za-z_]\w*(?:\s*\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]|(?:\.|->)\w+)*)\s*(?=[;,)\]}?]|:(?!:)|\Z)"
)
_SCALARS = "bool|u?char|u?short|u?int|u?long|half|bfloat|float"
_SPACES = "const|constant|device|thread|threadgroup"
_INITIALISED = re.compile(rf"\b((?:{_SCALARS})[234]|(?:metal::)?vec<[^<>;]*>)(\s+)(\w+)\s*\(")
_PARAMETER = re.compile(rf"\s*(?:\)|(?:{_SPACES}|void|size_t|\w+_t|(?:{_SCALARS})[234]?)\b(?!\s*\())")
_TEMPLATE = re.compile(r"\btemplate\s*<((?:[^<>]|<[^<>]*>)*)>\s*([^(){};=]*)([({])")
_TYPE_PARAMETER = re.compile(r"\b(?:typename|class)\s+(\w+)")
_FUNCTION_CONSTANT = re.compile(
    r"\b(?:constant|[A-Z_]+)\s+(?P<type>\w+)\s+(?P<name>\w+)\s*\[\[\s*function_constant\(\s*(?P<index>\w+)\s*\)\s*\]\]\s*;"
)
_THREADGROUP_ATTRIBUTE = re.compile(r"\[\[\s*threadgroup\([^()]*\)\s*\]\]")
_KERNEL_WORD = re.compile(r"(>\s*)?(?:\bkernel\b|\[\[\s*kernel\s*\]\])(?=\s+void\b)")
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=[^;]*\bvec\s*<[^;]*;|\btypedef\s+(?:\w+::)*vec\s*<[^;]*>\s*(\w+)\s*;")
_CONTRACT_PRAGMA = re.compile(r'(#\s*pragma\s+|_Pragma\(\s*")METAL\s+fp\s+contract')
_OTHER_PRAGMA = re.compile(r"#\s*pragma\s+METAL\b[^\n]*")


def _blank(match: re.Match[str]) -> str:
    text = match.group()
    return text if text[0] in "\"'" else "\n" * text.count("\n") or " "


def uncommented(text: str) -> str:
    """The text with blanks for comments and literals, every other character in its place."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def closing(code: str, start: int, opening: str, closing: str) -> int:
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
        end = closing(code, match.end(), "<", ">")
        out.append(code[at : match.start()])
        called = end > 0 and code[end:].lstrip().startswith("(")
        out.append("make_vec<" if called else match.group())
        at = match.end()
    return "".join(out) + code[at:]


def _opening(code: str, end: int) -> int:
    """The index of the parenthesis that closes before `end`."""
    depth = 0
    for i in range(end - 1, -1, -1):
        depth += (code[i] == ")") - (code[i] == "(")
        if depth == 0:
            return i
    return 0


def _methods(code: str) -> str:
    """`thread` after the parameters of a constructor or an operator goes; that of a method stays."""
    structs = set(_STRUCT.findall(code))

    def changed(match: re.Match[str]) -> str:
        before = code[: _opening(code, match.start() + 1)].rstrip()
        name = re.search(r"(\w+|\boperator\b[^;{}()]*(?:\(\))?)\Z", before)
        given = before[max(before.rfind(c) for c in ";{}") + 1 :]
        gives_own = re.search(r"\bthread\b", given) is not None
        free = name is not None and (name[1] in structs or ("operator" in name[1] and not gives_own))
        return match[0].replace("thread", "") if free else match[0]

    return _CONSTANT_METHOD.sub(r"\1__constant", _THREAD_METHOD.sub(changed, code))


def _own_references(code: str) -> str:
    """A method that gives a reference into the thread's memory is one of the thread space, as all are in Metal."""
    places = []
    for body in _BODY.finditer(code):
        end = closing(code, body.end(), "{", "}")
        for method in _GIVES_OWN.finditer(code, body.end() - 1, end if end > 0 else len(code)):
            after = closing(code, method.end(), "(", ")")
            if after > 0 and re.match(r"\s*(?:const\s*)?\{", code[after:]):
                places.append(after)
    for place in sorted(set(places), reverse=True):
        code = f"{code[:place]} __private{code[place:]}"
    return code


def _initialised(code: str) -> str:
    """`float2 name(x, y);` becomes `float2 name = float2(x, y);`: clang has no constructor for its vectors."""
    out, at = [], 0
    for match in _INITIALISED.finditer(code):
        end = closing(code, match.end(), "(", ")")
        declares = _PARAMETER.match(code, match.end())
        if end < 0 or declares or not code[end:].lstrip().startswith((";", ",")):
            continue
        out += [code[at : match.start()], f"{match[1]}{match[2]}{match[3]} = {match[1]}("]
        at = match.end()
    return "".join(out) + code[at:]


def _deducible(code: str) -> str:
    """`vec<T, N>` in the parameters of a template over T, or in what it is specialised for, so that T is deduced."""
    out, at = [], 0
    for match in _TEMPLATE.finditer(code):
        names = _TYPE_PARAMETER.findall(match[1])
        specialised = re.match(r"(?:struct|class)\s+\w+\s*<", match[2])
        if not names or (specialised is None) == (match[3] == "{"):
            continue
        begin = match.start(2) if specialised else match.end()
        end = match.end(2) if specialised else closing(code, match.end(), "(", ")")
        if end < 0 or begin < at:
            continue
        vector = re.compile(rf"(?:\bmetal::)?\bvec(?=\s*<\s*(?:{'|'.join(names)})\s*,)")
        out += [code[at:begin], vector.sub("assay::native", code[begin:end])]
        at = end
    return "".join(out) + code[at:]


def _aliases(code: str) -> str:
    """`Alias(` of a vector type becomes `assay::make<Alias>(`, since clang has no constructor for it."""
    names = {name for match in _ALIAS.finditer(code) for name in match.groups() if name}
    if not names:
        return code
    called = re.compile(rf"(?<![\w.:])({'|'.join(sorted(names))})(?=\s*\()")
    return called.sub(lambda m: f"assay::make<{m[1]}>", code)


def function_constants(values: Mapping[int, bool | int | float]) -> str:
    """Header text that gives `[[function_constant(index)]]` declarations of the text after it their values.

    MLX's custom kernels have no way to give them; a kernel of MLX's own headers needs it.
    """
    return "".join(f"#define ASSAY_FUNCTION_CONSTANT_{i} , {_literal(v)}\n" for i, v in sorted(values.items()))


def _literal(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _outside(text: str) -> str:
    """The text without what stands in square or angle brackets."""
    return re.sub(r"\[[^\]]*\]|<[^<>]*>", "", text)


def _split(text: str) -> list[str]:
    """At the commas that are outside of every bracket."""
    parts, depth, angles, start = [], 0, 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        # Within a size they are a shift or a comparison.
        angles += 0 if depth else (c == "<") - (c == ">")
        if c == "," and depth == angles == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _variables(declaration: str, numbers: Iterator[int | str]) -> str | None:
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
        kind = f"assay_threadgroup_{name}"
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


def rewrite(text: str, numbers: Iterator[int | str] | None = None, classes: bool = False) -> str:
    """Metal text as C++ for OpenCL, line for line.

    `numbers` tells the threadgroup variables of one kernel apart. `classes`: some scalars are of a class (bfloat).
    """
    numbers = numbers or count()
    code = _COMMENT.sub(_blank, text)
    code = _CONTRACT_PRAGMA.sub(r"\1clang fp contract", code)
    code = _OTHER_PRAGMA.sub("", code)
    code = _BFLOAT_LITERAL.sub(lambda m: f"bfloat({m[1] if re.search('[.eE]', m[1]) else m[1] + '.0'}f)", code)
    code = _FLOAT_LITERAL.sub(r"\1f", code)
    code = _FUNCTION_CONSTANT.sub(r"ASSAY_FUNCTION_CONSTANT(\g<type>, \g<name>, \g<index>);", code)
    code = _THREADGROUP_ATTRIBUTE.sub("", code)
    # Not kept where nobody calls it: a kernel that is not asked for needs no values for its function constants.
    code = _KERNEL_WORD.sub(lambda m: m[1] or "static", code)
    code = _own_references(code)
    code = _methods(_THREAD_REFERENCE.sub(r"const \1", code))
    code = _BRACED.sub(lambda m: f"(assay::braced({m[1]})" if "," in m[1] else m[0], code)
    code = _deducible(_initialised(code))
    code = _constructors(code)
    code = _choices(code) if classes else code
    code = _aliases(code)
    return _THREADGROUP.sub(lambda m: m[1] + (_variables(m[2], numbers) or m[0][len(m[1]) :]), code)
