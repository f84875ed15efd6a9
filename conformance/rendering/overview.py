"""The overview: what every rendering says of a whole run, before it comes to single cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.cleaning import visible
from mlx_assay.conformance.reporting.report import Report, Totals, outcome
from mlx_assay.conformance.reporting.summary import failing, incomplete
from mlx_assay.conformance.verdict import Verdict

LONGEST_LIST = 400


@dataclass(frozen=True)
class Row:
    """An operation in one dtype: its cases by verdict, and how many do not conform."""

    operation: str
    dtype: str
    counts: Counter[Verdict]
    failing: int

    @property
    def total(self) -> int:
        """All its cases."""
        return self.counts.total()


@dataclass(frozen=True)
class Judge:
    """An oracle: its state and version, how many cases it judged, and why it is not there where it is not."""

    name: str
    state: str
    version: str
    cases: int
    reason: str


@dataclass(frozen=True)
class Overview:
    """A report, and what is counted in it."""

    report: Report
    verdicts: list[Verdict]
    rows: list[Row]
    judges: list[Judge]
    failing: list[Record]
    alarms: list[str]
    notes: list[str]

    @classmethod
    def of(cls, report: Report) -> Overview:
        """Counts once for all renderings."""
        rows = _rows(report)
        present = {verdict for row in rows for verdict in row.counts}
        return cls(
            report,
            [verdict for verdict in Verdict if verdict in present],
            rows,
            _judges(report),
            failing(report),
            list(_alarms(report)),
            list(_notes(report)),
        )

    @property
    def sentence(self) -> str:
        """What the verdict rests on, in one sentence."""
        totals = self.report.totals
        ran = (
            f"{'The one case' if totals.declared == 1 else f'All {totals.declared:,} cases'} ran"
            if totals.executed == totals.declared
            else f"{totals.executed:,} of {counted(totals.declared, 'case')} ran"
        )
        if not self.failing:
            return f"{ran}, and each that ran conforms." if self.report.cases else f"{ran}."
        return f"{ran}; {len(self.failing):,} {'does' if len(self.failing) == 1 else 'do'} not conform."

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What was judged, by what and where, as name and value; what is not known is left out."""
        return [(name, value) for name, value in _facts(self.report) if value]

    @property
    def subject(self) -> str:
        """`greedy on the executor host, host-x86_64`: what the verdict is of."""
        report = self.report
        where = f" on the executor {report.executor.name}" if report.executor.name else ""
        device = f", {report.environment.device_class}" if report.environment.device_class else ""
        return f"{report.implementation.name or 'An implementation'}{where}{device}"

    @property
    def common(self) -> list[tuple[str, int]]:
        """Kinds of the best diagnoses, and of how many failing cases each is, the most frequent first."""
        return Counter(filter(None, map(kind, self.failing))).most_common()

    @property
    def varied(self) -> list[Record]:
        """Failing cases, the first of each operation and kind before the second ones of any, dtypes taken together."""
        seen: Counter[str] = Counter()
        turns = []
        for record in self.failing:
            operation, _, rest = record.id.partition("?")[0].partition("/")
            alike = f"{record.verdict} {operation} {rest.partition('/')[2]}"
            turns.append(seen[alike])
            seen[alike] += 1
        order = sorted(range(len(turns)), key=lambda place: turns[place])
        return [self.failing[place] for place in order]

    @property
    def passing(self) -> dict[str, list[str]]:
        """Cases that conform: the parameters of each, by the path of their ids."""
        groups: dict[str, list[str]] = {}
        for record in self.report.cases:
            if record.conforms:
                path, _, parameters = record.id.partition("?")
                groups.setdefault(path, []).append(parameters)
        return groups


def kind(record: Record) -> str:
    """The kind of a case's best diagnosis; empty where it has none."""
    pattern = record.difference.pattern if record.difference else None
    return pattern.diagnoses[0].kind if pattern and pattern.diagnoses else ""


