"""mlx-lm's kernels under the checker: the races of its losses are found at their lines, and nothing unreal."""

from collections.abc import Iterator
from types import ModuleType

import mlx.core as mx
import pytest
from mlx_lm_sites import SITES, Site, made_in, on

from mlx_assay.impl.executors import Kernel
from mlx_assay.impl.executors.checker import checked
from mlx_assay.impl.executors.checker.finding import Finding, Kind
from mlx_assay.impl.executors.observation import Launch, observed
from mlx_assay.impl.executors.signature import Definition

Said = tuple[Kind, str, str]

# Each reduction leaves one value a simdgroup in `shared`, q at even and p at odd elements, and all lanes read them all.
MAXIMA = ("max_q = shared[simd_lane_id * 2 + 0];", "max_p = shared[simd_lane_id * 2 + 1];")
SUMS = ("shared[simd_group_id * 2 + 0] = sum_exp_q;", "shared[simd_group_id * 2 + 1] = sum_exp_p;")
TOTALS = ("sum_exp_q = shared[simd_lane_id * 2 + 0];", "sum_exp_p = shared[simd_lane_id * 2 + 1];")

# The sums are written while other simdgroups still read the maxima: no barrier lies between.
REUSE = {(Kind.RACE, read, write) for read, write in zip(MAXIMA, SUMS, strict=True)}

RACES: dict[str, set[Said]] = {
    "kl_forward": REUSE
    # Both barriers around the last reduction name no memory: it overwrites sums that are still read ...
    | {(Kind.BARRIER_FLAGS, read, "shared[simd_group_id] = kl;") for read in TOTALS}
    # ... and reads what other simdgroups have not written.
    | {(Kind.BARRIER_FLAGS, "shared[simd_group_id] = kl;", "kl = shared[simd_lane_id];")},
    "kl_backward": REUSE,
    # The last reduction's own barrier names its memory, the one before does not.
    "js_forward": REUSE
    | {
        (Kind.BARRIER_FLAGS, TOTALS[0], "shared[simd_group_id * 2 + 0] = kl_p;"),
        (Kind.BARRIER_FLAGS, TOTALS[1], "shared[simd_group_id * 2 + 1] = kl_q;"),
    },
    "js_backward": REUSE,
}

# All lanes of a simdgroup write the same zero for a masked token.
MASKED = {(Kind.SAME_VALUE_WRITE, "y[dv_idx] = static_cast<InT>(0);", "y[dv_idx] = static_cast<InT>(0);")}
HARMLESS: dict[str, set[Said]] = {"gated_delta_step_mask": MASKED, "gated_delta_step_vec_mask": MASKED}


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    with on("host_metal") as loaded:
        yield loaded


def said(findings: list[Finding]) -> dict[str, set[Said]]:
    """Kind and both lines, the one that stands first in the text first, by kernel."""
    found: dict[str, set[Said]] = {}
    for finding in findings:
        places = sorted({(a.place.file, a.place.line, a.place.text) for a in finding.accesses}) or [("", 0, "")]
        texts = (places[0][2], places[-1][2])
        found.setdefault(finding.kernel, set()).add((finding.kind, *texts))
    return found


def consequences(kernel: str) -> set[Said]:
    """Losses that races leave to the schedule; and the first lane's write after its own lanes' reads, which only a
    simdgroup operation separates.
    """
    if kernel not in RACES:
        return set()
    within = {(Kind.SIMDGROUP_RACE, *lines) for _, *lines in REUSE}
    return within | {(Kind.DEPENDS_ON_SCHEDULE, "", "")}


def test_every_site_is_listed(modules: dict[str, ModuleType]) -> None:
    calls = made_in()
    listed = {module: {k for site in SITES if site.module == module for k in site.kernels} for module in modules}
    assert set(calls) == set(listed)
    for name, module in modules.items():
        kernels = {value.definition.name for value in vars(module).values() if isinstance(value, Kernel)}
        assert kernels == listed[name]
        assert len(kernels) >= calls[name]


@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_findings_are_real(site: Site, modules: dict[str, ModuleType]) -> None:
    launched = set()

    def note(definition: Definition, launch: Launch) -> list[mx.array]:
        launched.add(definition.name)
        return launch.run()

    with checked() as findings, observed(note):
        mx.eval(site.call(modules[site.module]))
    assert launched == set(site.kernels)
    found = said(findings)
    for kernel in site.kernels:
        expected = RACES.get(kernel, set()) | HARMLESS.get(kernel, set())
        assert found.pop(kernel, set()) - consequences(kernel) == expected
    assert found == {}
