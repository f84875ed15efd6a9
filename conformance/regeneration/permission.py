"""Permission to write fixtures: CI has none."""

from __future__ import annotations

import os

from mlx_assay.conformance.verbs.refusal import Refusal


def writing(what: str) -> None:
    """Refusal where CI is set: what a release rests on is recorded and reviewed by a person."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise Refusal(f"Expected no CI for `fixtures {what}`, which writes fixtures, but CI is set: run it by hand")