def _rows(report: Report) -> list[Row]:
    counts: dict[tuple[str, str], Counter[Verdict]] = {}
    broken: Counter[tuple[str, str]] = Counter()
    for record in report.cases:
        key = record.operation, record.dtype
        counts.setdefault(key, Counter())[record.verdict] += 1
        broken[key] += not record.conforms
    return [Row(*key, counts[key], broken[key]) for key in sorted(counts)]


def _judges(report: Report) -> list[Judge]:
    judged = Counter(name for record in report.cases for name in record.oracles)
    missing = Counter(name for record in report.cases for name in record.missing)
    states = report.environment.oracles
    found = []
    for name in sorted({*judged, *missing, *states}):
        state = states.get(name)
        word = state.state if state else "missing" if missing[name] else "not asked"
        reason = state.reason if state else ""
        found.append(Judge(name, word, state.version if state else "", judged[name], reason))
    return found


def _alarms(report: Report) -> Iterator[str]:
    """Why a run is incomplete, and where a report does not agree with itself."""
    yield from (f"Incomplete: {visible(reason, 800)}." for reason in incomplete(report))
    told = outcome(report.totals.declared, report.cases, report.complete and not report.altered)
    if told != report.verdict:
        yield f"This report does not agree with itself: it says {report.verdict}, its cases say {told}."
    if Totals.of(report.totals.declared, report.cases) != report.totals:
        yield "This report does not agree with itself: its totals are not those of its cases."
    if repeated := len(report.cases) - len({record.id for record in report.cases}):
        stand = f"{counted(repeated, 'case')} {'stands' if repeated == 1 else 'stand'}"
        yield f"This report does not agree with itself: {stand} in it more than once."


def _notes(report: Report) -> Iterator[str]:
    """What was left out, on request or since it is not there."""
    if report.selection.without:
        yield f"Left out on request: {_listed(report.selection.without)}."
    if report.selection.not_asked:
        yield f"Not asked, since the implementation lacks them: {_listed(report.selection.not_asked)}."


def _listed(names: list[str]) -> str:
    return visible(", ".join(names), LONGEST_LIST)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    environment, details, commit = report.environment, report.executor.details, report.source.commit
    yield "implementation", report.implementation.name
    yield "executor", report.executor.name
    yield "device class", environment.device_class
    yield "device", environment.device
    yield "compiler", details.get("compiler_version", "")
    yield "MLX", environment.packages.get("mlx", "")
    yield "commit", commit and f"{commit[:12]}{', with changes' if report.source.dirty else ''}"
    yield "leg", "" if report.leg == environment.device_class else report.leg
    if report.shard:
        yield "shard", f"{report.shard.index} of {report.shard.count}"
    yield "suite", f"mlx-assay {report.suite.version}" if report.suite else ""
    yield "selection", _listed(report.selection.queries) or "all"
    yield "tier and seed", f"{report.selection.tier}, {report.selection.seed}"
    yield "started", report.started.removesuffix("+00:00").replace("T", " ")
    yield "seconds", f"{report.seconds:,.1f}"


def details(report: Report) -> list[tuple[str, str]]:
    """What else is known of the run, for those who look for it."""
    environment, suite = report.environment, report.suite
    told = [
        ("run", report.run),
        ("commit", report.source.commit),
        ("Python", environment.python),
        ("platform", environment.platform),
        ("machine", environment.machine),
        ("graph compiler", environment.graph_compiler),
        ("suite: fixtures", suite.fixtures if suite else ""),
        ("suite: judge", suite.judge if suite else ""),
    ]
    told += [(f"package {name}", value) for name, value in environment.packages.items()]
    told += [(f"executor: {name}", value) for name, value in report.executor.details.items()]
    told += [(f"implementation: {name}", value) for name, value in report.implementation.details.items()]
    return [(name, value) for name, value in told if value]
