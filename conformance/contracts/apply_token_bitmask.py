"""The contract of apply_token_bitmask; docs/contracts.md carries the rules' numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlx_assay.conformance.contract import Arguments, Contract, Reference, Rule
from mlx_assay.conformance.contracts import mask_benchmarks, mask_faults
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import denormal


def _by(oracle: str) -> Callable[[Arguments], np.ndarray]:
    def compute(arguments: Arguments) -> np.ndarray:
        masked: np.ndarray = load(oracle).apply_token_bitmask(arguments["logits"], arguments["bits"])
        return masked

    return compute


def _nothing_to_flush(arguments: Arguments) -> bool:
    """Rule 10: Metal takes denormals of float32 and bfloat16 for zero."""
    return arguments["logits"].dtype == np.float16 or not bool(denormal(arguments["logits"]).any())


def explain(arguments: Arguments, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
    """Which bit of which word speaks for the id, and the logit that it meets."""
    identity, words = index[-1], arguments["bits"].reshape(-1).astype(np.int32).view(np.uint32)
    place, bit = identity >> 5, identity & 31
    logit = arguments["logits"][index]
    met = f"logit 0x{int.from_bytes(logit.tobytes(), 'little'):0{2 * logit.dtype.itemsize}x}"
    if place >= len(words):
        return f"id {identity} is rejected: word {place} is missing; {met}"
    said = "allowed" if int(words[place]) >> bit & 1 else "rejected"
    return f"id {identity} is {said} by bit {bit} of word {place}, 0x{int(words[place]):08x}; {met}"


XGRAMMAR = "mlc-ai/xgrammar: python/xgrammar/kernels/apply_token_bitmask_mlx.py (Apache-2.0)"

CONTRACTS = [
    Contract(
        operation="apply_token_bitmask",
        summary="logits plus 0 where an id's bit is set, plus -inf elsewhere",
        parameters=("logits", "bits"),
        dtypes=("bfloat16", "float16", "float32"),
        references=(
            *(
                Reference(oracle, _by(oracle), Verdict.SAME_VALUE)
                for oracle in ("stock_mlx", "xgrammar_mlx", "numpy_reference", "torch_reference", "xgrammar_inplace")
            ),
            Reference("stock_metal", _by("stock_metal"), Verdict.SAME_VALUE, applies=_nothing_to_flush, alone=False),
        ),
        rules=(
            Rule(1, "Id i is allowed where bit i & 31 of int32 word i >> 5 is set; the sign bit is bit 31.", XGRAMMAR),
            Rule(2, "The result is logit + 0 where allowed, logit + -inf elsewhere, in the logits' dtype.", XGRAMMAR),
            Rule(
                3,
                "So -0 + 0 is +0, a rejected +inf is NaN, a NaN stays NaN, and a rejected number is -inf.",
                "IEEE 754-2019, 6.1 to 6.3; mlc-ai/xgrammar#285",
            ),
            Rule(4, "One mask serves every row.", XGRAMMAR),
            Rule(5, "Ids past the last word are rejected.", "this project: mlc-ai/xgrammar#611 leaves them, or fails"),
            Rule(6, "Words past ceil(V / 32) and bits past V are ignored.", XGRAMMAR),
            Rule(7, "The words are read at the call: what is written to them later does not count.", "this project"),
            Rule(
                8,
                "Size 0, more than 2^31 - 1 elements and other dtypes raise ValueError or TypeError; bits that are no "
                "int32 array of NumPy, torch or MLX raise TypeError; bits of more than one axis raise ValueError or "
                "TypeError.",
                "this project",
            ),
            Rule(9, "Any NaN equals any NaN.", "IEEE 754-2019, 6.2.3 (relaxation nan-any)"),
            Rule(
                10,
                "Where the executor flushes, an allowed denormal of float32 or bfloat16 may become a zero of its sign, "
                "or +0, which the sum of -0 and +0 is.",
                "Metal Shading Language Specification, 7.1 (relaxations denormal-flush, denormal-sum)",
            ),
        ),
        relaxations=("nan-any", "denormal-flush", "denormal-sum"),
        explain=explain,
        marks=mask_faults.marks,
        suspects=mask_faults.suspects,
        broken=lambda arguments: mask_faults.BROKEN,
        benchmarks=mask_benchmarks.BENCHMARKS,
    )
]
