"""The sum of a word's four bytes, for which an NVIDIA GPU has one instruction, and neither Metal nor clang a name.

It is written as `p = (w & 0x00ff00ff) + (w >> 8 & 0x00ff00ff)` and `(p & 0xffff) + (p >> 16)`. What the sum was made of
stays where it stands: ptxas drops what nobody else reads.
"""

import re

_PARTS = r"(?:^\t(?:shr\.u32|and\.b32) \t%r\d+, %r\d+, \d+;\n)"
_PART = re.compile(r"\t(shr\.u32|and\.b32) \t(%r\d+), (%r\d+), (\d+);\n")
_SUM = re.compile(
    rf"(?P<bytes>{_PARTS}{{3}})^\tadd\.s32 \t(?P<pairs>%r\d+), (?P<one>%r\d+), (?P<other>%r\d+);\n"
    rf"(?P<halves>{_PARTS}{{2}})(?P<last>^\tadd\.s32 \t(?P<sum>%r\d+), (?P<high>%r\d+), (?P<low>%r\d+);\n)"
    r"(?P<or>^\tor\.b32 \t(?P<with>%r\d+), (?P=sum), (?P<bits>\d+);\n)?",
    re.M,
)
_BYTES = 0x00FF00FF
_MASKS = {511, 0xFFFF}
"""What leaves the lower half of two sums of two bytes."""


def summed(ptx: str) -> str:
    """PTX whose sums of four bytes are dp4a, with the bits that one is joined to by `or` as its addend."""
    return _SUM.sub(_replaced, ptx)


def _word(match: re.Match[str]) -> str | None:
    """The register whose bytes are summed, if that is what the lines do."""
    made = {to: (operation, of, int(number)) for operation, to, of, number in _PART.findall(match["bytes"])}
    halves = {to: (operation, of, int(number)) for operation, to, of, number in _PART.findall(match["halves"])}
    shifted = [(to, of) for to, (operation, of, number) in made.items() if (operation, number) == ("shr.u32", 8)]
    if len(made) != 3 or len(shifted) != 1:
        return None
    upper, word = shifted[0]
    parts = sorted(made.get(register, ("", "", 0)) for register in (match["one"], match["other"]))
    if parts != sorted([("and.b32", word, _BYTES), ("and.b32", upper, _BYTES)]):
        return None
    sums = [halves.get(match[name], ("", "", 0)) for name in ("high", "low")]
    masks = [number for operation, _, number in sums if operation == "and.b32"]
    if {of for _, of, _ in sums} != {match["pairs"]} or ("shr.u32", match["pairs"], 16) not in sums:
        return None
    return word if len(masks) == 1 and masks[0] in _MASKS else None


def _replaced(match: re.Match[str]) -> str:
    word = _word(match)
    if word is None:
        return match[0]
    before = match[0][: match.start("last") - match.start()]
    # Bits above every sum are added as they are joined.
    joined = match["or"] is not None and int(match["bits"]) & 1023 == 0
    to, addend = (match["with"], match["bits"]) if joined else (match["sum"], "0")
    after = "" if joined else match["or"] or ""
    return f"{before}\tdp4a.u32.u32 \t{to}, {word}, 16843009, {addend};\n{after}"
