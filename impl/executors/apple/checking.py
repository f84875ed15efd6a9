"""Apple's kernels under the checker: device and threadgroup accesses ask before they are made.

Bitcode holds no lines, so that a place is an instruction, by its number and its text. What optimisation has removed is
not seen; the thread's own memory, constant memory, shifts and endless loops are not looked at.
"""

import re
from collections.abc import Iterator

from mlx_assay.impl.executors.checker.definitions import ATOMIC, READ, UPDATE, WRITE
from mlx_assay.impl.executors.checker.instructions import size_of, split_typed

_POINTER = r"ptr addrspace\(([13])\) (%(?:[-\w$.]+|\"[^\"]*\"))"
_ALIGN = re.compile(r"\balign (\d+)")
_LOAD = re.compile(rf"= load (?:volatile )?(.+?), {_POINTER}")
_STORE = re.compile(rf"^\s*store (?:volatile )?(.+), {_POINTER}")
_ATOMIC = re.compile(rf"@air\.atomic\.\w+\.(\w+)[\w.]*\({_POINTER}")
_VARIABLE = re.compile(r"(%assay\.threadgroup\.(\d+)\.0 = )getelementptr i8, ptr %assay\.arena, i64 \d+")
_BARRIER = re.compile(r"(define internal void @air\.wg\.barrier\([^\n]*\n  call void @)assay_barrier\(i32 %site\)")
_MEETING = re.compile(r"(define internal void @air\.simdgroup\.barrier\([^\n]*\{\n).*?(?=  ret void\n\})", re.S)
_ENTRY = re.compile(r"(define void @assay_thread\([^\n]*\n.*?)(?=  ret void\n\})", re.S)
_COLLECTIVE = re.compile(r"call [^@\n]*@air\.[\w.]+\([^\n]*i32 (\d+)\)")
_DECLARED = """
declare ptr @assay_access(ptr, i32, i32, i32) nounwind
declare ptr @assay_array(i32) nounwind
declare void @assay_flagged_barrier(i32, i32)
declare void @assay_flagged_simdgroup_barrier(i32, i32)
declare void @assay_returns(i32) nounwind
"""


class Instructions:
    """The places of a kernel: after number 0, which is unknown, its collectives as they are numbered, then accesses."""

    def __init__(self, collectives: int) -> None:
        self.texts = [""] * collectives

    def _access(self, line: str, space: str, pointer: str, size: int, how: int, align: int) -> Iterator[str]:
        self.texts.append(line.partition(", !")[0].strip())
        number = len(self.texts)
        name = f"%assay.access.{number}"
        yield f"  {name}.0 = addrspacecast ptr addrspace({space}) {pointer} to ptr"
        yield f"  {name}.1 = call ptr @assay_access(ptr {name}.0, i32 {size}, i32 {how | align << 8}, i32 {number})"
        yield f"  {name} = addrspacecast ptr {name}.1 to ptr addrspace({space})"
        yield line.replace(f"ptr addrspace({space}) {pointer}", f"ptr addrspace({space}) {name}", 1)

    def _line(self, line: str) -> Iterator[str]:
        align = int(found[1]) if (found := _ALIGN.search(line)) else 1
        if " load " in line and (m := _LOAD.search(line)) and (size := size_of(m[1])):
            yield from self._access(line, m[2], m[3], size, READ, align)
        elif "store " in line and (m := _STORE.search(line)) and (size := size_of(split_typed(m[1])[0])):
            head, _, tail = line.rpartition(f"ptr addrspace({m[2]}) {m[3]}")
            *asked, _ = self._access(line, m[2], m[3], size, WRITE, align)
            yield from asked
            yield f"{head}ptr addrspace({m[2]}) %assay.access.{len(self.texts)}{tail}"
        elif "@air.atomic." in line and (m := _ATOMIC.search(line)):
            how = {"load": READ, "store": WRITE}.get(m[1], WRITE | UPDATE) | ATOMIC
            yield from self._access(line, m[2], m[3], 4, how, 4)
        else:
            if (m := _COLLECTIVE.search(line)) and 0 < int(m[1]) <= len(self.texts):
                self.texts[int(m[1]) - 1] = line.partition(", !")[0].strip()
            yield line

    def rewritten(self, text: str) -> str:
        """A lowered module in which the kernel's own functions ask before their accesses."""
        out: list[str] = []
        own = False
        for line in text.split("\n"):
            if line.startswith("define "):
                own = not re.search(r"@\"?(?:air\.|assay)", line)
            out += self._line(line) if own else (line,)
        text = _VARIABLE.sub(r"\1call ptr @assay_array(i32 \2)", "\n".join(out))
        text = _BARRIER.sub(r"\1assay_flagged_barrier(i32 %site, i32 %a0)", text)
        text = _MEETING.sub(r"\1  call void @assay_flagged_simdgroup_barrier(i32 %site, i32 %a0)\n", text)
        return _ENTRY.sub(r"\1  call void @assay_returns(i32 0)\n", text) + _DECLARED
