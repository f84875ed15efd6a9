"""Building one function's text in LLVM's language."""

from collections.abc import Sequence

from mlx_assay.impl.executors.apple.types import Type

# Of f32 alone: a denormal operand or result counts as zero, or is kept. LLVM must not fold otherwise.
FLUSHED = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'
KEPT = '"denormal-fp-math-f32"="ieee,ieee"'


class Assembly:
    """The text of one `air.*` function: lines are added, values get names, needed symbols are collected.

    A parameter is named %0, %1 ... A collective has one parameter more than its declaration, %site.
    """

    def __init__(self, name: str, result: str, parameters: Sequence[str], collective: bool) -> None:
        self.needs: set[str] = set()
        self.text = ""
        self._result = result
        self._lines: list[str] = []
        self._count = 0
        shown = [f"{t} %a{i}" for i, t in enumerate(parameters)] + (["i32 %site"] if collective else [])
        self._head = f"define internal {result} @{name}({', '.join(shown)}) alwaysinline nounwind {FLUSHED} {{"

    def line(self, text: str) -> None:
        self._lines.append(f"  {text}")

    def value(self, text: str) -> str:
        """The name of what this instruction computes."""
        self._count += 1
        self.line(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def call(self, result: str, symbol: str, *arguments: str) -> str:
        """Calls a declared function; its declaration is remembered. Arguments are "type value"."""
        types = ", ".join(a.rpartition(" ")[0] for a in arguments)
        self.needs.add(f"declare {result} @{symbol}({types})")
        text = f"call {result} @{symbol}({', '.join(arguments)})"
        if result == "void":
            self.line(text)
            return ""
        return self.value(text)

    def field(self, pointer: str, offset: int) -> str:
        return self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer

    def returns(self, value: str = "") -> str:
        """Ends the function and gives its text."""
        self.line(f"ret {self._result} {value}".rstrip())
        self.text = "\n".join([self._head, *self._lines, "}", ""])
        return self.text

    def map(self, type_: Type, operands: Sequence[tuple[Type, str]], one: object) -> str:
        """Applies `one(*scalars)` to every lane of vectors of one length."""
        assert callable(one)
        if type_.lanes == 1:
            return str(one(*(v for _, v in operands)))
        out = "poison"
        for i in range(type_.lanes):
            scalars = [self.value(f"extractelement {t} {v}, i32 {i}") for t, v in operands]
            out = self.value(f"insertelement {type_} {out}, {type_.element} {one(*scalars)}, i32 {i}")
        return out
