"""Hypothesis profiles of the exploration: how many inputs are drawn, and whether the same ones each time.

`mlx-assay-gate` is what runs where nobody chose: derandomized, so that a run can be repeated. `mlx-assay-nightly`
explores further each time; a `.hypothesis` folder that is kept between runs remembers what failed. `mlx-assay-dev` is
for a glance. Choose with `pytest --hypothesis-profile=mlx-assay-nightly`.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

GATE = "mlx-assay-gate"
NIGHTLY = "mlx-assay-nightly"
DEV = "mlx-assay-dev"

UNCHOSEN = ("default", "ci")
"""The profiles that Hypothesis takes of its own accord."""


def register() -> None:
    """Makes the profiles known to Hypothesis; loads none."""
    common = settings(
        settings.get_profile("default"),
        deadline=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
    settings.register_profile(GATE, common, max_examples=25, derandomize=True, database=None)
    settings.register_profile(NIGHTLY, common, max_examples=2000, derandomize=False)
    settings.register_profile(DEV, common, max_examples=5, derandomize=True, database=None)


def chosen() -> settings:
    """The settings of the profile that the user chose, else of the gate; the session's profile stays as it is."""
    register()
    current = settings.get_current_profile_name()
    return settings.get_profile(GATE if current in UNCHOSEN else current)
