"""The worker: the process that collects cases, keeps the implementation's process, and judges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.capture.adoption import adopt
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.crew import DISTRIBUTION
from mlx_assay.conformance.diagnosis.keeper import Keeper
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.judging.panel import standing
from mlx_assay.conformance.options import Options, distribution
from mlx_assay.conformance.plugin import PROPERTY, STAGES_PROPERTY, WORKER_PROPERTY
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.query import QueryError
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.device import device_class
from mlx_assay.conformance.reporting.promise import promised
from mlx_assay.conformance.reporting.report import OracleState
from mlx_assay.conformance.selection import NothingSelected, Selection, check_oracles, select, tags_of
from mlx_assay.conformance.session import Account, Worker
from mlx_assay.conformance.splitting import part
from mlx_assay.fixtures.case import Case
from mlx_assay.impl.executors import fidelity
from mlx_assay.oracles.registry import availability, load

IMPLEMENTATION = pytest.StashKey[Implementation]()
SELECTION = pytest.StashKey[Selection]()
TOLD = pytest.StashKey[bool]()


def implementation(config: pytest.Config) -> Implementation:
    """The process that runs what is judged; started at the first call, closed with pytest."""
    if IMPLEMENTATION not in config.stash:
        options = Options.of(config)
        if options.profile is not None:
            config.add_cleanup(partial(fidelity.prefer, adopt(options.profile)))
        handle = Implementation(options.implementation, options.executor, options.limit)
        handle.profile = options.profile
        handle.checked = options.checked
        config.add_cleanup(handle.close)
        config.stash[IMPLEMENTATION] = handle
    return config.stash[IMPLEMENTATION]


def parameters(config: pytest.Config) -> list[Any]:
    """The selected cases as pytest parameters, with a mark a tag."""
    try:
        options = Options.of(config)
        check_oracles(options.without)
        distribution(getattr(config, "workerinput", {}).get(DISTRIBUTION, "no"))
        handle = implementation(config)
        selection = part(select(options.queries, options.tier, options.seed, handle.operations), options)
    except (QueryError, NothingSelected, ImplementationError, ValueError) as error:
        raise pytest.Collector.CollectError(f"mlx-assay: {error}") from None
    config.stash[SELECTION] = selection
    return [pytest.param(case, id=case.id, marks=_marks(tags_of(case))) for case in selection.cases]


@cache
def _marks(tags: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    """A mark a tag; the same ones for every case of these tags, since there may be a hundred thousand."""
    return [pytest.mark.mlx_assay(tag=tag) for tag in tags]


def judged(case: Case, handle: Implementation, request: pytest.FixtureRequest) -> Record:
    """Judges a case and hangs its record on the pytest item."""
    options = Options.of(request.config)
    keep = Keeper(Path(options.report)).keep if options.report else None
    record = judge(case, handle, without=options.without, keep=keep)
    request.node.user_properties.append((PROPERTY, msgspec.json.encode(record).decode()))
    if TOLD not in request.config.stash:
        request.config.stash[TOLD] = True
        told = msgspec.json.encode(portrait(handle, request.config.stash[SELECTION], options.without))
        request.node.user_properties.append((WORKER_PROPERTY, told.decode()))
    if spent := stopwatch.taken("pytest"):
        told = msgspec.json.encode(Account(case.operation, spent))
        request.node.user_properties.append((STAGES_PROPERTY, told.decode()))
    return record


def portrait(handle: Implementation, selection: Selection, without: Sequence[str] = ()) -> Worker:
    """What this process knows that the controller does not."""
    known = dict(handle.environment)
    executor = {key: str(value) for key, value in dict(known.pop("executor", {})).items()}
    name = executor.pop("name", "")
    operations = {case.operation for case in selection.cases}
    if "protocol" in handle.details:
        # This process's MLX is not that of a program from outside.
        known.pop("mlx", None)
    return Worker(
        device=str(known.pop("device", "")),
        executor=name,
        executor_details=executor,
        implementation_details={**{key: str(value) for key, value in known.items()}, **handle.details},
        operations=list(handle.operations),
        not_asked=list(selection.not_asked),
        shard=selection.shard,
        oracles=oracles(operations, without),
        device_class=device_class({"name": name, **executor}),
        contracts={name: promised(contract) for name, contract in contracts().items() if name in operations},
    )


def oracles(operations: set[str], without: Sequence[str]) -> dict[str, OracleState]:
    """The oracles that these operations' contracts ask; each has been tested in this process, or is now."""
    references = {
        reference.oracle
        for operation, contract in contracts().items()
        if operation in operations
        for reference in contract.references
        if reference.oracle.replace("_", "-") not in without
    }
    found = [standing(name, load) for name in sorted(references)]
    return {
        known.name: OracleState(
            "missing" if known.missing else "faulty" if known.fault else "ok",
            known.version,
            (availability(known.name) or known.missing) if known.missing else known.fault,
        )
        for known in found
    }
