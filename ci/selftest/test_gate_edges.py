"""What a gate prints of names that are too long, and what a need says of a case that was not judged."""

from __future__ import annotations

from datetime import datetime

import msgspec
from sound import COMMIT, NOW, QUERY, report

from mlx_assay.conformance.gating.policy import SCHEMA, Leg, Need, Policy
from mlx_assay.conformance.gating.presence import present
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.gating.waiving import judged
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.verdict import INCOMPLETE, Verdict

SUITE = Suite()
LEG = Leg(implementation="kernels", device_class=["host-*"], executor="host", cases=1, queries=[QUERY])
LONG = "9" * 200


def test_what_others_wrote_is_cut() -> None:
    made = report()
    environment = msgspec.structs.replace(made.environment, packages={"mlx": LONG}, device_class=LONG)
    selection = msgspec.structs.replace(made.selection, tier=LONG)
    assert made.suite is not None
    strange = msgspec.structs.replace(
        made,
        environment=environment,
        selection=selection,
        suite=msgspec.structs.replace(made.suite, version=LONG, fixtures=LONG),
        source=msgspec.structs.replace(made.source, commit=LONG),
        executor=msgspec.structs.replace(made.executor, name=LONG),
        started=LONG,
    )
    policy = Policy(schema=SCHEMA, age_hours=24, legs={"host": LEG}, packages={"mlx": "==0.32.*"})
    found = present(strange, policy, LEG, "here", datetime.fromisoformat(NOW), COMMIT, SUITE)
    short, digest = printed(LONG, 60), printed(LONG, 64)
    assert len(short) < len(digest) < 80
    got = [one.text.rpartition(" but ")[2].removeprefix("got ").removeprefix("it is of ") for one in found]
    assert got == [repr(short), digest, repr(short), repr(digest), short, short, repr(short), short]


def test_a_need_says_nothing_of_what_was_not_judged() -> None:
    need = Need(query=QUERY, verdict="same-bits")
    policy = Policy(schema=SCHEMA, age_hours=24, legs={"host": LEG}, needs=[need])
    for verdict in INCOMPLETE:
        made = report(verdicts={report().cases[0].id: verdict})
        assert judged("host", LEG, made, policy, SUITE, set()).failing == {}
    differs = report(verdicts={report().cases[0].id: Verdict.DIFFERS})
    assert list(judged("host", LEG, differs, policy, SUITE, set()).failing.values()) == ["differs"]
