"""Recorded references against the oracles of this machine: who drifted from its golden is at fault."""

from __future__ import annotations

import pytest

from mlx_assay.conformance.regeneration.captures import hold_captures
from mlx_assay.conformance.regeneration.holding import Held, hold, hold_folder, hold_real
from mlx_assay.fixtures.goldens.catalogue import groups


def judged(held: Held) -> None:
    """Fails with every line of what is wrong, and where a library is missing: what was not judged does not pass."""
    if held.state not in ("holds", "elsewhere"):
        pytest.fail("\n".join((f"{held.subject}: {held.state}", *held.lines)), pytrace=False)


@pytest.mark.parametrize("name", groups())
def test_oracles_give_their_goldens(name: str) -> None:
    judged(hold(groups()[name]))


def test_the_files_are_what_they_say() -> None:
    judged(hold_folder())


def test_the_real_input_is_the_recorded_one() -> None:
    judged(hold_real())


def test_kept_captures_are_what_they_say() -> None:
    judged(hold_captures())
