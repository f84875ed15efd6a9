"""How a wrong timed output is named."""

from __future__ import annotations

import numpy as np
import pytest

from mlx_assay.conformance.bench.catalogue import selected
from mlx_assay.conformance.bench.content import Content
from mlx_assay.conformance.bench.digest import digest
from mlx_assay.conformance.bench.message import Outcome, Output
from mlx_assay.conformance.bench.verification import Verification
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.implementation import Implementation


@pytest.mark.parametrize(("rows", "name"), [(1, "unlike-itself"), (3, "unlike-itself"), (4, "unwritten")])
def test_one_word_everywhere_says_something_of_several_words_alone(rows: int, name: str) -> None:
    (asked,) = selected(["normalized_argmax/bfloat16?rows=1"], "host", f"rows={rows},vocab=1024")
    contract = contracts()[asked.operation]
    content = Content(asked, contract.parameters, 2)
    environment = Implementation(None, "host").environment
    verification = Verification(asked, contract, content, environment, ())
    wrong = np.full(rows, 0xFFFF, np.uint32)
    key = (1, 2)
    output = Output("", "uint32", [rows], digest(wrong, key), wrong.nbytes)
    outcome = Outcome(key, [output], [(0, 0)], [], (0, 0))
    (alarm,) = verification.queue(content.queue(1), outcome, [wrong.tobytes()], 0)
    assert alarm.trick == name
