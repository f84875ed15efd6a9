"""Questions with a kernel each: how large a threadgroup may be, and what a misaligned load gives."""

from __future__ import annotations

import struct

from mlx_assay.conformance.capture.question import REFUSED, Question, Words, f32

RUNS = "runs"
_THREADS = "if (a[0] == thread_index_in_threadgroup) { r[0] = 1u; }"
_MEMORY = """
threadgroup uint block[{words}];
for (uint i = thread_index_in_threadgroup; i < {words}u; i += {threads}u) block[i] = a[0] ^ i;
threadgroup_barrier(mem_flags::mem_threadgroup);
if (thread_index_in_threadgroup == 0u) {{ r[0] = block[{words}u - 1u] ^ ({words}u - 1u); }}
"""
_MEMORY_THREADS = 32
_ENTRIES = 32
_MISALIGNED = f"""
threadgroup float table[{_ENTRIES + 1}];
for (uint i = thread_index_in_threadgroup; i < {_ENTRIES + 1}u; i += {4 * _ENTRIES}u) table[i] = as_type<float>(a[i]);
threadgroup_barrier(mem_flags::mem_threadgroup);
r[thread_index_in_threadgroup] =
    as_type<uint>(*(const threadgroup float*)((const threadgroup uchar*)table + thread_index_in_threadgroup));
"""


def _threads(count: int, host: str) -> Question:
    return Question(
        f"limits.threads-{count}",
        f"a threadgroup of {count} threads",
        "u32",
        (count - 1,),
        1,
        _THREADS,
        {RUNS: (1,)},
        host,
        group="own",
    )


def _memory(count: int, host: str) -> Question:
    return Question(
        f"limits.threadgroup-bytes-{count}",
        f"{count} bytes of threadgroup memory",
        "u32",
        (0x5A5A5A5A,),
        1,
        _MEMORY.format(words=count // 4, threads=_MEMORY_THREADS),
        {RUNS: (0x5A5A5A5A,)},
        host,
        group="own",
    )


def _misaligned() -> Question:
    table = f32(*(float(i + 1) for i in range(_ENTRIES + 1)))
    bytes_ = struct.pack(f"<{len(table)}I", *table)
    offsets = range(4 * _ENTRIES)
    down: Words = tuple(table[offset // 4] for offset in offsets)
    honest: Words = tuple(struct.unpack_from("<I", bytes_, offset)[0] for offset in offsets)
    return Question(
        "misaligned.threadgroup-load",
        "a float from threadgroup memory at each byte offset of 0 to 127",
        "u32",
        table,
        4 * _ENTRIES,
        _MISALIGNED,
        {"the lowest address bits are ignored": down, "the bytes at the offset": honest},
        "the bytes at the offset",
        group="own",
    )


QUESTIONS = (
    _misaligned(),
    _threads(1024, RUNS),
    _threads(1025, REFUSED),
    _memory(32768, RUNS),
    _memory(32784, REFUSED),
)


def threads(question: Question) -> int:
    """How many threads a question of its own needs."""
    if question.name.startswith("limits.threads-"):
        return int(question.name.rpartition("-")[2])
    if question.name.startswith("limits.threadgroup-bytes-"):
        return _MEMORY_THREADS
    return question.count if question.name.startswith("misaligned") else 1
