"""The built-in decoder at all 4,096 states, in every form, against the digests that are published with the format.

Nothing of an oracle stands between: the words are the fixtures', the values the kernels', the digests literals.
"""

from __future__ import annotations

import hashlib

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay import impl
from mlx_assay.fixtures.trellis_words import every_state, states_of
from mlx_assay.impl import executors

EXACT = "e80d1f7d4e0a4a5f67d49a59ae3402c4117ceddf5a034a986c4f6d394a94aa63"
UNREFINED = "666add5c0a9e1d84cc79ad8b9166dd9dd4f51f010b9c3b4253ecf7a70cdaab10"
SUMS = "8e89e4c7936c7fa3e47e22875840ace4e34686affde8055b49cfaacbb3c174ae"
FORMS = {
    "precise": (EXACT, "<f4"),
    "refined": (EXACT, "<f4"),
    "lut-threadgroup": (EXACT, "<f4"),
    "lut-device": (EXACT, "<f4"),
    "unrefined": (UNREFINED, "<f4"),
    "bits": (UNREFINED, "<f4"),
    "integer": (SUMS, "<i2"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_state_has_its_published_value(form: str) -> None:
    words = every_state(4, 12)
    states = states_of(words, 4, 12)
    with executors.use("host"):
        decoded = np.array(impl.trellis_decode(mx.array(words), None, 4, 12, 256, 0, 4096, 256, None, 13, form))
    digest, dtype = FORMS[form]
    for position in (0, 1, 2, 127, 253, 255):
        values = np.empty(4096, dtype)
        values[states[:, position]] = decoded[:, position]
        assert hashlib.sha256(values.tobytes()).hexdigest() == digest, position
