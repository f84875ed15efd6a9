"""The contracts of trellis_decode and trellis_code_values; docs/contracts.md carries the rules' numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlx_assay.conformance.contract import EXECUTOR, Arguments, Contract, Reference, Rule
from mlx_assay.conformance.contracts import trellis_broken, trellis_faults
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.trellis_layout import Packed

FLOATS = ("bfloat16", "float16", "float32")
GEOMETRY = ("k", "L", "T", "axis", "rows", "cols", "block_interleave")
WHOLE_LIMIT = 2**15
"""Weights of a subcase for which each block is taken as one Python integer as well."""

QTIP = "Tseng et al., QTIP, 2024"
LAYOUT_RULES = (
    Rule(1, "A block of T weights has T * k bits; bit i is bit i % 32 of word i // 32, the least significant first.",
         "this project: docs/contracts.md, trellis words"),
    Rule(2, "Position t has its k bits at bit (T - 1 - t) * k; its state is the window of L bits that begins there and "
         "wraps around the block's end.", f"{QTIP} (tail-biting)"),
    Rule(3, "Block b of a row holds columns b * T to b * T + T - 1; interleaved codes [cols / 512, rows, 48] have two "
         "blocks of a row side by side, k 3 and axis 0 alone.", "this project"),
    Rule(4, "A state s decodes to y / 147.800537109375, y the sum of the four bytes of s * 34038481 + 76625530 modulo "
         "2^32, less 510.", f"{QTIP} (1MAD)"),
)  # fmt: skip


def packed(arguments: Arguments) -> Packed:
    """The codes of a call, with what their bits mean."""
    k, L, T = (arguments[name] for name in ("k", "L", "T"))
    return Packed(arguments["codes"], k, L, T, arguments["block_interleave"] is not None)


def flushes(arguments: Arguments) -> bool:
    """Whether the executor takes float32 denormals for zeros."""
    return bool(arguments[EXECUTOR]["f32_denormals"] == "flushed")


def _decoded(arguments: Arguments, whole: bool) -> np.ndarray:
    given = (arguments["scales"], arguments["variant"], arguments["form"])
    weights: np.ndarray = load("trellis_decode").trellis_decode(
        packed(arguments), *given, flush=flushes(arguments), whole=whole
    )
    return weights


def _small(arguments: Arguments) -> bool:
    return bool(arguments["rows"] * arguments["cols"] <= WHOLE_LIMIT)


def _values(arguments: Arguments) -> np.ndarray:
    values: np.ndarray = load("trellis_decode").trellis_code_values(arguments["sums"], arguments["form"])
    return values


def explain(arguments: Arguments, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
    """The weight's position and state, and whether the value is that of another form or of another state."""
    oracle, given, position = load("trellis_decode"), packed(arguments), index[1] % arguments["T"]
    row = Packed(given.words[index[0]][None], *given[1:4])
    state = int(row.states(row.codes)[0, index[1]])
    place = f"position {position} of block {index[1] // arguments['T']}, state {state}"
    bare = {**arguments, "scales": None if arguments["scales"] is None else arguments["scales"][index[0]][None]}
    for form in oracle.FORMS:
        other = oracle.trellis_decode(row, bare["scales"], arguments["variant"], form, flush=flushes(arguments))
        if other[0, index[1]].tobytes() == got[index].tobytes():
            return f"{place}: the {form} form's value"
    elsewhere = _found(want[index[0]], got[index])
    return f"{place}{f': the weight of column {elsewhere}' if elsewhere is not None else ''}"


def _found(row: np.ndarray, value: Any) -> int | None:
    places = np.flatnonzero(row == value)
    return int(places[0]) if places.size else None


def explain_value(arguments: Arguments, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
    """The byte sum, and whether the value is that of another form."""
    oracle, sums = load("trellis_decode"), arguments["sums"]
    forms = [form for form in oracle.SUM_FORMS if oracle.SUM_FORMS[form](sums)[index].tobytes() == got[index].tobytes()]
    return f"byte sum {int(sums[index])}{f': the value of {forms[0]}' if forms else ''}"


CONTRACTS = [
    Contract(
        operation="trellis_decode",
        summary="the stored matrix of packed trellis codes, each weight its code times the row's scale",
        parameters=("codes", "scales", *GEOMETRY, "variant", "form"),
        dtypes=FLOATS,
        references=(
            Reference("trellis_decode", lambda arguments: _decoded(arguments, whole=False), Verdict.SAME_VALUE),
            Reference("trellis_decode", lambda arguments: _decoded(arguments, whole=True), Verdict.SAME_VALUE,
                      applies=_small),
        ),
        rules=(
            *LAYOUT_RULES,
            Rule(5, "Variants 0 to 3 and 5, forms precise, refined and both tables: y / d correctly rounded to "
                 "float32.", "this project"),
            Rule(6, "Variants 6 to 13, forms unrefined and bits: y times the rounded reciprocal of d, rounded; it "
                 "differs from rule 5 on 398 of the 1,021 sums, by one ulp.", "this project"),
            Rule(7, "The form integer is y, the form state and variant 4 are s, as float32.", "this project"),
            Rule(8, "With scales [rows] the weight is value * scale, rounded to float32, and by variants 0 to 3 once "
                 "more to bfloat16; without them it is the value.", "this project"),
            Rule(9, "The result is float32 [rows, cols] in either axis; any NaN equals any NaN, and denormals are as "
                 "the executor says.", "IEEE 754-2019, 6.2.3 (relaxation nan-any)"),
            Rule(10, "Numbers that do not fit together, and arrays that do not fit them, raise ValueError or "
                 "TypeError.", "this project"),
        ),
        explain=explain,
        suspects=trellis_faults.decoded,
        broken=trellis_broken.decoded,
        expansion=16,
    ),
    Contract(
        operation="trellis_code_values",
        summary="what a form of decoding makes of byte sums",
        parameters=("sums", "form"),
        dtypes=("int32",),
        references=(Reference("trellis_decode", _values, Verdict.SAME_BITS),),
        rules=(
            Rule(1, "Sums are int32 [n] in [-510, 510], those included that no state has.", "this project"),
            Rule(2, "The forms precise and refined are sum / 147.800537109375, correctly rounded to float32.",
                 "this project"),
            Rule(3, "The forms unrefined and bits are sum times the rounded reciprocal, 0x3bddb447, rounded to "
                 "float32.", "this project"),
            Rule(4, "The form integer is the sum as float32, 0 being +0.", "this project"),
        ),
        relaxations=(),
        explain=explain_value,
        suspects=trellis_faults.values,
        broken=trellis_broken.values,
    ),
]  # fmt: skip
