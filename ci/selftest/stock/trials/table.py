"""Every trial; those of the gate are one of each kernel's form and dtype, the others run at night."""

from __future__ import annotations

import re
from functools import cache

from trials import attention, elementwise, matrices, ordering, quantised, reductions, rows, transforms
from trials.gaps import gap
from trials.trial import Trial

MODULES = (elementwise, reductions, rows, ordering, matrices, quantised, attention, transforms)
SIZES = re.compile(r"\d+(?!float|int|_t)")
PLAIN = re.compile(r"bfloat16(?:_t)?|float16(?:_t)?|float32|complex64|bool_|u?int\d+|half|float2?")


@cache
def every() -> tuple[Trial, ...]:
    return tuple(trial for module in MODULES for trial in module.trials() if gap(trial) is None)


# Of these each dtype is in the gate.
EACH_DTYPE = re.compile(
    r"arg|block_|looped_|rms|row_reduce_\w+sum|col_reduce_\w+sum|gemv_(t_)?(float|bfloat)|affine_qmv_|vv_(Add|Multiply)|v_Exp"
)


def form(trial: Trial) -> str:
    """A kernel's name without its sizes; its dtype where that makes another trial of the gate."""
    plain = SIZES.sub("", PLAIN.sub("", trial.kernel))
    dtype = "".join(PLAIN.findall(trial.kernel)) if EACH_DTYPE.match(trial.kernel) else ""
    return f"{trial.header} {plain} {dtype}"


@cache
def gate() -> tuple[Trial, ...]:
    found: dict[str, Trial] = {}
    for trial in every():
        found.setdefault(form(trial), trial)
    return tuple(found.values())
