"""The machine that asks: kernels made of questions, run on an executor, one kernel a group."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from mlx_assay.conformance.capture import limits
from mlx_assay.conformance.capture.question import Question, Words
from mlx_assay.impl import executors

_LEAST_OPERANDS = 8
"""Fewer elements than this lie in constant memory, whose pointers are of another type."""

_UNWRITTEN = float(0xA5A5A500)
"""What a result that no kernel writes holds: exact as a float, and no answer to anything."""

_THREADS = {"scalar": 1, "lanes": 32, "simdgroups": 128, "exited": 32}
_REFUSAL = 300
_BEGIN = (
    "const uint at = thread_index_in_threadgroup; const uint lane = thread_index_in_simdgroup; (void)at; (void)lane;\n"
)
_EXIT = "if (lane >= 16u) { return; }\n"


class Refused(Exception):
    """A kernel that the device did not compile or run; the text is its own, in one line."""


def asked(questions: Sequence[Question]) -> Iterator[tuple[Question, Words | Refused]]:
    """Runs the questions on the current executor; those of a group that fails together are asked one by one."""
    groups: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        groups[question.name if question.group == "own" else question.group].append(question)
    for members in groups.values():
        yield from _asked(members)


def _asked(members: Sequence[Question]) -> Iterator[tuple[Question, Words | Refused]]:
    try:
        yield from zip(members, _run(members), strict=True)
    except Refused as refusal:
        if len(members) == 1:
            yield members[0], refusal
            return
        for question in members:
            yield from _asked([question])


def _run(members: Sequence[Question]) -> list[Words]:
    import mlx.core as mx

    operands: list[int] = []
    blocks, results = [], 0
    for question in members:
        blocks.append(
            f"{{ const device uint* a = x + {len(operands)}; device uint* r = out + {results};\n{question.source}\n}}\n"
        )
        operands += question.operands
        results += question.count
    operands += [0] * (_LEAST_OPERANDS - len(operands))
    group = members[0].group
    threads = limits.threads(members[0]) if group == "own" else _THREADS[group]
    text = "".join((_BEGIN, _EXIT if group == "exited" else "", *blocks))
    try:
        kernel = executors.metal_kernel(_name(members), ["x"], ["out"], text)
        (out,) = kernel(
            inputs=[mx.array(np.array(operands, np.uint32))],
            output_shapes=[(results,)],
            output_dtypes=[mx.uint32],
            grid=(threads, 1, 1),
            threadgroup=(threads, 1, 1),
            init_value=_UNWRITTEN,
        )
        found = np.array(out)
    except (RuntimeError, ValueError, TypeError) as error:
        raise Refused(_line(error)) from error
    ends = np.cumsum([question.count for question in members])
    return [_words(part, question) for part, question in zip(np.split(found, ends[:-1]), members, strict=True)]


def _name(members: Sequence[Question]) -> str:
    """Another one for each text: MLX has kept compiled kernels by their names."""
    first = re.sub(r"\W", "_", members[0].name)
    return f"capture_{first}_and_{len(members) - 1}"


def _words(part: np.ndarray, question: Question) -> Words:
    mask = (1 << 4 * question.digits) - 1
    return tuple(int(word) & mask for word in part)


def _line(error: Exception) -> str:
    """The error in one printable line without paths."""
    text = " ".join(word for word in str(error).split() if "/" not in word)
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:_REFUSAL]
