"""What the text door does not reach yet: kernels by pattern, with what stops them. docs/language.md says the same."""

from __future__ import annotations

import re

from trials.trial import Trial

FRAGMENTS = "a reference to a member that a method of the thread space returns"
LISTS = "a braced list for a vector parameter"
CONSTANTS = "function constants without a value in a function that is not called"
SPACES = "a bfloat in the constant space"

GAPS: dict[str, str] = {
    r"steel_|affine_qmm|\w+4_qmm|mxfp8_qmm|implicit_gemm": FRAGMENTS,
    r"gn\d(large)?_|ggn\d(large)?_": LISTS,
    r"\w+_qmv_quad": LISTS,
    r".*fft|four_step|generate_bluestein": CONSTANTS,
    r"(all|row|col)_reduce_\w+(min|max)bfloat16|n?c\w+block_sort_bfloat16|(block|looped)_softmax_bfloat16": SPACES,
    r"affine_dequantize_bfloat16|v_Sigmoidfloat16": "other roundings than Apple's compiler: see docs/fidelity.md",
}


def gap(trial: Trial) -> str | None:
    """What stops a trial's text, or None."""
    return next((why for pattern, why in GAPS.items() if re.match(pattern, trial.kernel)), None)
