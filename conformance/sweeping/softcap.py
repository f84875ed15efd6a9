"""Sweeps of the softcaps: every encoding of a dtype, for each cap."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.fixtures import caps
from mlx_assay.fixtures.caps import Cap, cap_of, cap_text
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.tensor import DTYPES, Tensor

OPERATIONS = ("compiled_logit_softcap", "logit_softcap")
KIND = "every/encoding"
WHY = "Hunts a wrong answer at an encoding that no case has: all of them are asked."
BLOCK = 1 << 18
BLOCKS = (1 << 32) // BLOCK
STEP = 16
ONCE, TWICE = (1,), (0, 1)
"""Rounds: the second one's poison is a number, and no result of a cap below LARGE; the first one's is a NaN."""

LARGE = 1e35
WIDE_CAPS: tuple[Cap, ...] = (30, 50, 1 / 3)
"""Caps for which all of float32 is swept unless others are asked for: Gemma's, and one that no dtype holds."""

_TABLES = (caps.PLAIN, caps.INEXACT, caps.NEGATIVE, caps.ZERO, caps.INFINITE, caps.HUGE, caps.TINY, caps.MINUTE)
_ODDER = (caps.HALF_HUGE, caps.OVERFLOWING, caps.HALF_OVERFLOWING, caps.UNDERFLOWING, caps.DENORMAL, caps.HALF_DENORMAL)
_ROUNDED = (caps.ROUNDED_TWICE, caps.ROUNDED_INTEGERS)
NARROW_CAPS: tuple[Cap, ...] = tuple(
    {cap_text(cap): cap for table in (*_TABLES, *_ODDER, *_ROUNDED) for cap in table}.values()
)
"""Caps for which the half types are swept: all that cases have by name."""


def wide_block(cap: Cap, block: int) -> Subcase:
    """float32 [2^18]: encodings `block`, `block` + 2^14, ... so that each block has every exponent and both signs."""
    words = np.arange(BLOCK, dtype=np.uint32) * np.uint32(BLOCKS) + np.uint32(block)
    return Subcase(f"block-{block}", {"x": Tensor(words.view(np.float32)), "cap": cap})


def narrow_block(dtype: str, block: int) -> Subcase:
    """All 65,536 encodings of a half type, for the cap of that number."""
    words = np.arange(1 << 16, dtype=np.uint16)
    return Subcase(f"cap-{block}", {"x": Tensor(words.view(DTYPES[dtype])), "cap": NARROW_CAPS[block]})


def told(subcase: Subcase, index: tuple[int, ...]) -> str:
    """The encoding and the cap."""
    given = subcase.arguments["x"]
    assert isinstance(given, Tensor)
    x = given.base[index]
    return f"x 0x{int.from_bytes(x.tobytes(), 'little'):0{2 * x.dtype.itemsize}x}, cap {subcase.arguments['cap']}"


def wide(operation: str, cap: Cap) -> Sweep:
    """All of float32 for one cap."""
    case = Case.make(operation, "float32", KIND, {"cap": cap_text(cap)})
    make = partial(wide_block, cap)
    return Sweep(case, WHY, BLOCKS, BLOCK, make, told, STEP, ONCE if abs(cap) < LARGE else TWICE, sieved=True)


def named(case: Case) -> Sweep | None:
    """The sweep of float32 for any cap, by its whole id; None for an id of another form."""
    keys = [key for key, _ in case.parameters]
    if case.operation not in OPERATIONS or case.dtype != "float32" or case.kind != KIND or keys != ["cap"]:
        return None
    try:
        cap = cap_of(case.parameters[0][1])
    except ValueError:
        return None
    return wide(case.operation, cap)


def _sweeps() -> Iterator[Sweep]:
    for operation in OPERATIONS:
        for cap in WIDE_CAPS:
            yield wide(operation, cap)
        for dtype in ("bfloat16", "float16"):
            case = Case.make(operation, dtype, KIND, {})
            make = partial(narrow_block, dtype)
            yield Sweep(case, WHY, len(NARROW_CAPS), 1 << 16, make, told, rounds=TWICE)


SWEEPS = list(_sweeps())
