"""Where the pointers of a thread lead: which variable each one was made from, as far as the text tells.

Variables' contents are followed without regard to order or fields, so that a reference parameter, `this` or a running
pointer leads where it can lead. A variable whose address goes anywhere else has escaped.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from mlx_assay.impl.executors.checker.instructions import GLOBAL, Instruction

OUTSIDE = "outside"  # arrays of the kernel, or nobody knows
OWN = "own"  # the executor's

_GLOBAL = re.compile(GLOBAL)
_HARMLESS = {"declare", "note", "begin", "alloca"}


class Pointers:
    """Roots of pointer values: names of variables (`%x`), of globals (`@x`), OUTSIDE or OWN."""

    def __init__(self, body: list[Instruction], parameters: Iterable[str]) -> None:
        self.variables = {i.result: i.type for i in body if i.kind == "alloca"}
        self._roots: dict[str, set[str]] = defaultdict(set)
        self._contents: dict[str, set[str]] = defaultdict(set)
        self.escaped: set[str] = set()
        for name in self.variables:
            self._roots[name].add(name)
        for name in parameters:
            self._roots[name].add(OWN)
        flows = [i for i in body if i.kind not in _HARMLESS]
        before = -1
        while (size := self._size()) != before:
            before = size
            for instruction in flows:
                self._flow(instruction)

    def _size(self) -> int:
        return sum(map(len, self._roots.values())) + sum(map(len, self._contents.values())) + len(self.escaped)

    def roots(self, pointer: str) -> set[str]:
        """What a pointer may have been made from."""
        if pointer[0] == "%":
            return self._roots.get(pointer, set())
        found = _GLOBAL.search(pointer)
        return {found[0]} if found else {OUTSIDE}

    def only(self, pointer: str) -> str:
        """The only root of a pointer, or OUTSIDE."""
        roots = self.roots(pointer)
        return next(iter(roots)) if len(roots) == 1 else OUTSIDE

    def _escape(self, names: Iterable[str]) -> None:
        for name in names:
            self.escaped |= {r for r in self.roots(name) if r in self.variables}

    def _store(self, pointer: str, roots: set[str]) -> None:
        for root in self.roots(pointer):
            if root in self.variables:
                self._contents[root] |= roots
            else:
                self.escaped |= {r for r in roots if r in self.variables}

    def _loaded(self, pointer: str) -> set[str]:
        found: set[str] = set()
        for root in self.roots(pointer):
            if root in self.variables:
                found |= self._contents[root]
                if root in self.escaped:
                    found.add(OUTSIDE)
            else:
                # What the scheduler hands out, and every address of an array, comes from memory of the executor's.
                found.add(OUTSIDE)
        return found

    def _flow(self, i: Instruction) -> None:
        if i.kind == "gep":
            self._roots[i.result] |= self.roots(i.pointers[0])
        elif i.kind in ("phi", "select"):
            for pointer in i.pointers:
                self._roots[i.result] |= self.roots(pointer) if pointer != i.result else set()
        elif i.kind == "load":
            if i.type == "ptr":
                self._roots[i.result] |= self._loaded(i.pointers[0])
        elif i.kind == "store":
            if i.type == "ptr":
                self._store(i.pointers[0], self.roots(i.value))
        elif i.kind == "copy":
            self._store(i.pointers[0], self._loaded(i.pointers[1]))
        elif i.kind == "call":
            own = i.value in ("@assay_lane",)
            self._roots[i.result].add(OWN if own else OUTSIDE)
            self._escape(n for n in i.names if n != i.result)
        elif i.kind not in ("set", "update"):
            if " icmp " not in i.line:
                self._escape(n for n in i.names if n != i.result)
            if " to ptr" in i.line:
                self._roots[i.result].add(OUTSIDE)
