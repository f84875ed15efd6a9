"""The making of a bundle: a case run once more while its launches are recorded, and what the oracles expect."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mlx_assay.conformance.bundling import archive, launches
from mlx_assay.conformance.bundling.document import (
    MOST_KERNELS,
    SCHEMA,
    Array,
    Bundle,
    BundledSubcase,
    Plain,
    Raised,
    Round,
    Want,
)
from mlx_assay.conformance.bundling.launches import Buffer, Kernel, Launches
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.conformance.bundling.recorder import SUFFIX
from mlx_assay.conformance.contract import Contract, contracts, seen
from mlx_assay.conformance.judging.judge import applicable, same_bits
from mlx_assay.conformance.judging.panel import Disagreement, Panel
from mlx_assay.conformance.process.exchange import POISONS, SCHEDULES
from mlx_assay.conformance.process.implementation import Implementation, Outcome
from mlx_assay.conformance.process.protocol import PlainArgument
from mlx_assay.conformance.process.seal import digests
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting import report
from mlx_assay.conformance.reporting.device import device_class
from mlx_assay.conformance.reporting.environment import environment, packages
from mlx_assay.conformance.reporting.promise import promised
from mlx_assay.conformance.verbs.replay import outcomes_of, subcases_of
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.oracles.registry import load

ROOM = 64 << 20
"""Bytes of arrays; a subcase that would take more is left out, unless it is the first."""

Outcomes = Sequence[Outcome]
DIED = Outcome()
"""Of the call during which the process ended or its time was up."""

DEATH = "nothing: its process ended, or its time was up"


def pack(case: Case, record: Record, target: str | None, executor: str | None, limit: float) -> bytes:
    """The bytes of a bundle of a case: of the subcase that the record tells of first, then of the others.

    The implementation is asked anew, so what it gives now stands in it. Raises ImplementationError and Refusal as the
    verb `replay` does.
    """
    contract, subcases = contracts()[case.operation], subcases_of(case)
    with (
        tempfile.TemporaryDirectory(prefix="mlx-assay-") as folder,
        Implementation(target, executor, limit) as implementation,
    ):
        implementation.record = folder
        outcomes = outcomes_of(contract, subcases, implementation)
        packing = Packing(contract, implementation.environment, Path(folder))
        told = record.difference.subcase if record.difference else ""
        order = sorted(range(len(subcases)), key=lambda index: subcases[index].label != told)
        for index in order:
            died = len(outcomes) < 2 * len(subcases) and len(outcomes) % len(subcases) == index
            packing.add(
                index, subcases[index], [*outcomes[index :: len(subcases)], *([DIED] if died else [])], len(subcases)
            )
        return archive.encode(packing.bundle(case, record, implementation), packing.pool)


class Packing:
    """A bundle while it is made."""

    def __init__(self, contract: Contract, environment: Mapping[str, Any], folder: Path) -> None:
        self.pool = Pool()
        self._contract = contract
        self._executor = environment["executor"]
        self._folder = folder
        self._kernels: dict[bytes, tuple[int, Kernel]] = {}
        self._subcases: list[BundledSubcase] = []
        self._left_out: list[str] = []
        self._relaxations = applicable(contract.relaxations, environment)
        self._panel = Panel(contract, load, self._relaxations)

    def add(self, index: int, subcase: Subcase, outcomes: Outcomes, count: int) -> None:
        """Adds a subcase with the outcomes of its calls, `count` calls apart, where there is room."""
        size = sum(value.base.nbytes for value in subcase.arguments.values() if isinstance(value, Tensor))
        if self._subcases and self.pool.nbytes + size > ROOM:
            self._left_out.append(subcase.label)
            return
        wants, untold = self._wants(index, subcase)
        repeated = len(outcomes) == 2 and (same_bits(*outcomes) or _same_failure(*outcomes))
        self._subcases.append(
            BundledSubcase(
                label=subcase.label,
                raises=list(subcase.raises),
                arguments=[self._argument(index, name, subcase.arguments[name]) for name in self._contract.parameters],
                rounds=[
                    self._round(index, number, outcome, index + number * count)
                    for number, outcome in enumerate(outcomes[: 1 if repeated else 2])
                ],
                wants=wants,
                untold=untold[:2000],
            )
        )

    def bundle(self, case: Case, record: Record, implementation: Implementation) -> Bundle:
        """The document."""
        described = {key: str(value) for key, value in self._executor.items()}
        fixtures, judge = digests()
        here = environment()
        return Bundle(
            schema=SCHEMA,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            case=case.id,
            operation=case.operation,
            dtype=case.dtype,
            why=record.why,
            verdict=record.verdict,
            message=record.message[:20_000],
            suite=report.Suite(version=packages().get("mlx-assay", ""), fixtures=fixtures, judge=judge),
            contract=promised(self._contract),
            relaxations=list(self._relaxations),
            environment=msgspec.structs.replace(
                here,
                device=str(implementation.environment["device"]),
                device_class=device_class(described),
            ),
            implementation=report.Implementation(
                name=implementation.target or "mlx_assay.impl",
                operations=list(implementation.operations),
                details=implementation.details,
            ),
            executor=report.Executor(name=described.pop("name"), details=described),
            kernels=[kernel for _, kernel in self._kernels.values()],
            subcases=self._subcases,
            left_out=self._left_out,
        )

    def _wants(self, index: int, subcase: Subcase) -> tuple[list[Want], str]:
        if subcase.raises:
            return [], ""
        if fault := self._panel.fault():
            return [], fault
        try:
            expected = self._panel.expect(seen(subcase, self._executor))
        except Disagreement as error:
            return [], str(error)
        wants = []
        for each in expected:
            name, _, version = self._panel.title(each.reference).partition(" ")
            ulps = self._ulps(f"{index}/ulps/{name}", each.ulps)
            output = self._buffer(f"{index}/want/{name}", each.output)
            rung = each.reference.conforms
            wants.append(Want(oracle=name, version=version, conforms=rung, output=output, ulps=ulps))
        return wants, "" if wants else "no oracle has an opinion on these arguments"

    def _ulps(self, name: str, ulps: int | np.ndarray | None) -> int | Buffer | None:
        if isinstance(ulps, np.ndarray):
            return self._buffer(name, ulps.astype(np.int64))
        return ulps

    def _argument(self, index: int, name: str, value: Any) -> Array | Plain:
        if isinstance(value, Tensor):
            base = self._buffer(f"{index}/arguments/{name}", value.base)
            return Array(name=name, base=base, steps=list(value.steps), kind=value.kind)
        written = PlainArgument.make(value)
        return Plain(name=name, type=written.type, text=written.text)  # type: ignore[arg-type]

    def _round(self, index: int, number: int, outcome: Outcome, call: int) -> Round:
        place = f"{index}/round-{number}"
        poison, schedule = f"0x{POISONS[number]:08x}", SCHEDULES[number]
        if outcome.raised is not None:
            raised = outcome.raised
            told = Raised(type=raised.type, bases=raised.bases[:100], message=raised.message[:20_000])
            found, omitted = self._launches(place, call)
            return Round(poison=poison, schedule=schedule, raised=told, launches=found, omitted=omitted)
        if outcome.array is None:
            other = f"{outcome.type or outcome.dtype} of shape {list(outcome.shape)}" if outcome != DIED else DEATH
            found, omitted = self._launches(place, call)
            return Round(poison=poison, schedule=schedule, other=other[:2000], launches=found, omitted=omitted)
        got = self._buffer(f"{place}/got", outcome.array)
        found, omitted = self._launches(place, call)
        return Round(poison=poison, schedule=schedule, got=got, launches=found, omitted=omitted)

    def _launches(self, place: str, call: int) -> tuple[list[launches.Launch], str]:
        """The launches that the implementation's process wrote down; it is not believed that it wrote what it ran."""
        try:
            found, pool = launches.decode(_read(self._folder / f"{call}{SUFFIX}"))
        except (OSError, ValueError) as error:
            return [], f"no launches were recorded: {error}"[:2000]
        if len(self._kernels) + len(found.kernels) > MOST_KERNELS:
            return [], f"more than {MOST_KERNELS} kernels"
        if self.pool.nbytes + pool.nbytes > 2 * ROOM:
            return [], f"arrays of {pool.nbytes} bytes more, for which there was no room"
        return [self._launch(place, each, found, pool) for each in found.launches], found.omitted

    def _launch(self, place: str, launch: launches.Launch, found: Launches, pool: Pool) -> launches.Launch:
        def moved(buffer: Buffer) -> Buffer:
            if not buffer.tensor:
                return buffer
            return msgspec.structs.replace(
                buffer, tensor=self.pool.add(f"{place}/{buffer.tensor}", archive.array(buffer, pool))
            )

        return msgspec.structs.replace(
            launch,
            kernel=self._kernel(found.kernels[launch.kernel]),
            inputs=[moved(buffer) for buffer in launch.inputs],
            outputs=[moved(buffer) for buffer in launch.outputs],
        )

    def _kernel(self, kernel: Kernel) -> int:
        return self._kernels.setdefault(msgspec.json.encode(kernel), (len(self._kernels), kernel))[0]

    def _buffer(self, name: str, array: np.ndarray) -> Buffer:
        return Buffer(tensor=self.pool.add(name, array), dtype=str(array.dtype), shape=list(array.shape))  # type: ignore[arg-type]


def _same_failure(first: Outcome, second: Outcome) -> bool:
    return first.array is None and second.array is None and first == second


def _read(path: Path) -> bytes:
    """A plain file, not larger than the recorder may write."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        data = file.read(2 * launches.LARGEST + 1)
    if len(data) > 2 * launches.LARGEST:
        raise ValueError(f"expected {2 * launches.LARGEST} bytes at most")
    return data
