"""The class of an LLVM instruction, and how many instructions of a GPU it stands for: an estimate."""

import re
from collections.abc import Callable, Mapping, Sequence

CLASSES = (
    *("float", "half", "fma", "comparison", "integer", "product", "long", "address", "conversion"),
    *("transcendental", "division", "select", "branch", "byte_sum"),
)
"""float, half: sums, products and signs of f32 (and bfloat), of f16; fma: fused, of either; comparison: of floats, and
their minima and maxima. integer: of 32 bits or fewer; product: of two such; long: of 64 bits. address: an index added
to a pointer. division: of floats, and of integers by what is no constant. transcendental: square roots too.
byte_sum: of the four bytes of a word, whose seven steps are one instruction on an NVIDIA GPU.
"""

_LOGIC = {"and", "or", "xor"}
_NAMES = re.compile(r"%(?:[-\w$.]+|\"[^\"]*\")")
_SHIFTED = re.compile(r", (?:splat \(i\d+ )?\d+\)?(?:, !|$)")
_RESULT = re.compile(r"^\s*%(?:[-\w$.]+|\"[^\"]*\") = (?:(?:tail|notail|musttail) )?(\w+) (.*)$")
_FLAGS = re.compile(
    r"\b(?:nuw|nsw|exact|disjoint|samesign|inbounds|nusw|nneg|contract|fast|nnan|ninf|nsz|arcp|afn|reassoc) "
)
_VECTOR = re.compile(r"<(\d+) x ([^>]+)>")
_CALLED = re.compile(r"@([\w.]+)\(")
_BINARY = {"add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "icmp"}
_FLOATING = {"fadd", "fsub", "fmul", "fcmp", "fneg"}
_CONVERSIONS = {"fptosi", "fptoui", "sitofp", "uitofp", "fpext", "fptrunc"}
_ROUNDING = {"floor", "ceil", "trunc", "rint", "round", "roundeven", "nearbyint"}
_ROOTS = {"sqrt", "sin", "cos", "exp", "exp2", "log", "log2", "log10", "pow", "tanh", "powi", "ldexp", "frexp"}
_BITS = {
    *("smin", "smax", "umin", "umax", "abs", "ctpop", "ctlz", "cttz", "bswap", "bitreverse", "fshl", "fshr"),
    *("uadd", "usub", "umul", "sadd", "ssub", "smul", "ucmp", "scmp"),
}
_OWN = {
    "assay_larger": "comparison",
    "assay_smaller": "comparison",
    "assay_narrow": "conversion",
    "assay_fma_half": "fma",
    "assay_fmuladd_half": "fma",
}
_EVEN, _LOWER, _SUMS = 0x00FF00FF, (511, 0xFFFF), 1023
"""Masks of bytes 0 and 2, of the lower of two sums of two bytes, and of what a sum of four may have."""
_NOT_TRANSCENDENTAL = {"fmodf": "division", "ldexpf": "integer", "nextafterf": "integer", "fabsf": "float"}

Counted = tuple[str, int]


def _kind(type_: str) -> tuple[str, int]:
    """The class of operations on a type, and how many of them a vector is."""
    type_ = type_.strip()
    lanes = 1
    if vector := _VECTOR.match(type_):
        lanes, type_ = int(vector[1]), vector[2]
    name = type_.split()[0].rstrip(",") if type_ else ""
    if name == "half":
        return "half", lanes
    if name in ("float", "double", "bfloat"):
        return "float", lanes
    if name[:1] == "i" and name[1:].isdigit():
        return ("long" if int(name[1:]) > 32 else "integer"), lanes
    return ("long" if name == "ptr" else "integer"), lanes


def classify(line: str) -> Counted | None:
    """What a line counts as; None: as nothing."""
    stripped = line.strip()
    if stripped.startswith(("br i1", "switch ")):
        return "branch", 1
    if (found := _RESULT.match(line)) is None:
        return _call(stripped) if stripped.startswith(("call ", "tail call ")) else None
    operation, rest = found[1], _FLAGS.sub("", found[2])
    if operation == "call":
        return _call(rest)
    if operation in _BINARY or operation in _FLOATING:
        kind, lanes = _kind(rest.split(" ", 1)[1] if operation in ("icmp", "fcmp") else rest)
        if operation == "fcmp":
            return "comparison", lanes
        return ("product", lanes) if operation == "mul" and kind == "integer" else (kind, lanes)
    return _other(operation, rest)


def _other(operation: str, rest: str) -> Counted | None:
    if operation == "fdiv":
        return "division", _kind(rest)[1]
    if operation in ("udiv", "sdiv", "urem", "srem"):
        kind, lanes = _kind(rest)
        # By a constant it is a product and shifts.
        divisor = (
            rest.rsplit(",", 1)[-1].split("!")[0].strip()
            if "!" not in rest
            else rest.split(", !")[0].rsplit(",", 1)[-1]
        )
        return (kind, 3 * lanes) if divisor.strip().lstrip("-").isdigit() else ("division", lanes)
    if operation in ("frem",):
        return "division", _kind(rest)[1]
    if operation in _CONVERSIONS:
        return "conversion", _kind(rest)[1]
    if operation == "select":
        return "select", _kind(rest.split(",", 1)[1])[1]
    if operation == "getelementptr":
        return _address(rest)
    return None


def _address(rest: str) -> Counted | None:
    indices = re.findall(r"\bi(?:32|64) (%(?:[-\w$.]+|\"[^\"]*\"))", rest)
    return ("address", len(indices)) if indices else None


def _call(rest: str) -> Counted | None:
    found = _CALLED.search(rest)
    if found is None:
        return None
    name = found[1]
    lanes = int(m[1]) if (m := re.search(r"\.v(\d+)[fi]\d+", name)) else 1
    if name in _OWN:
        return _OWN[name], 1
    if name in _NOT_TRANSCENDENTAL:
        return _NOT_TRANSCENDENTAL[name], 1
    if not name.startswith("llvm."):
        return ("transcendental", 1) if name.endswith("f") and not name.startswith("assay") else None
    return _intrinsic(name.split(".")[1], name, lanes)


def _intrinsic(base: str, name: str, lanes: int) -> Counted | None:
    if base in ("fma", "fmuladd"):
        return "fma", lanes
    if base in _ROOTS:
        return "transcendental", lanes
    if base in _ROUNDING or base in ("fptosi", "fptoui"):
        return "conversion", lanes
    if base in _BITS:
        return ("long" if ".i64" in name else "integer"), lanes
    if base in ("minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum", "is"):
        return "comparison", lanes
    if base in ("fabs", "copysign"):
        return ("half" if "f16" in name else "float"), lanes
    if base == "vector" and ".reduce." in name:
        return ("float" if re.search(r"f\d+$", name) else "integer"), max(lanes - 1, 1)
    return None


def merged(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines that a GPU's instruction does together with the one line that uses them, or is used.

    A product of integers and a sum are one instruction; so are two steps of and, or and xor, and a shift to the left by
    a constant with the sum of it.
    """
    made: dict[str, tuple[int, str, str]] = {}
    uses: dict[str, int] = {}
    taken: set[int] = set()
    full: set[int] = set()
    for number, line in enumerate(lines):
        code = line.split(", !")[0]
        names = _NAMES.findall(code)
        if (found := _RESULT.match(code)) is not None:
            made[names[0]] = (number, found[1], found[2])
            names = names[1:]
        for name in names:
            uses[name] = uses.get(name, 0) + 1
    for number, operation, rest in made.values():
        for name in dict.fromkeys(_NAMES.findall(rest)):
            inner = made.get(name)
            if inner is None or uses[name] != 1 or inner[0] in taken | full or number in taken:
                continue
            if operation in ("add", "sub") and inner[1] == "mul":
                taken.add(number)
            elif (operation in _LOGIC and inner[1] in _LOGIC) or (
                operation in ("add", "or") and inner[1] == "shl" and _SHIFTED.search(inner[2])
            ):
                taken.add(inner[0])
                full.add(number)
            else:
                continue
            break
    return taken


def byte_sums(lines: Sequence[str]) -> tuple[set[int], set[int]]:
    """The numbers of the lines that end a sum of a word's four bytes, and of the others that belong to one.

    It reads `p = (w & 0x00ff00ff) + (w >> 8 & 0x00ff00ff)` and `(p & 0xffff) + (p >> 16)`. Bits above every sum may be
    joined to it: the executor cuda makes one instruction of all that, and of no other form (cuda/sums.py).
    """
    made = {found[0]: found for number, line in enumerate(lines) if (found := _step(number, line)) is not None}
    ends: set[int] = set()
    parts: set[int] = set()
    for _, number, operation, operands in made.values():
        if operation == "add" and (inner := _summed(operands, made)):
            ends.add(number)
            parts |= inner
    joined = {
        number
        for _, number, operation, (one, other) in made.values()
        if operation == "or" and other.isdigit() and not int(other) & _SUMS and one in made and made[one][1] in ends
    }
    return ends, parts | joined


_Step = tuple[str, int, str, tuple[str, str]]


def _step(number: int, line: str) -> _Step | None:
    """A step of 32 bits: the name that it makes, where it stands, what it does, with what."""
    code = line.split(", !")[0]
    found = _RESULT.match(code)
    if found is None or found[1] not in ("add", "and", "lshr", "or"):
        return None
    kind, _, rest = _FLAGS.sub("", found[2]).partition(" ")
    one, comma, other = rest.partition(", ")
    name = code.partition("=")[0].strip()
    return (name, number, found[1], (one.strip(), other.strip())) if kind == "i32" and comma else None


def _summed(operands: tuple[str, str], made: Mapping[str, _Step]) -> set[int]:
    """The six steps before the last addition of a sum of four bytes; none where it is none."""
    low, high = _either(operands, made, lambda step: step[2] == "and" and step[3][1] in map(str, _LOWER))
    if low is None or high is None or high[2:] != ("lshr", (low[3][0], "16")):
        return set()
    pairs = made.get(low[3][0])
    if pairs is None or pairs[2] != "add":
        return set()
    even, odd = _either(pairs[3], made, lambda step: step[2:] == ("and", (step[3][0], str(_EVEN))))
    if even is None or odd is None or odd[2] != "and" or odd[3][1] != str(_EVEN):
        return set()
    for one, other in ((even, odd), (odd, even)):
        shifted = made.get(other[3][0])
        if shifted is not None and shifted[2:] == ("lshr", (one[3][0], "8")):
            return {low[1], high[1], pairs[1], even[1], odd[1], shifted[1]}
    return set()


def _either(
    names: tuple[str, str], made: Mapping[str, _Step], first: Callable[[_Step], bool]
) -> tuple[_Step | None, _Step | None]:
    """The steps of two names, that for which `first` holds in front."""
    one, other = (made.get(name) for name in names)
    if one is None or other is None:
        return None, None
    return (one, other) if first(one) else (other, one) if first(other) else (None, None)
