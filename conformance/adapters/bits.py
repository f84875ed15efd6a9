"""The steps of an examination that look at bits: echoed encodings, and cases as the judge judges them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np

from mlx_assay.conformance.adapters.conversation import Conversation
from mlx_assay.conformance.adapters.examination import Examiner
from mlx_assay.conformance.adapters.greeting import ECHO
from mlx_assay.conformance.adapters.manners import plain_case
from mlx_assay.conformance.adapters.target import PROGRAM
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.verdict import INCOMPLETE, Verdict
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.encoding import FORMATS, bits_of, edges, is_denormal, is_nan
from mlx_assay.fixtures.tensor import DTYPES

CASE_SECONDS = 60.0
"""For a whole case, as in a run: its launches are compiled in that time, which is none of the program's."""

SHAPES = ((), (0, 4), (1, 1, 1), (2, 3, 4))
MEND = "copy bytes: an array of floats that is read element by element need not keep NaN, -0 and denormals"


def echoed() -> Iterator[np.ndarray]:
    """Arrays whose every bit has to come back: each encoding of 16 bits, edges and random bits of the rest, shapes."""
    every = np.arange(1 << 16, dtype=np.uint16)
    random = np.random.default_rng(1)
    for name, dtype in DTYPES.items():
        if dtype.itemsize == 2:
            yield every.view(dtype)
        elif name in FORMATS:
            yield np.concatenate([edges(name), np.frombuffer(random.bytes(4 * 4096), dtype)])
        else:
            yield np.frombuffer(random.bytes(dtype.itemsize * 1024), dtype)
    for shape in SHAPES:
        yield np.full(shape, -0.0, np.float32)


def echo(examiner: Examiner) -> None:
    """Every bit of every dtype through the operation `echo`, which is optional."""

    def talked(conversation: Conversation) -> None:
        for seq, array in enumerate(echoed(), 1):
            heard = examiner.asked(conversation, ECHO, {"x": array}, seq)
            if heard.output is None:
                if not heard.fault:
                    examiner.fault(
                        f"echo of {_told(array)} has no output", "answer `echo` with the tensor of `in` itself"
                    )
            elif (told := _difference(array, heard.output)) is not None:
                examiner.fault(f"echo of {_told(array)}: {told}", MEND)

    if ECHO not in examiner.operations:
        examiner.advise(
            "it has no operation `echo`, so what its files do to NaN, -0 and denormals was not looked at alone",
            "name `echo` among the operations, and answer it with the one tensor `x` as it came",
        )
        return
    examiner.talk(talked)


def _told(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _difference(sent: np.ndarray, back: np.ndarray) -> str | None:
    """What is not as it was sent, or None."""
    if (sent.dtype, sent.shape) != (back.dtype, back.shape):
        return f"came back as {_told(back)}"
    wrong = np.flatnonzero(bits_of(sent).reshape(-1) != bits_of(back).reshape(-1))
    if not wrong.size:
        return None
    one, other = (array.reshape(-1)[wrong[:1]] for array in (sent, back))
    return f"{_bits(one)}, {_kind(one)}, came back as {_bits(other)} ({wrong.size} of {sent.size} differ)"


def _bits(one: np.ndarray) -> str:
    return f"0x{int(bits_of(one)[0]):0{2 * one.dtype.itemsize}x}"


def _kind(one: np.ndarray) -> str:
    if str(one.dtype) not in FORMATS:
        return "a number"
    if is_nan(one)[0]:
        return "a NaN"
    if is_denormal(one)[0]:
        return "a denormal"
    value = float(one[0])
    return "an infinity" if np.isinf(value) else "-0" if value == 0 and np.signbit(value) else "a number"


def cases(examiner: Examiner) -> None:
    """A case of each operation and dtype, and one that must fail, judged as in a run."""
    limit = max(CASE_SECONDS, examiner.limit)
    with Implementation(f"{PROGRAM} {shlex.join(examiner.argv)}", limit=limit) as implementation:
        implementation.answer_limit = examiner.limit
        try:
            operations = implementation.operations
        except ImplementationError as error:
            examiner.fault(str(error), "the steps above say what keeps the program from being judged")
            return
        for operation in operations:
            for case in _chosen(operation):
                _judged(examiner, case, implementation)


def _chosen(operation: str) -> list[Case]:
    found = [plain_case(operation, dtype) for dtype in contracts()[operation].dtypes]
    found.append(plain_case(operation, failing=True))
    return [chosen[0] for chosen in found if chosen is not None]


def _judged(examiner: Examiner, case: Case, implementation: Implementation) -> None:
    record = judge(case, implementation)
    if record.verdict in INCOMPLETE:
        examiner.leave_out(record.message)
    elif record.verdict is Verdict.UNSUPPORTED:
        examiner.advise(record.message, "a gate may require this case; leave it out there if it cannot be had")
    elif not record.conforms:
        examiner.fault(
            f"{record.verdict.value}: {record.message}", "run the command above: it shows what came and what was due"
        )
