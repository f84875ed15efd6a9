"""The conformance before any figure: cases of the operation, judged as in a run, up to the first that fails."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mlx_assay.conformance.bench.report import Judged
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verdict import INCOMPLETE


class Unjudged(Exception):
    """A case could not be judged: no oracle, or oracles that disagree."""


def conformity(operation: str, implementation: Implementation, cases: Sequence[str], without: Sequence[str]) -> Judged:
    """Judges the quick cases of an operation, or those of it that the queries mean. Unjudged."""
    chosen = [case for case in select(list(cases) or [operation]).cases if case.operation == operation]
    if not chosen:
        raise Unjudged(f"no case of {operation} is selected by {', '.join(cases)}: nothing is measured unjudged")
    began = time.monotonic()
    for count, case in enumerate(chosen, 1):
        record = judge(case, implementation, without=without)
        if record.verdict in INCOMPLETE:
            raise Unjudged(record.message or f"{case.id}: {record.verdict}")
        if not record.conforms:
            return Judged(cases=count, failing=case.id, message=record.message)
    return Judged(cases=len(chosen), seconds=time.monotonic() - began)
