"""A stage for the harness: implementation and judge replaced by a script, so that what is around them is seen alone.

Loaded as a pytest plugin by workers (PYTEST_PLUGINS=staged) and run as a program in place of `mlx-assay`. The script is
JSON in the environment: `verdicts` by glob over case ids, `seconds` a case, `operations`, `refuse`, `missing`, and
`cases`, how many synthetic ones stand in the place of this suite's own; in the file `journal` stand the cases judged.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

VARIABLE = "MLX_ASSAY_STAGE"
ABORT = "abort"
RAISE = "raise"


def script() -> dict[str, Any]:
    """The script, empty where none is set."""
    found: dict[str, Any] = json.loads(os.environ.get(VARIABLE, "{}"))
    return found


class StagedImplementation:
    """Has the operations that the script says; runs nothing."""

    def __init__(self, target: str | None, executor: str | None, limit: float = 60.0) -> None:
        self.environment = {"name": target or "staged", "device": "stage", "executor": {"name": executor or "host"}}
        self.details: dict[str, str] = {}

    @property
    def operations(self) -> tuple[str, ...]:
        from mlx_assay.conformance.process.implementation import ImplementationError
        from mlx_assay.conformance.selection import operations

        if refusal := script().get("refuse"):
            raise ImplementationError(refusal)
        return tuple(script().get("operations", operations()))

    def close(self) -> None: ...


def staged_judge(
    case: Any, implementation: StagedImplementation, without: Sequence[str] = (), keep: object = None
) -> Any:
    """Says of a case what the script says, same-bits where it says nothing."""
    from mlx_assay.conformance.record import Record, replay_command
    from mlx_assay.conformance.verdict import Verdict

    time.sleep(script().get("seconds", 0.0))
    said = next(
        (told for glob, told in script().get("verdicts", {}).items() if fnmatchcase(case.id, glob)), "same-bits"
    )
    if journal := script().get("journal"):
        with open(journal, "a", encoding="utf-8") as file:
            file.write(f"{case.id}\n")
    if said == ABORT:
        os.abort()
    if said == RAISE:
        raise RuntimeError("the judge itself is broken")
    verdict = Verdict(said)
    conforms = verdict in (Verdict.SAME_BITS, Verdict.SAME_VALUE, Verdict.WITHIN_ULP)
    return Record(
        id=case.id,
        operation=case.operation,
        dtype=case.dtype,
        tags=["staged"],
        why="A stage",
        verdict=verdict,
        conforms=conforms,
        oracle="stage",
        oracles=["stage"],
        missing=script().get("missing", []),
        subcases=2,
        seconds=0.0,
        replay=replay_command(case.id),
        message="" if conforms else f"{case.id}: got 0x01 want 0x02\n  policy same-bits",
    )


def install() -> None:
    """Puts the stage up."""
    from mlx_assay.conformance import worker
    from mlx_assay.conformance.verbs import run

    worker.Implementation = run.Implementation = StagedImplementation  # type: ignore[misc,assignment]
    worker.judge = staged_judge  # type: ignore[assignment]
    worker.oracles = lambda operations, without: {}
    if count := script().get("cases"):
        import synthetic

        synthetic.install(count)


install()

if __name__ == "__main__":
    from mlx_assay.conformance.cli import main

    sys.exit(main())
