"""What has to be marked in a kernel's IR before everything is inlined, since the inliner folds what it can.

Marked are shifts by an amount that is not known to be less than the width (clang takes it modulo the width, as OpenCL
asks), components that a vector does not have, and where a function without a result returns before its end.
"""

import re
from collections.abc import Iterable, Iterator

from mlx_assay.impl.executors.checker.instructions import size_of
from mlx_assay.impl.executors.checker.places import Places

DECLARATIONS = """
declare void @assay_marked_shift(i64, i32) nounwind
declare void @assay_marked_component(i64, i64, i32) nounwind
declare void @assay_marked_return() nounwind
"""

_MASK = re.compile(r"^\s*(%sh[lr]\.mask\S*) = and (i\d+|<\d+ x i\d+>) (\S+), (?:splat \(i\d+ )?(\d+)")
_COMPONENT = re.compile(r"^\s*\S+ = (?:extract|insert)element <(\d+) x ([^>]+)> .*, i(?:32|64) (\d+)(?:, !|$)")
_VECTOR = re.compile(r"<(\d+) x i(\d+)>")
_DBG = re.compile(r", (!dbg !(\d+))")
_SLOT = re.compile(r"^\s*store i32 1, ptr %cleanup\.dest\.slot")
_RETURN = re.compile(r"^\s*br label %return\b")


def _lanes(type_: str, value: str, number: int, dbg: str) -> Iterator[tuple[str, str]]:
    """Lines and the i64 values of the elements of a shift's amount: (line, "") or ("", value)."""
    vector = _VECTOR.fullmatch(type_)
    scalar = f"i{vector[2]}" if vector else type_
    for k in range(int(vector[1]) if vector else 1):
        element = value
        if vector:
            element = f"%assay.mark.{number}.{k}"
            yield f"  {element} = extractelement {type_} {value}, i64 {k}{dbg}", ""
        if scalar != "i64":
            wide = f"%assay.mark.{number}.{k}.wide"
            yield f"  {wide} = zext {scalar} {element} to i64{dbg}", ""
            element = wide
        yield "", element


class _Marker:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.number = 0
        self.void = False

    def lines(self, text: Iterable[str]) -> Iterator[str]:
        """The text with its marks."""
        for line in text:
            if line.startswith("define "):
                self.void = " void @" in line and "@assay_thread(" not in line
            elif " = and " in line and (match := _MASK.match(line)):
                yield from self._shift(match[2], match[3], int(match[4]) + 1, line)
            elif "element <" in line and (match := _COMPONENT.match(line)) and int(match[3]) >= int(match[1]):
                yield from self._component(match, line)
            elif self.void and (_SLOT.match(line) or _RETURN.match(line)):
                yield f"  call void @assay_marked_return(){self._dbg(line)}"
            yield line

    def _dbg(self, line: str) -> str:
        match = _DBG.search(line)
        return f", {match[1]}" if match else ""

    def _mark(self, amount: str, width: int, line: str) -> Iterator[str]:
        yield f"  call void @assay_marked_shift(i64 {amount}, i32 {width}){self._dbg(line)}"

    def _component(self, match: re.Match[str], line: str) -> Iterator[str]:
        located = _DBG.search(line)
        if located is not None and self.places.own(int(located[2])):
            told = f"i64 {match[3]}, i64 {match[1]}, i32 {size_of(match[2])}"
            yield f"  call void @assay_marked_component({told}){self._dbg(line)}"

    def _shift(self, type_: str, value: str, width: int, line: str) -> Iterator[str]:
        match = _DBG.search(line)
        if match is None or not self.places.own(int(match[2])):
            return
        self.number += 1
        for made, amount in _lanes(type_, value, self.number, self._dbg(line)):
            if made:
                yield made
            else:
                yield from self._mark(amount, width, line)


def prepared(ir: str) -> str:
    """IR with its marks."""
    marker = _Marker(Places(ir))
    return "\n".join(marker.lines(ir.split("\n"))) + DECLARATIONS
