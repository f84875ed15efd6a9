"""The contracts of the fused and the unfused logit softcap; docs/contracts.md carries the rules' numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import version

import numpy as np

from mlx_assay.conformance.bench.benchmark import Benchmark
from mlx_assay.conformance.contract import Arguments, Contract, Reference, Rule
from mlx_assay.conformance.contracts import softcap_benchmarks, softcap_faults
from mlx_assay.conformance.contracts.normalized_argmax import numbers_of
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Subcase
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import denormal, unranked

WHOLE_CONSTANTS_SINCE = (0, 32, 3)
"""The MLX release whose compiled graphs have every digit of a constant; before, 7 (ml-explore/mlx#4503)."""

PRINTED_DIGITS = 7


def _by(oracle: str, form: str) -> Callable[[Arguments], np.ndarray]:
    def compute(arguments: Arguments) -> np.ndarray:
        capped: np.ndarray = getattr(load(oracle), form)(arguments["x"], arguments["cap"])
        return capped

    return compute


def _with_interval(arguments: Arguments) -> Arguments:
    flushed = load("stock_mlx").flushes_denormals()
    return {**arguments, "interval": load("precise_softcap").interval(arguments["x"], arguments["cap"], flushed)}


def _ulps(arguments: Arguments, expected: np.ndarray) -> np.ndarray:
    low, high = arguments["interval"]
    allowed: np.ndarray = load("precise_softcap").distance(low, high, expected)
    return allowed


def _cap_kept(arguments: Arguments) -> bool:
    """Rule 9: a denormal cap is zero on a device that flushes, which turns 0 / cap from 0 into NaN."""
    x = arguments["x"]
    if x.dtype == np.float16 or not load("stock_mlx").flushes_denormals():
        return True
    return not bool(denormal(load("precise_softcap").scalar(arguments["cap"], x.dtype)))


@cache
def constants_whole() -> bool:
    """Whether the installed MLX compiles every digit of a constant; asked once, since the answer is read from disk."""
    return numbers_of(version("mlx")) >= WHOLE_CONSTANTS_SINCE


def cap_printed(arguments: Arguments) -> bool:
    """Rule 11: whether a compiled graph of the installed MLX has the cap that its operations have one by one."""
    if constants_whole():
        return True
    dtype = arguments["x"].dtype
    scalar = load("precise_softcap").scalar
    cap = scalar(arguments["cap"], dtype)
    printed = scalar(float(f"{float(cap):.{PRINTED_DIGITS}g}"), dtype)
    return bool(cap.tobytes() == printed.tobytes())


def _nothing_to_flush(arguments: Arguments) -> bool:
    """Rule 9: Metal takes denormals of float32 and bfloat16 for zero, on the way too."""
    x, precise = arguments["x"], load("precise_softcap")
    if x.dtype == np.float16:
        return True
    met = [x, precise.scalar(arguments["cap"], x.dtype), precise.quotient(x, arguments["cap"])]
    met += [unranked(rank, x.dtype) for rank in arguments["interval"]]
    return not any(bool(denormal(values).any()) for values in met)


def explain(arguments: Arguments, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
    """The bits on the way: x, cap in x's dtype, the quotient and its tanh as the high-precision oracle has them."""
    precise = load("precise_softcap")
    x = np.asarray(arguments["x"][index])
    divided = precise.quotient(x, arguments["cap"])
    steps = {"x": x, "cap": precise.scalar(arguments["cap"], x.dtype), "x/cap": divided, "tanh": precise.tanh(divided)}
    return ", ".join(f"{name} {_hex(value)}" for name, value in steps.items())


def _hex(value: np.ndarray) -> str:
    return f"0x{int.from_bytes(value.tobytes(), 'little'):0{2 * value.dtype.itemsize}x}"


WITHIN = (
    "rule 4: tanh within 5 ulp (float32) or 1 ulp (float16, bfloat16), then the product: Metal Shading Language 7.4"
)

RULES = (
    Rule(1, "The cap is a Python number, rounded to float32 and then to x's dtype.", "mlx: mx.array of a number"),
    Rule(2, "The result is tanh(x / cap) * cap, rounded to x's dtype after each operation.", "mlx-lm: gemma2.py"),
    Rule(
        3, "Fused, unfused and mlx-lm's forms give the same bits on one device.", "mlx-lm: gemma4_text.py, gemma3n.py"
    ),
    Rule(
        4,
        "Quotient and product are correctly rounded; tanh lies within 5 ulp of the correctly rounded one in float32, "
        "1 ulp in float16 and bfloat16.",
        "Metal Shading Language Specification, 7.4",
    ),
    Rule(5, "tanh keeps zeros with their sign, lies in [-1, 1], and is 1 in size from 16 on.", "BVLC/caffe#1455"),
    Rule(6, "A NaN gives NaN; an infinity gives |cap| with its own sign.", "IEEE 754-2019, 9.2"),
    Rule(
        7, "Cap 0 gives a zero of the sign of x, NaN for x = 0; an infinite or NaN cap gives NaN.", "IEEE 754-2019, 7.2"
    ),
    Rule(8, "Any NaN equals any NaN.", "IEEE 754-2019, 6.2.3 (relaxation nan-any)"),
    Rule(
        9,
        "Where the device takes float32 denormals for zero, x, quotient and result may be zeros of their sign, and a "
        "cap that is a denormal is left to the oracles on the same device.",
        "Metal Shading Language Specification, 7.5",
    ),
    Rule(
        10,
        "x of size 0 and 0-d x are fine; a cap that is an array or no number, and x of integers, raise TypeError.",
        "this project",
    ),
    Rule(
        11,
        "A compiled graph has the float32 nearest to a cap's first 7 digits, so that rule 3 holds for caps alone that "
        "these digits give.",
        "ml-explore/mlx#4503",
        until="0.32.2",
    ),
    Rule(12, "A compiled graph has the cap's own float32.", "ml-explore/mlx#4503", since="0.32.3"),
)


def _compiles(arguments: Arguments) -> bool:
    """Rule 11, and that the compiled graph has an element: without one MLX's CUDA back end ends the process."""
    return cap_printed(arguments) and (arguments["x"].size > 0 or load("stock_mlx").runs_empty_graphs())


def _graph(subcase: Subcase) -> str:
    """One for each dtype and cap; the cap of an error may be anything."""
    x = subcase.arguments["x"]
    return f"{getattr(x, 'dtype', '')} {subcase.arguments['cap']!r}"


def _contract(operation: str, summary: str, benchmarks: tuple[Benchmark, ...] = ()) -> Contract:
    return Contract(
        operation=operation,
        summary=summary,
        parameters=("x", "cap"),
        dtypes=("bfloat16", "float16", "float32"),
        references=(
            Reference("stock_mlx", _by("stock_mlx", "logit_softcap")),
            *(
                Reference("mlx_lm_softcap", _by("mlx_lm_softcap", form), rule=rule, applies=_compiles)
                for form, rule in (
                    ("gemma4", "rule 3: gemma4_text, compiled"),
                    ("gemma3n", "rule 3: gemma3n, compiled"),
                )
            ),
            Reference("mlx_lm_softcap", _by("mlx_lm_softcap", "gemma2"), rule="rule 3: gemma2, unfused"),
            *(
                Reference(oracle, _by(oracle, "logit_softcap"), Verdict.WITHIN_ULP, _ulps, WITHIN, _cap_kept)
                for oracle in ("precise_softcap", "numpy_reference", "torch_reference")
            ),
            Reference(
                *("stock_metal", _by("stock_metal", "logit_softcap"), Verdict.WITHIN_ULP, _ulps, WITHIN),
                applies=_nothing_to_flush,
                alone=False,
            ),
        ),
        rules=RULES,
        relaxations=("nan-any",),
        prepare=_with_interval,
        explain=explain,
        marks=softcap_faults.marks,
        suspects=softcap_faults.suspects,
        broken=lambda arguments: softcap_faults.BROKEN,
        benchmarks=benchmarks,
        graph=_graph,
    )


CONTRACTS = [
    _contract(
        "compiled_logit_softcap", "tanh(x / cap) * cap, fused by a shapeless compile", softcap_benchmarks.BENCHMARKS
    ),
    _contract("logit_softcap", "tanh(x / cap) * cap, three operations"),
]
