"""The texts that mutants are made of: files of the built-in kernels, and the operations that each of them serves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

ARGMAX = ("normalized_argmax", "argmax_given")
MASK = ("apply_token_bitmask",)
SOFTCAP = ("logit_softcap", "compiled_logit_softcap")
DOWN = ("down_codebook_row", "down_k3_interleaved_codebook_row", "factored_row")
SCATTER = ("scatter_row",)
DECODE = ("trellis_decode",)
VALUES = ("trellis_code_values",)
FOLD = ("trellis_fold",)
ROWS = (*DOWN, *SCATTER)

SERVED: Mapping[str, tuple[str, ...]] = {
    "argmax/shared.metal": ARGMAX,
    "argmax/maxima.metal": ARGMAX,
    "argmax/scan.metal": ARGMAX,
    "argmax/given.metal": ARGMAX,
    "argmax/search.metal": ARGMAX,
    "normalized_argmax.py": ARGMAX,
    "token_bitmask.metal": MASK,
    "token_bitmask_chunk.metal": MASK,
    "token_bitmask.py": MASK,
    "softcap.py": SOFTCAP,
    "trellis/codebook.metal": (*DECODE, *VALUES, *ROWS, *FOLD),
    "trellis/window.metal": (*DECODE, *ROWS),
    "trellis/decode.metal": DECODE,
    "trellis/values.metal": VALUES,
    "trellis/down_codebook.metal": DOWN,
    "trellis/down_codebook_row.metal": DOWN,
    "trellis/scatter.metal": SCATTER,
    "trellis/balanced.metal": SCATTER,
    "trellis/fold.metal": (*FOLD, *ROWS),
    "trellis/decoding.py": (*DECODE, *VALUES),
    "trellis/codebook.py": DECODE,
    "trellis/down_codebook.py": DOWN,
    "trellis/scatter.py": SCATTER,
    "trellis/fold.py": (*FOLD, *ROWS),
    "trellis/geometry.py": (*DECODE, *ROWS),
    "trellis/operands.py": (*ROWS, *DECODE),
    "trellis/operations.py": (*DECODE, *VALUES, *ROWS, *FOLD),
    "trellis/launch.py": (*ROWS, *DECODE, *VALUES, *FOLD),
}
"""The first operation is the one that a file's mutants are named after."""

APART: Mapping[str, str] = {
    "__init__.py": "It holds nothing.",
    "trellis/__init__.py": "It holds nothing.",
    "argmax/__init__.py": "It holds nothing.",
    "argmax/sums.metal": "It has the bits of MLX's CUDA logsumexp, and runs on that back end alone.",
    "argmax/summed.metal": "It has the bits of MLX's CUDA logsumexp, and runs on that back end alone.",
    "argmax/sums_metal.metal": "It has the bits of MLX's Metal logsumexp; ci/selftest/test_argmax_sums.py runs it.",
    "text.py": "It reads a file of this package.",
    "graph.py": "It chooses between executors, and every case of a run has one executor.",
    "trellis/misalignment.metal": "No operation launches it; ci/selftest/test_trellis_kernels.py does.",
    "trellis/misalignment.py": "No operation calls it; ci/selftest/test_trellis_kernels.py does.",
}
"""Files of the kernels without mutants, and why."""


@dataclass(frozen=True)
class Source:
    """One file, by its path in the package of kernels."""

    name: str
    text: str
    operations: tuple[str, ...]

    @property
    def metal(self) -> bool:
        """Whether it is Metal text, not Python."""
        return self.name.endswith(".metal")

    @property
    def digest(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def folder() -> Path:
    """Where the built-in kernels lie."""
    return Path(str(files("mlx_assay.impl.kernels")))


@cache
def sources() -> Mapping[str, Source]:
    """Every text that mutants are made of, by name."""
    root = folder()
    return {name: Source(name, (root / name).read_text("utf-8"), served) for name, served in SERVED.items()}
