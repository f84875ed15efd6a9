"""The order that counts give to forms of one work is the order of their times on a GPU, where those differ by more

than the noise. A form of which the model says too little is named in the record, with the reason.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from counting import forms
from counting.forms import Form, Profile, Work

from mlx_assay.impl.executors.counting import H200, bound, compare
from mlx_assay.impl.executors.counting.comparison import total_units

WORKS = [work for record in forms.records() for work in record.works]


@pytest.fixture(scope="module", params=WORKS, ids=[work.name for work in WORKS])
def work(request: pytest.FixtureRequest) -> Work:
    found: Work = request.param
    return found


@pytest.fixture(scope="module")
def told(work: Work) -> dict[str, dict[str, str]]:
    """Of each pair of forms, by names: which does less."""
    counts = {form.name: forms.counts(form) for form in work.forms}
    for name, each in counts.items():
        print(f"{name}: {total_units(tuple(bound(c) for c in each)):,.0f} units, {[bound(c).limit for c in each]}")
    return {a: {b: compare(counts[a], counts[b], H200).less for b in counts} for a in counts}


def apart(work: Work, a: Form, b: Form) -> bool:
    """Whether two times differ by more than the noise."""
    return abs(a.microseconds - b.microseconds) > work.noise * max(a.microseconds, b.microseconds)


def test_order(work: Work, told: dict[str, dict[str, str]]) -> None:
    wrong = []
    pairs = [pair for pair in combinations(work.forms, 2) if apart(work, *pair)]
    for a, b in pairs:
        faster, slower = sorted((a, b), key=lambda form: form.microseconds)
        # A form that is named is slower than the model says: it may not be faster.
        if told[slower.name][faster.name] == "first" and not slower.apart:
            wrong.append(f"{slower.name}, {slower.microseconds} us, is said to do less than {faster.name}")
    assert len(pairs) >= 3
    assert wrong == []


def test_what_is_named_is_so(work: Work, told: dict[str, dict[str, str]]) -> None:
    for form in work.forms:
        faster = [other for other in work.forms if other.microseconds < form.microseconds and apart(work, form, other)]
        mistaken = [other.name for other in faster if told[form.name][other.name] == "first"]
        assert bool(form.apart) == bool(mistaken), (form.name, mistaken)


PROFILES = [profile for record in forms.records() for profile in record.profiles]


@pytest.mark.parametrize("profile", PROFILES, ids=[profile.name for profile in PROFILES])
def test_counters_of_a_gpu_agree(profile: Profile) -> None:
    found = forms.counts(profile)[-1]
    read = sum(t.footprint for space, t in found.reads.items() if space in ("device", "constant"))
    read -= (profile.factor - 1) * profile.shared
    # The arrays are larger than the cache, so that what is touched is read once, and a little more.
    assert read <= profile.bytes_read <= 1.01 * read
    # An estimate: the compiler is another, and it moves and converts between registers.
    assert 0.6 <= found.issued / profile.instructions <= 1.1
    assert 0.7 <= found.registers / profile.registers <= 1.3
