"""What the text door does not reach yet: kernels by pattern, with what stops them. docs/fidelity.md lists the same."""

from __future__ import annotations

import re

from trials.trial import Trial

GAPS: dict[str, str] = {
    r"n?carg_block_sort_bfloat16": "a bfloat is assigned to an integer, in a branch that is not taken",
}


def gap(trial: Trial) -> str | None:
    """What stops a trial's text, or None."""
    return next((why for pattern, why in GAPS.items() if re.match(pattern, trial.kernel)), None)
