"""Types in the two languages of Apple's bitcode: the suffixes of `air.*` names, and LLVM's own."""

import re
from typing import NamedTuple

_SCALARS = {"f16": "half", "f32": "float", "bf16": "bfloat", **{f"i{n}": f"i{n}" for n in (1, 8, 16, 32, 64)}}
_BYTES = {"half": 2, "bfloat": 2, "float": 4, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}


class Type(NamedTuple):
    """`element` is LLVM's scalar type, `lanes` the length of the vector (1: no vector)."""

    element: str
    lanes: int = 1

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.element}>" if self.lanes > 1 else self.element

    @property
    def floating(self) -> bool:
        return self.element in {"half", "float", "bfloat"}

    @property
    def bytes(self) -> int:
        """Bytes in memory; a vector of three takes as much as one of four."""
        return _BYTES[self.element] * (4 if self.lanes == 3 else self.lanes)

    @property
    def suffix(self) -> str:
        """The suffix of LLVM's overloaded intrinsics: f32, v4f16, i64."""
        scalar = {"half": "f16", "float": "f32", "bfloat": "bf16"}.get(self.element, self.element)
        return f"v{self.lanes}{scalar}" if self.lanes > 1 else scalar

    def like(self, element: str) -> "Type":
        return Type(element, self.lanes)


def parse(text: str) -> Type | None:
    """The type that LLVM writes so, or None: a pointer, an aggregate."""
    if found := re.fullmatch(r"<(\d+) x (\w+)>", text):
        return Type(found[2], int(found[1])) if found[2] in _BYTES else None
    return Type(text) if text in _BYTES else None


def is_suffix(text: str) -> bool:
    """Whether a part of an `air.*` name is a type: f32, v4f16, i64."""
    return re.sub(r"^v\d+", "", text) in _SCALARS
