"""Conversions between number types, `air.convert.*`.

A float outside an integer's range converts to the nearest end and NaN to 0: Metal leaves it open. To bfloat every
conversion rounds once, to nearest even.
"""

from mlx_assay.impl.executors.apple.assembly import Assembly
from mlx_assay.impl.executors.apple.types import Type


def _to_bfloat(code: Assembly, source: Type, value: str, signed: bool) -> str:
    if source.floating:
        wide = value if source.element == "float" else code.value(f"fpext {source.element} {value} to float")
        return code.value(f"fptrunc float {wide} to bfloat")
    wide = (
        value if source.element == "i64" else code.value(f"{'s' if signed else 'z'}ext {source.element} {value} to i64")
    )
    bits = code.call("i16", f"assay_air_bfloat_from_{'s' if signed else 'u'}64", f"i64 {wide}")
    return code.value(f"bitcast i16 {bits} to bfloat")


def convert(code: Assembly, name: str, result: Type, source: Type) -> str:
    """air.convert.<kind>.<type>.<kind>.<type>; a kind is f, s or u."""
    to, _, of, _ = name.split(".")[2:6]
    if to != "f" and of != "f":
        return _resize(code, result, source, signed=of == "s")
    if result.element == "bfloat":
        return code.map(result, [(source, "%a0")], lambda v: _to_bfloat(code, source, v, of == "s"))
    if to == "f" and of != "f":
        return code.value(f"{'s' if of == 's' else 'u'}itofp {source} %a0 to {result}")
    if to == "f":
        if "half" in (result.element, source.element) and "bfloat" in (result.element, source.element):
            value = code.value(f"fpext {source} %a0 to {source.like('float')}")
            return code.value(f"fptrunc {source.like('float')} {value} to {result}")
        if result.element == source.element:
            return "%a0"
        return code.value(f"{'fpext' if result.element == 'float' else 'fptrunc'} {source} %a0 to {result}")
    if result.element == "i1":
        return code.value(f"fcmp une {source} %a0, zeroinitializer")
    wide, value = source, "%a0"
    if source.element == "bfloat":
        wide = source.like("float")
        value = code.value(f"fpext {source} %a0 to {wide}")
    return code.call(str(result), f"llvm.fpto{to}i.sat.{result.suffix}.{wide.suffix}", f"{wide} {value}")


def _resize(code: Assembly, result: Type, source: Type, signed: bool) -> str:
    if result.bytes == source.bytes and result.element == source.element:
        return "%a0"
    if result.bytes > source.bytes or source.element == "i1":
        return code.value(f"{'s' if signed else 'z'}ext {source} %a0 to {result}")
    return code.value(f"trunc {source} %a0 to {result}")
