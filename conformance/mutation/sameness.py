"""Whether a mutant is, to the compiler, the kernel that it was made of: in every text that a case launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import msgspec

from mlx_assay.conformance.mutation.mutant import Mutant
from mlx_assay.impl.executors import fidelity, host, objects
from mlx_assay.impl.executors.cache import kept
from mlx_assay.impl.executors.signature import ATTRIBUTES, Text
from mlx_assay.impl.executors.translation import translate

_MADE_BY_NAME = (*ATTRIBUTES, "_shape", "_strides", "_ndim")
"""Names in a kernel's body that decide of its parameters."""


class Texts:
    """What the unchanged kernels were compiled from, as the stage wrote it down."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, Text] = {}

    def holding(self, text: str) -> Iterator[Text]:
        """The texts that hold a file's text."""
        for path in sorted(self._folder.glob("*.json")):
            if path not in self._read:
                self._read[path] = msgspec.json.decode(path.read_bytes(), type=Text)
        known = {str(one): one for one in self._read.values()}
        return (one for one in known.values() if text in one.header or text == one.source)

    def same(self, mutant: Mutant) -> int:
        """In how many texts a mutant is compiled to the same code; 0 where one differs, or does not compile."""
        old, new = mutant.source.text, mutant.text
        touched = f"{old[mutant.edit.start - 40 : mutant.edit.end + 40]}{mutant.edit.new}"
        if any(name in touched for name in _MADE_BY_NAME):
            return 0
        count = 0
        for text in self.holding(old):
            changed = replace(text, header=text.header.replace(old, new), source=text.source.replace(old, new))
            try:
                if code(changed) != code(text):
                    return 0
            except objects.CompilationError:
                return 0
            count += 1
        return count


@lru_cache(maxsize=512)
def code(text: Text) -> bytes:
    """The library that a text is compiled to. CompilationError: it is not."""
    source, switches, defines = translate(text), fidelity.current(), host.MATH_MODES["safe"]
    objects.build(source, switches, defines)
    return kept(objects.digest_key("kernel", source, *switches.compiled, *defines), _missing, Path.read_bytes)


def _missing(path: Path) -> None:
    raise OSError(f"Expected the library that was just made but it is gone: {path}")
