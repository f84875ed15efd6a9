"""The installed suite as a gate asks it: its digests, its cases, and what their contracts ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.seal import digests
from mlx_assay.conformance.query import Query, QueryError
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.reporting.report import Suite as Judging
from mlx_assay.conformance.selection import NothingSelected, Selection, dtypes, operations, select, tags_of
from mlx_assay.conformance.verdict import Verdict, weakest
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import Tier, kind_of, kinds

BIT_RUNGS = (Verdict.SAME_BITS, Verdict.SAME_VALUE)


class Suite:
    """What is asked twice is remembered: the legs of a release have the same cases."""

    def __init__(self) -> None:
        self._cases: dict[str, Case | None] = {}
        self._selections: dict[tuple[object, ...], Selection | str] = {}

    @cached_property
    def installed(self) -> Judging:
        """Version and digests, as a report of this suite would name them."""
        fixtures, judge = digests()
        try:
            named = version("mlx-assay")
        except PackageNotFoundError:
            named = ""
        return Judging(version=named, fixtures=fixtures, judge=judge)

    def case(self, case_id: str) -> Case | None:
        """The case of an id in its one spelling, None for anything else."""
        if case_id not in self._cases:
            try:
                case = Case.parse(case_id)
                self._cases[case_id] = case if case.id == case_id and case_id.isprintable() else None
            except ValueError:
                self._cases[case_id] = None
        return self._cases[case_id]

    def tags(self, record: Record, known: bool) -> Sequence[str]:
        """The tags of a case: those of its kind where the fixtures are `known`, else what the report says."""
        case = self.case(record.id)
        if known and case is not None and (case.operation, case.kind) in kinds():
            return tags_of(case)
        return record.tags

    def selected(self, report: Report) -> Selection:
        """What this suite selects for what a report says was asked; ValueError where that is nothing."""
        asked = report.selection
        key = (tuple(asked.queries), asked.tier, asked.seed, tuple(report.implementation.operations))
        if key not in self._selections:
            self._selections[key] = self._select(key[0], asked.tier, asked.seed, report.implementation.operations)
        found = self._selections[key]
        if isinstance(found, str):
            raise ValueError(found)
        return found

    @staticmethod
    def _select(queries: object, tier: str, seed: int, implemented: Sequence[str]) -> Selection | str:
        named: dict[str, Tier] = {"quick": "quick", "full": "full"}
        if tier not in named or not 0 <= seed < 2**31 or not isinstance(queries, tuple):
            return f"expected tier quick or full and a seed from 0 to 2147483647 but got {tier!r} and {seed}"
        try:
            return select(queries, named[tier], seed, implemented)
        except (QueryError, NothingSelected) as error:
            return str(error)

    def strange(self, record: Record, without: Iterable[str]) -> str:
        """What of a record this suite's own fixtures and contract rule out, in a few words; empty for nothing."""
        case = self.case(record.id)
        if case is None or (case.operation, case.kind) not in kinds() or case.operation not in contracts():
            return "not a case of this suite"
        lost = not record.oracles and not record.missing and record.verdict in (Verdict.CRASHED, Verdict.NOT_RUN)
        kind = kind_of(case)
        if not lost and (list(kind.tags) != record.tags or kind.why != record.why):
            return "other tags or another reason than the fixtures give"
        contract = contracts()[case.operation]
        asked = dict.fromkeys(name for one in contract.references if (name := _oracle(one.oracle)) not in without)
        if not lost and {*record.oracles, *record.missing} != asked.keys():
            return f"other oracles than the contract asks: {', '.join(asked)}"
        if record.conforms and not record.verdict.reaches(lowest(case.operation)):
            return f"a verdict below {lowest(case.operation)}, which the contract asks"
        if not set(record.relaxations) <= set(contract.relaxations):
            return "a relaxation that the contract does not know"
        if record.verdict is Verdict.SAME_VALUE and not record.relaxations:
            return "the same value without a relaxation"
        return ""


def lowest(operation: str) -> Verdict:
    """The weakest verdict that an operation's contract lets conform: of the references that ask for bits, or of all."""
    rungs = [reference.conforms for reference in contracts()[operation].references]
    return weakest([rung for rung in rungs if rung in BIT_RUNGS] or rungs)


def checked(text: str) -> Query:
    """A query that can be meant; QueryError says what is wrong with it."""
    query = Query.parse(text)
    query.check(operations(), dtypes())
    return query


def _oracle(module: str) -> str:
    return module.replace("_", "-")
