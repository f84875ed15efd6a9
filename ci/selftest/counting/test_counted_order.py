"""The order that counts give to forms of one work is the order of their times on a GPU, where those differ by more

than the noise, and is given where they differ by half. A form of which the model says too little is named in the
record, with the reason.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from counting import forms
from counting.forms import Form, Profile, Work

from mlx_assay.impl.executors.counting import H200, bound, compare
from mlx_assay.impl.executors.counting.comparison import total_units

WORKS = [work for record in forms.records() for work in record.works]
WIDE = 1.5
"""How many times as long one form must take as another for the counts to have to tell them apart."""


@pytest.fixture(scope="module", params=WORKS, ids=[work.name for work in WORKS])
def work(request: pytest.FixtureRequest) -> Work:
    found: Work = request.param
    return found


@pytest.fixture(scope="module")
def told(work: Work) -> dict[str, dict[str, str]]:
    """Of each pair of forms, by names: which does less."""
    device = replace(H200, byte_sum=work.byte_sum)
    counts = {form.name: forms.counts(form) for form in work.forms}
    for name, each in counts.items():
        bounds = tuple(bound(c, device) for c in each)
        print(f"{name}: {total_units(bounds):,.0f} units, {[one.limit for one in bounds]}")
    return {a: {b: compare(counts[a], counts[b], device).less for b in counts} for a in counts}


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


def wide(work: Work) -> list[tuple[Form, Form]]:
    """The pairs, faster first, of which one takes so much longer that the counts must say so."""
    ordered = sorted(work.forms, key=lambda form: form.microseconds)
    return [(a, b) for a, b in combinations(ordered, 2) if b.microseconds >= WIDE * a.microseconds]


@pytest.mark.parametrize("work", [work for work in WORKS if wide(work)], ids=lambda work: work.name, indirect=True)
def test_a_wide_gap_is_told(work: Work, told: dict[str, dict[str, str]]) -> None:
    untold = [(a.name, b.name) for a, b in wide(work) if told[a.name][b.name] != "first" and not b.apart]
    assert untold == []


def test_most_works_have_wide_gaps() -> None:
    assert sum(map(bool, map(wide, WORKS))) >= len(WORKS) - 1


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


def test_every_text_is_that_of_a_form() -> None:
    launches = [
        one for record in forms.records() for work in record.works for form in work.forms for one in form.launches
    ]
    launches += [one for profile in PROFILES for one in profile.launches]
    named = {name for one in launches for name in (one.source, one.header) if name}
    assert {path.name for path in forms.FOLDER.glob("*.metal")} == named
