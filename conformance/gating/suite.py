"""The installed suite as a gate asks it: its digests, its cases, and what their contracts ask."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.seal import digests
from mlx_assay.conformance.query import Query, QueryError
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.reporting.report import Suite as Judging
from mlx_assay.conformance.selection import NothingSelected, dtypes, operations, select, tags_of
from mlx_assay.conformance.verdict import Verdict, weakest
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import Tier, kinds

BIT_RUNGS = (Verdict.SAME_BITS, Verdict.SAME_VALUE)


class Selected(NamedTuple):
    """What the installed suite selects: ids in order, cases by id, and operations that were not asked."""

    ids: list[str]
    cases: dict[str, Case]
    not_asked: list[str]


class Suite:
    """What is asked twice is remembered: the legs of a release have the same cases."""

    def __init__(self) -> None:
        self._cases: dict[str, Case | None] = {}
        self._selections: dict[tuple[object, ...], Selected | str] = {}
        self._meant: dict[tuple[str, str], bool] = {}

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

    def prepare(self, report: Report) -> None:
        """Learns the cases of what a report asked for, which spares reading each id of theirs."""
        with suppress(ValueError):
            self.selected(report)

    def selected(self, report: Report) -> Selected:
        """What this suite selects for what a report says was asked; ValueError where that is nothing."""
        asked = report.selection
        key = (tuple(asked.queries), asked.tier, asked.seed, tuple(report.implementation.operations))
        if key not in self._selections:
            made = self._select(key[0], asked.tier, asked.seed, report.implementation.operations)
            if isinstance(made, Selected):
                self._cases |= made.cases
            self._selections[key] = made
        found = self._selections[key]
        if isinstance(found, str):
            raise ValueError(found)
        return found

    @staticmethod
    def _select(queries: object, tier: str, seed: int, implemented: Sequence[str]) -> Selected | str:
        named: dict[str, Tier] = {"quick": "quick", "full": "full"}
        if tier not in named or not 0 <= seed < 2**31 or not isinstance(queries, tuple):
            return f"expected tier quick or full and a seed from 0 to 2147483647 but got {tier!r} and {seed}"
        try:
            found = select(queries, named[tier], seed, implemented)
        except (QueryError, NothingSelected) as error:
            return str(error)
        cases = {case.id: case for case in found.cases}
        return Selected(list(cases), cases, list(found.not_asked))

    def means(self, text: str, record: Record, known: bool) -> bool:
        """Whether a query means a record's case; remembered where its tags are those of its kind."""
        key = (text, record.id)
        if not known or key not in self._meant:
            case = self.case(record.id)
            found = case is not None and _checked(text).matches(case, self.tags(record, known))
            if not known:
                return found
            self._meant[key] = found
        return self._meant[key]

    def strange(self, record: Record, without: frozenset[str]) -> str:
        """What of a record this suite's own fixtures and contract rule out, in a few words; empty for nothing."""
        case = self.case(record.id)
        kind = None if case is None else kinds().get((case.operation, case.kind))
        if case is None or kind is None or case.operation not in contracts():
            return "not a case of this suite"
        lost = not record.oracles and not record.missing and record.verdict in (Verdict.CRASHED, Verdict.NOT_RUN)
        promise = promised(case.operation, without)
        if not lost and (list(kind.tags) != record.tags or kind.why != record.why):
            return "other tags or another reason than the fixtures give"
        if not lost and promise.oracles != {*record.oracles, *record.missing}:
            return f"other oracles than the contract asks: {', '.join(sorted(promise.oracles))}"
        if record.conforms and record.verdict is not Verdict.SAME_BITS and not record.verdict.reaches(promise.lowest):
            return f"a verdict below {promise.lowest}, which the contract asks"
        if not promise.relaxations.issuperset(record.relaxations):
            return "a relaxation that the contract does not know"
        if record.verdict is Verdict.SAME_VALUE and not record.relaxations:
            return "the same value without a relaxation"
        return ""


class Promise(NamedTuple):
    """Of a contract, what a record has to keep to: who judges, how weak a verdict may conform, which relaxations."""

    oracles: frozenset[str]
    lowest: Verdict
    relaxations: frozenset[str]


@cache
def promised(operation: str, without: frozenset[str]) -> Promise:
    """What an operation's contract asks where some oracles are left out."""
    contract = contracts()[operation]
    names = frozenset(one.oracle.replace("_", "-") for one in contract.references)
    return Promise(names - without, lowest(operation), frozenset(contract.relaxations))


def lowest(operation: str) -> Verdict:
    """The weakest verdict that an operation's contract lets conform: of the references that ask for bits, or of all."""
    rungs = [reference.conforms for reference in contracts()[operation].references]
    return weakest([rung for rung in rungs if rung in BIT_RUNGS] or rungs)


def checked(text: str) -> Query:
    """A query that can be meant; QueryError says what is wrong with it."""
    query = Query.parse(text)
    query.check(operations(), dtypes())
    return query


_checked = cache(checked)
