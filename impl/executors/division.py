"""Integer division without traps: LLVM leaves a division by zero undefined, and processors differ in what they do."""

import re

_DIVISION = re.compile(r"= ([su])(div|rem)( exact)? ((?:<(\d+) x )?i(8|16|32|64)>?) ([^\n,]+), ([^\n,]+)")
_CONSTANT = re.compile(r"-?[1-9]\d*")


def _definition(signed: bool, remainder: bool, type_: str, lanes: str | None, bits: str) -> str:
    """Quotient by zero: every bit set; remainder by zero: the dividend. The least number by -1: itself, and 0."""
    name = _name(signed, remainder, lanes, bits)
    flag = f"<{lanes} x i1>" if lanes else "i1"
    operation = f"{'s' if signed else 'u'}{'rem' if remainder else 'div'}"
    lines = [
        f"define internal {type_} @{name}({type_} %a, {type_} %b) alwaysinline nounwind {{",
        f"  %zero = icmp eq {type_} %b, zeroinitializer",
    ]
    one = _splat(lanes, bits, 1)
    if signed:
        # By one as by minus one nothing remains.
        lines += [
            f"  %minus = icmp eq {type_} %b, {_splat(lanes, bits, -1)}",
            f"  %unsafe = or {flag} %zero, %minus",
            f"  %by = select {flag} %unsafe, {type_} {one}, {type_} %b",
            f"  %negated = sub {type_} zeroinitializer, %a",
        ]
    else:
        lines += [f"  %by = select {flag} %zero, {type_} {one}, {type_} %b"]
    lines += [f"  %plain = {operation} {type_} %a, %by"]
    some = "%plain"
    if signed and not remainder:
        lines += [f"  %some = select {flag} %minus, {type_} %negated, {type_} %plain"]
        some = "%some"
    by_zero = "%a" if remainder else _splat(lanes, bits, -1)
    lines += [f"  %out = select {flag} %zero, {type_} {by_zero}, {type_} {some}", f"  ret {type_} %out", "}", ""]
    return "\n".join(lines)


def _splat(lanes: str | None, bits: str, value: int) -> str:
    return f"<{', '.join([f'i{bits} {value}'] * int(lanes))}>" if lanes else str(value)


def _name(signed: bool, remainder: bool, lanes: str | None, bits: str) -> str:
    return f"assay.{'s' if signed else 'u'}{'rem' if remainder else 'div'}.{f'v{lanes}' if lanes else ''}i{bits}"


def untrapped(ir: str) -> str:
    """LLVM IR whose integer divisions have a result for every operand; those by a constant stay as they are."""
    definitions: dict[str, str] = {}

    def called(match: re.Match[str]) -> str:
        sign, operation, exact, type_, lanes, bits, a, b = match.groups()
        if exact or (_CONSTANT.fullmatch(b) and b != "-1"):
            return match[0]
        signed, remainder = sign == "s", operation == "rem"
        name = _name(signed, remainder, lanes, bits)
        definitions.setdefault(name, _definition(signed, remainder, type_, lanes, bits))
        return f"= call {type_} @{name}({type_} {a}, {type_} {b})"

    text = _DIVISION.sub(called, ir)
    return "\n".join([text, *definitions.values()]) if definitions else ir
