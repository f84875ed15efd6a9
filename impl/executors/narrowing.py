"""Floats that become integers: to the nearest end of the range beyond it, and NaN to 0, as Apple's air.convert does.

C++ leaves it open, and a processor's own answer (the least integer for all of them) is none of Metal's.
"""

import re

_CONVERSION = re.compile(r"= fpto([su])i (<(\d+) x (\w+)>|\w+) ([^\n]+?) to (<\d+ x i(\d+)>|i(\d+))")
_FLOATS = {"half": "f16", "float": "f32", "double": "f64"}


def saturated(ir: str) -> str:
    """LLVM IR in which every conversion to an integer has a result for every float."""
    declarations: dict[str, str] = {}

    def called(match: re.Match[str]) -> str:
        sign, from_, lanes, element, value, to, wide, bits = match.groups()
        vector = f"v{lanes}" if lanes else ""
        name = f"llvm.fpto{sign}i.sat.{vector}i{wide or bits}.{vector}{_FLOATS[element or from_]}"
        declarations[name] = f"declare {to} @{name}({from_})"
        return f"= call {to} @{name}({from_} {value})"

    text = _CONVERSION.sub(called, ir)
    return "\n".join([text, *declarations.values(), ""]) if declarations else ir
