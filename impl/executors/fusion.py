"""Fused products and sums in LLVM IR: of halves they are rounded once, and where contraction is off there are none."""

import re

# clang lowers a fused half operation to an f32 fma and rounds twice. Where halves are not native, the operation is sent
# to an exact function instead.
_FUSED_HALF = re.compile(r"@llvm\.fmuladd\.(v(\d+))?f16\b")
_FUSED = re.compile(r"@llvm\.fmuladd\.((?:v(\d+))?f(16|32))\b")
_CONTRACT_FLAG = re.compile(r"(?<== )(f(?:mul|add|sub|neg|div)(?: \w+)*?) contract\b")


def _fused_half_definition(match: re.Match[str]) -> str:
    if match[2] is None:
        return (
            "define internal half @assay.fmuladd.f16(half %a, half %b, half %c) alwaysinline {\n"
            "  %x = bitcast half %a to i16\n  %y = bitcast half %b to i16\n  %z = bitcast half %c to i16\n"
            "  %r = call zeroext i16 @assay_fmuladd_half(i16 zeroext %x, i16 zeroext %y, i16 zeroext %z)\n"
            "  %h = bitcast i16 %r to half\n  ret half %h\n}\n"
        )
    size = int(match[2])
    type_ = f"<{size} x half>"
    lines = [f"define internal {type_} @assay.fmuladd.v{size}f16({type_} %a, {type_} %b, {type_} %c) alwaysinline {{"]
    for i in range(size):
        lines += [f"  %{v}{i} = extractelement {type_} %{v}, i32 {i}" for v in "abc"]
        lines.append(f"  %f{i} = call half @assay.fmuladd.f16(half %a{i}, half %b{i}, half %c{i})")
        lines.append(f"  %r{i} = insertelement {type_} {f'%r{i - 1}' if i else 'poison'}, half %f{i}, i32 {i}")
    return "\n".join([*lines, f"  ret {type_} %r{size - 1}", "}", ""])


def exact_half(ir: str) -> str:
    """LLVM IR whose fused half operations call `assay_fmuladd_half`, which rounds once."""
    found = {m[0]: m for m in _FUSED_HALF.finditer(ir)}
    if not found:
        return ir
    ir = re.sub(r"^declare [^\n]*@llvm\.fmuladd\.(?:v\d+)?f16\([^\n]*$", "", ir, flags=re.M)
    ir = _FUSED_HALF.sub(lambda m: f"@assay.fmuladd.{m[1] or ''}f16", ir)
    scalar = re.match(_FUSED_HALF, "@llvm.fmuladd.f16")
    assert scalar is not None
    matches = {"@llvm.fmuladd.f16": scalar, **found}
    definitions = "".join(_fused_half_definition(m) for m in matches.values())
    return f"{ir}\ndeclare zeroext i16 @assay_fmuladd_half(i16 zeroext, i16 zeroext, i16 zeroext)\n{definitions}"


def uncontracted(ir: str) -> str:
    """LLVM IR in which every product and every sum is rounded, whatever the text's pragmas say."""
    types = {m[1]: ("half" if m[3] == "16" else "float", m[2]) for m in _FUSED.finditer(ir)}
    ir = re.sub(r"^declare [^\n]*@llvm\.fmuladd\.[^\n]*$", "", _CONTRACT_FLAG.sub(r"\1", ir), flags=re.M)
    definitions = []
    for suffix, (scalar, lanes) in types.items():
        type_ = f"<{lanes} x {scalar}>" if lanes else scalar
        definitions.append(
            f"define internal {type_} @assay.apart.{suffix}({type_} %a, {type_} %b, {type_} %c) alwaysinline {{\n"
            f"  %p = fmul {type_} %a, %b\n  %s = fadd {type_} %p, %c\n  ret {type_} %s\n}}\n"
        )
    return "\n".join([_FUSED.sub(r"@assay.apart.\1", ir), *definitions])
