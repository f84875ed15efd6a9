"""The functions that Apple's kernels call by name (`air.*`), written in LLVM's language or handed to the runtime.

Rules where Metal leaves a choice open: of minima and maxima NaN loses; a bfloat fused operation is done in f32 and
rounded once more.
"""

import re
from dataclasses import dataclass

from mlx_assay.impl.executors.apple import atomic, collectives, conversion
from mlx_assay.impl.executors.apple.assembly import Assembly
from mlx_assay.impl.executors.apple.layout import Layout
from mlx_assay.impl.executors.apple.types import Type, is_suffix, parse

# Decided by the C library of this machine, not by known bits.
OPAQUE_1 = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cos",
        "cosh",
        "cospi",
        "exp",
        "exp10",
        "exp2",
        "log",
        "log10",
        "log2",
        "rsqrt",
        "sin",
        "sinh",
        "sinpi",
        "tan",
        "tanh",
        "tanpi",
    ]
)
OPAQUE_2 = frozenset({"atan2", "pow", "powr"})
EXACT_1 = frozenset({"sign", "saturate", "fract"})
EXACT_2 = frozenset({"fmax", "fmin", "fdim", "fmod"})
INTRINSICS_1 = {"fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "round": "round"}
INTRINSICS_1 |= {"sqrt": "sqrt"}
INTEGER_1 = {"popcount": "ctpop", "reverse_bits": "bitreverse"}
INTEGER_2 = {"max.s": "smax", "max.u": "umax", "min.s": "smin", "min.u": "umin"}
INTEGER_2 |= {"add_sat.s": "sadd.sat", "add_sat.u": "uadd.sat", "sub_sat.s": "ssub.sat", "sub_sat.u": "usub.sat"}

_COHERENT = re.compile(r"air\.(load|store)\.system_coherent\.volatile\.\w+\.\w+")


class UnknownFunction(RuntimeError):
    """A kernel calls an `air.*` function that this runtime does not have."""


@dataclass(frozen=True)
class Definition:
    """One function. `collective`: its calls get a site as last argument. `opaque`: the C library decides its bits."""

    text: str
    needs: frozenset[str]
    collective: bool
    opaque: bool
    ordered: bool


def _is_collective(name: str) -> bool:
    return bool(
        re.match(
            r"air\.(wg\.barrier|simdgroup\.barrier|simd_|quad_|simdgroup_matrix_8x8_(?:multiply|load|store))", name
        )
    )


def _base(name: str) -> tuple[str, bool]:
    """ "air.fast_exp.v4f32" -> ("exp", True): the operation, and whether the fast one."""
    parts = [p for p in name.split(".")[1:] if not is_suffix(p)]
    base = ".".join(parts)
    return (base[5:], True) if base.startswith("fast_") else (base, False)


def _through_float(code: Assembly, type_: Type, parameters: list[Type], symbol: str) -> str:
    """Calls a function of floats for each lane; a narrower type is widened before and rounded once after."""

    def one(*scalars: str) -> str:
        wide = []
        for value, parameter in zip(scalars, parameters, strict=True):
            if parameter.floating and parameter.element != "float":
                value = code.value(f"fpext {parameter.element} {value} to float")
            wide.append(f"{'float' if parameter.floating else parameter.element} {value}")
        result = code.call("float", symbol, *wide)
        return result if type_.element == "float" else code.value(f"fptrunc float {result} to {type_.element}")

    return code.map(type_, [(p, f"%a{i}") for i, p in enumerate(parameters)], one)


def fused(code: Assembly, type_: Type) -> str:
    """a * b + c rounded once: halves by the runtime, since an f32 fma would round twice."""

    def half(a: str, b: str, c: str) -> str:
        bits = [f"i16 zeroext {code.value(f'bitcast half {v} to i16')}" for v in (a, b, c)]
        return code.value(f"bitcast i16 {code.call('i16', 'assay_fma_half', *bits)} to half")

    def bfloat(a: str, b: str, c: str) -> str:
        wide = [f"float {code.value(f'fpext bfloat {v} to float')}" for v in (a, b, c)]
        return code.value(f"fptrunc float {code.call('float', 'llvm.fma.f32', *wide)} to bfloat")

    operands = [(type_, f"%a{i}") for i in range(3)]
    if type_.element == "float":
        return code.call(str(type_), f"llvm.fma.{type_.suffix}", *(f"{type_} {v}" for _, v in operands))
    return code.map(type_, operands, half if type_.element == "half" else bfloat)


def _dot(code: Assembly, type_: Type) -> str:
    """As the runtime's own: the first product, then one step a lane, fused where contraction is on."""
    pairs = []
    for i in range(type_.lanes):
        pairs.append([code.value(f"extractelement {type_} %a{n}, i32 {i}") for n in (0, 1)])
    total = code.value(f"fmul {type_.element} {pairs[0][0]}, {pairs[0][1]}")
    for a, b in pairs[1:]:
        if type_.element == "float":
            total = code.call("float", "llvm.fmuladd.f32", f"float {a}", f"float {b}", f"float {total}")
        else:
            product = code.value(f"fmul {type_.element} {a}, {b}")
            total = code.value(f"fadd {type_.element} {product}, {total}")
    return total


def _integer(code: Assembly, base: str, result: Type) -> str | None:
    operands = [f"{result} %a{i}" for i in range(3)]
    if base in INTEGER_1:
        return code.call(str(result), f"llvm.{INTEGER_1[base]}.{result.suffix}", operands[0])
    if base in INTEGER_2:
        return code.call(str(result), f"llvm.{INTEGER_2[base]}.{result.suffix}", *operands[:2])
    if base in {"clz", "ctz"}:
        intrinsic = {"clz": "ctlz", "ctz": "cttz"}[base]
        return code.call(str(result), f"llvm.{intrinsic}.{result.suffix}", operands[0], "i1 false")
    if base in {"abs.s", "abs.u"}:
        return (
            "%a0" if base == "abs.u" else code.call(str(result), f"llvm.abs.{result.suffix}", operands[0], "i1 false")
        )
    if base in {"clamp.s", "clamp.u"}:
        sign = base[-1]
        low = code.call(str(result), f"llvm.{sign}max.{result.suffix}", operands[0], operands[1])
        return code.call(str(result), f"llvm.{sign}min.{result.suffix}", f"{result} {low}", operands[2])
    return None


def _float(code: Assembly, base: str, fast: bool, result: Type, parameters: list[Type]) -> str | None:
    if base in INTRINSICS_1:
        return code.call(str(result), f"llvm.{INTRINSICS_1[base]}.{result.suffix}", f"{result} %a0")
    if base == "copysign":
        return code.call(str(result), f"llvm.copysign.{result.suffix}", f"{result} %a0", f"{result} %a1")
    if base == "fma":
        return fused(code, result)
    if base == "dot":
        return _dot(code, parameters[0])
    if base in OPAQUE_1 | OPAQUE_2 | EXACT_1 | EXACT_2 | {"ldexp", "clamp"}:
        name = "fast_tanh" if fast and base == "tanh" else base
        return _through_float(code, result, parameters, f"assay_air_{name}")
    return None


def _simple(code: Assembly, name: str, result: str) -> str | None:
    if re.fullmatch(r"air\.is_uniform\.\w+", name):
        # Apple's compiler proved it; it is a hint to its back end.
        return code.returns("true")
    if name == "air.normalize_function_constant_predicate.i8":
        return code.returns(code.value(f"zext i1 {code.value('icmp ne i8 %a0, 0')} to i8"))
    if re.fullmatch(r"air\.get_simdgroup_size\.i\d+", name):
        return code.returns("32")
    if re.fullmatch(r"air\.atomic\.fence", name):
        code.line("fence seq_cst")
        return code.returns()
    if name.startswith("air.simdgroup_matrix_8x8_init_filled."):
        matrix = parse(result)
        assert matrix is not None
        first = code.value(f"insertelement {result} poison, {matrix.element} %a0, i32 0")
        return code.returns(code.value(f"shufflevector {result} {first}, {result} poison, <64 x i32> zeroinitializer"))
    return None


def _body(name: str, result: str, parameters: list[str], code: Assembly, layout: Layout) -> str | None:
    if text := _simple(code, name, result):
        return text
    if text := atomic.define(name, result, parameters, code):
        return text
    if found := _COHERENT.fullmatch(name):
        if found[1] == "load":
            return code.returns(code.value(f"load volatile {result}, {parameters[0]} %a0"))
        code.line(f"store volatile {parameters[0]} %a0, {parameters[1]} %a1")
        return code.returns()
    if _is_collective(name):
        return collectives.Collective(layout).define(name, result, parameters, code)
    made, given = parse(result), [parse(p) for p in parameters]
    types = [g for g in given if g is not None]
    if made is None or len(types) != len(given):
        return None
    if name.startswith("air.convert."):
        return code.returns(conversion.convert(code, name, made, types[0]))
    base, fast = _base(name)
    value = _float(code, base, fast, made, types) if made.floating else _integer(code, base, made)
    return None if value is None else code.returns(value)


def define(name: str, result: str, parameters: list[str], layout: Layout) -> Definition:
    """The definition of a declared `air.*` function. UnknownFunction: this runtime does not have it."""
    collective = _is_collective(name)
    code = Assembly(name, result, parameters, collective)
    text = _body(name, result, parameters, code, layout)
    if text is None:
        raise UnknownFunction(
            f"{result} {name}({', '.join(parameters)}) is not among the functions of this runtime "
            "(docs/apple-kernels.md lists them): add it to mlx_assay/impl/executors/apple/air.py"
        )
    base, _ = _base(name)
    return Definition(
        text=text,
        needs=frozenset(code.needs),
        collective=collective,
        opaque=base in OPAQUE_1 | OPAQUE_2,
        ordered=bool(collectives.ORDERED.fullmatch(name)),
    )
