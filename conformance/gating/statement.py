"""The statement: what the gate says, as an in-toto attestation of a test result, bound to what is released.

The forms are in-toto's Statement v1 and the predicate Test Result v0.1, in github.com/in-toto/attestation,
spec/v1/statement.md and spec/predicates/test-result.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlx_assay.conformance.gating.decision import Decision, Digested
from mlx_assay.conformance.gating.mutants import WHERE
from mlx_assay.conformance.reporting.intake import printed

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"


def predicate(decision: Decision, url: str = "") -> dict[str, Any]:
    """The predicate: a test is an operation with a dtype in a leg. ValueError where there is no verdict to state.

    WARNED says that all conforms but what waivers cover, or what differs on a smoke leg.
    """
    if decision.verdict == "incomplete":
        raise ValueError("Expected a verdict to state but the gate is incomplete")
    tests: dict[str, list[str]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    for row in decision.operations:
        kind = "failedTests" if row.failing else "warnedTests" if row.waived or row.warned else "passedTests"
        tests[kind].append(f"{row.leg}: {row.operation}/{row.dtype}")
    if decision.mutants is not None:
        failing = any(reason.where == WHERE for reason in decision.reasons)
        tests["failedTests" if failing else "passedTests"].append(WHERE)
    result = "FAILED" if decision.verdict == "differs" else "WARNED" if tests["warnedTests"] else "PASSED"
    return {
        "result": result,
        "configuration": _configuration(decision),
        **({"url": url} if url else {}),
        **tests,
    }


def statement(decision: Decision, url: str = "") -> dict[str, Any]:
    """The predicate about the artefact; ValueError where there is none, or no verdict."""
    if decision.artefact is None:
        raise ValueError("Expected an artefact for a statement to be about but got none")
    name = {"name": decision.artefact.name} if decision.artefact.name else {}
    return {
        "_type": STATEMENT,
        "subject": [{**name, "digest": {"sha256": decision.artefact.sha256}}],
        "predicateType": PREDICATE,
        "predicate": predicate(decision, url),
    }


def encode(document: dict[str, Any]) -> bytes:
    """JSON of two-space indents in ASCII, and a newline."""
    return json.dumps(document, indent=2).encode("ascii") + b"\n"


def _configuration(decision: Decision) -> list[dict[str, Any]]:
    """Policy, reports, suite and commit as ResourceDescriptors, each with its digest."""
    suite = decision.suite
    commit = [{"name": "commit", "digest": {"gitCommit": decision.commit}}] if decision.commit else []
    return [
        {**_descriptor(decision.policy), "mediaType": "application/toml"},
        *(
            {
                **_descriptor(report),
                "mediaType": "application/json",
                "annotations": {"leg": printed(report.leg, 64), "run": printed(report.run, 64)},
            }
            for report in decision.reports
        ),
        *_mutants(decision),
        {"name": f"mlx-assay {suite.version} fixtures", "digest": {"sha256": suite.fixtures}},
        {"name": f"mlx-assay {suite.version} judge", "digest": {"sha256": suite.judge}},
        *commit,
    ]


def _mutants(decision: Decision) -> list[dict[str, Any]]:
    """The campaign's report, where the policy asked for one."""
    if decision.mutants is None:
        return []
    return [{**_descriptor(decision.mutants), "mediaType": "application/json"}]


def _descriptor(digested: Digested) -> dict[str, Any]:
    return {"name": printed(Path(digested.file).name), "digest": {"sha256": digested.sha256}}
