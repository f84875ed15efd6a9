"""Every trial; those of the gate are one of each kernel's form and dtype, the others run at night."""

from __future__ import annotations

import re
from functools import cache

from mlx_assay.impl.executors.stock.naming import define
from trials import (
    attention,
    convolutions,
    elementwise,
    gathered,
    indexing,
    matrices,
    ordering,
    quantised,
    recurrences,
    reductions,
    rows,
    transforms,
)  # fmt: skip
from trials.trial import Trial

MODULES = (
    elementwise, reductions, rows, ordering, matrices, quantised, gathered, attention, transforms, convolutions,
    indexing, recurrences,
)  # fmt: skip
SIZES = re.compile(r"\d+(?!float|int|_t)")
PLAIN = re.compile(r"bfloat16(?:_t)?|float16(?:_t)?|float32|complex64|bool_|u?int\d+|half|float2?")


@cache
def every() -> tuple[Trial, ...]:
    return tuple(trial for module in MODULES for trial in module.trials())


# Of these each dtype is in the gate.
EACH_DTYPE = re.compile(
    r"argmax|block_(softmax|logsumexp)_(float|bfloat)|rms(float|bfloat)|row_reduce_(looped|simple)\w*sum"
    r"|col_reduce_looped\w*sum|gemv_(float|bfloat)|affine_qmv_fast|vv_Add|v_Exp(?!m)"
)
# Of these one stands for all in the gate.
ALIKE = (
    r"mxfp|nvfp", r"prod|min|max", r"(Not|NaN)?Equal|(Greater|Less)(Equal)?", r"Bitwise(And|Or|Xor)|(Left|Right)Shift",
    r"(reverse_)?(in|ex)clusive", r"_(left|right)\b", r"large", r"Ceil|Floor|Round", r"Maximum|Minimum", r"\b[nt][nt]_",
    r"[tn]aligned", r"true|false", r"Logical(And|Or)", r"Real|Imag", r"argmax|argmin", r"(Sum|Prod|Max|Min)[<,]",
    r"ss_|sv_|vs_|svn_|vsn_", r"(Arc)?(Cos|Sin|Tan)h?float",
)  # fmt: skip


def form(trial: Trial) -> str:
    """The kernel's function, its name without sizes; its dtype where that makes another trial of the gate."""
    plain = SIZES.sub("", PLAIN.sub("", trial.kernel))
    for number, alike in enumerate(ALIKE):
        plain = re.sub(alike, f"[{number}]", plain)
    dtype = "".join(PLAIN.findall(trial.kernel)) if EACH_DTYPE.match(trial.kernel) else ""
    definition = define(trial.kernel)
    return f"{trial.header} {definition.function if definition else ''} {plain} {dtype}"


@cache
def gate() -> tuple[Trial, ...]:
    found: dict[str, Trial] = {}
    for trial in every():
        found.setdefault(form(trial), trial)
    return tuple(found.values())
