"""The contracts of normalized_argmax and of its core, argmax_given; docs/contracts.md carries the rules' numbers."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from mlx_assay.conformance.contract import Arguments, Contract, Reference, Rule
from mlx_assay.conformance.contracts import argmax_benchmarks, argmax_faults
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import denormal

FLOATS = ("bfloat16", "float16", "float32")
INTEGERS = ("int32", "uint32", "int8", "uint8")
FIRST_NAN_WINS_SINCE = (0, 32, 3)
"""The MLX release whose argmax lets the first NaN win (ml-explore/mlx#4291); before, NaN was skipped."""


def numbers_of(release: str) -> tuple[int, ...]:
    """Major, minor and patch of an MLX release, such as "0.32.4"; ValueError where it is no release."""
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", release)
    if numbers is None:
        raise ValueError(f"Expected an MLX release 'major.minor.patch' but got {release!r}")
    return tuple(int(number) for number in numbers.groups())


def nan_rule_of(release: str) -> Literal["first", "skipped"]:
    """The NaN rule of an MLX release; ValueError where it is no release."""
    return "first" if numbers_of(release) >= FIRST_NAN_WINS_SINCE else "skipped"


@cache
def nan_rule() -> Literal["first", "skipped"]:
    """The NaN rule of the installed MLX."""
    return nan_rule_of(version("mlx"))


def _with_lse(arguments: Arguments) -> Arguments:
    return {**arguments, "lse": load("stock_mlx").logsumexp(arguments["logits"])}


def _stock_normalized(arguments: Arguments) -> np.ndarray:
    ids: np.ndarray = load("stock_mlx").normalized_argmax(arguments["logits"])
    return ids


def _stock_given(arguments: Arguments) -> np.ndarray:
    ids: np.ndarray = load("stock_mlx").argmax_given(arguments["logits"], arguments["lse"])
    return ids


def _numpy_given(arguments: Arguments) -> np.ndarray:
    ids: np.ndarray = load("numpy_reference").argmax_given(arguments["logits"], arguments["lse"], nan_rule())
    return ids


def _torch_given(arguments: Arguments) -> np.ndarray:
    ids: np.ndarray = load("torch_reference").argmax_given(arguments["logits"], arguments["lse"], nan_rule())
    return ids


def _scores(arguments: Arguments) -> np.ndarray:
    values: np.ndarray = load("numpy_reference").scores(arguments["logits"], arguments["lse"])
    return values


def _metal_given(arguments: Arguments) -> np.ndarray:
    ids: np.ndarray = load("stock_metal").argmax_given(arguments["logits"], arguments["lse"])
    return ids


def _metal_free(arguments: Arguments) -> bool:
    """Whether Metal's kernels must give the CPU's answer: rules 5 and 7, and Metal always flushes."""
    if nan_rule() == "skipped" and _leading_nan(arguments):
        return False
    return not (_meets_denormals(arguments) and denormals_decide(arguments))


def _device_free(arguments: Arguments) -> bool:
    """Whether the answer depends on no device: rules 5 and 7 leave such rows to stock MLX on the same device."""
    return not (_flushable(arguments) or (nan_rule() == "skipped" and _leading_nan(arguments)))


def _flushable(arguments: Arguments) -> bool:
    return load("stock_mlx").flushes_denormals() and _meets_denormals(arguments)


def _meets_denormals(arguments: Arguments) -> bool:
    if arguments["lse"].dtype == np.float16:
        return False
    met = (arguments["logits"].astype(arguments["lse"].dtype), arguments["lse"], _scores(arguments))
    return any(bool(denormal(array).any()) for array in met)


def denormals_decide(arguments: Arguments) -> bool:
    """Whether a row's answer changes where denormals of the logits, of lse and of the scores are taken for zero."""
    logits, lse = arguments["logits"].astype(arguments["lse"].dtype), arguments["lse"]
    if lse.dtype == np.float16:
        return False
    reference = load("numpy_reference")
    scores = flushed(reference.scores(flushed(logits), flushed(lse)))
    kept = reference.argmax_given(logits, lse, nan_rule())
    return bool((reference.winners(scores, nan_rule()) != kept).any())


def flushed(values: np.ndarray) -> np.ndarray:
    """The values with a zero for each denormal."""
    return np.where(denormal(values), values.dtype.type(0), values)


def _leading_nan(arguments: Arguments) -> bool:
    values = _scores(arguments).astype(np.float32)
    return bool((np.isnan(values[..., :1]) & (values > -np.inf)).any())


def explain(arguments: Arguments, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
    """Why an id is wrong: out of range, a tie lost, a lower score, or the NaN rule."""
    vocabulary = arguments["logits"].shape[-1]
    mine, theirs = int(got[index]), int(want[index])
    if mine >= vocabulary:
        return f"id out of range: {mine} of {vocabulary}"
    row = _scores(arguments)[index]
    scored, better = _hex(row[mine]), _hex(row[theirs])
    if np.isnan(row[[mine, theirs]].astype(np.float32)).any():
        return f"NaN rule, {nan_rule()}: scores {scored} and {better}"
    if row[mine] == row[theirs]:
        return f"tie lost: scores {scored} = {better}"
    return f"score {scored} is {'below' if row[mine] < row[theirs] else 'above'} {better}"


def _hex(score: Any) -> str:
    return f"0x{int.from_bytes(score.tobytes(), 'little'):0{2 * score.dtype.itemsize}x}"


CORE_RULES = (
    Rule(2, "A score is logit - lse, rounded once to the logits' dtype, to nearest even.", "mlx: mx.subtract"),
    Rule(3, "The lowest id of the largest score wins, -0 and +0 being equal.", "mlx: mx.argmax"),
    Rule(4, "The first NaN score wins.", "ml-explore/mlx#4291", since="0.32.3"),
    Rule(
        5,
        "A NaN score loses to every number; a leading NaN is left to stock MLX on the same device (the CPU gives 0).",
        "ml-explore/mlx#4274",
        until="0.32.2",
    ),
    Rule(6, "A row of nothing but -inf, or nothing but NaN, gives 0; an id is below V, always.", "mlx: mx.argmax"),
    Rule(
        7,
        "How float32 and bfloat16 denormals compare is the device's matter, which may take them for zero: no case may "
        "be decided by it (denormals_decide).",
        "ml-explore/mlx#1895",
    ),
    Rule(8, "Ids are uint32 in the shape of logits without the last axis.", "mlx: mx.argmax"),
)

CONTRACTS = [
    Contract(
        operation="normalized_argmax",
        summary="ids of argmax(logits - logsumexp(logits)), scores rounded to the logits' dtype",
        parameters=("logits",),
        dtypes=(*FLOATS, *INTEGERS),
        references=(
            Reference("stock_mlx", _stock_normalized, Verdict.SAME_BITS),
            Reference("numpy_reference", _numpy_given, Verdict.SAME_BITS, applies=_device_free),
            Reference("torch_reference", _torch_given, Verdict.SAME_BITS, applies=_device_free),
            Reference("stock_metal", _metal_given, Verdict.SAME_BITS, applies=_metal_free, alone=False),
        ),
        rules=(
            Rule(
                1,
                "lse is the native logsumexp over the last axis, keepdims, of row-contiguous logits, in their dtype; "
                "float32 for integer logits, whose scores are float32.",
                "mlx: mx.logsumexp; ml-explore/mlx#2474",
            ),
            *CORE_RULES,
            Rule(9, "Logits of size 0 raise ValueError, as logsumexp does; 0-d logits raise ValueError.", "mlx"),
        ),
        relaxations=(),
        prepare=_with_lse,
        explain=explain,
        marks=argmax_faults.marks,
        suspects=argmax_faults.suspects,
        broken=lambda arguments: argmax_faults.broken(arguments, 1, 4 if nan_rule() == "first" else 5),
        benchmarks=argmax_benchmarks.BENCHMARKS,
    ),
    Contract(
        operation="argmax_given",
        summary="ids of argmax(logits - lse) for an lse that is given, scores rounded to the logits' dtype",
        parameters=("logits", "lse"),
        dtypes=FLOATS,
        references=(
            Reference("stock_mlx", _stock_given, Verdict.SAME_BITS),
            Reference("numpy_reference", _numpy_given, Verdict.SAME_BITS, applies=_device_free),
            Reference("torch_reference", _torch_given, Verdict.SAME_BITS, applies=_device_free),
            Reference("stock_metal", _metal_given, Verdict.SAME_BITS, applies=_metal_free, alone=False),
        ),
        rules=(
            Rule(
                1,
                "lse [..., 1] has the logits' dtype and any value, NaN and infinities included; one of another shape "
                "or dtype raises ValueError or TypeError.",
                "this project",
            ),
            *CORE_RULES,
        ),
        relaxations=(),
        explain=explain,
        marks=argmax_faults.marks,
        suspects=argmax_faults.suspects,
        broken=lambda arguments: argmax_faults.broken(arguments, 2, 4 if nan_rule() == "first" else 5),
    ),
]
