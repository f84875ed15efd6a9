"""The explanation of one case that does not conform: what any rendering tells of it, in the words they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlx_assay.conformance.record import Diagnosis, Difference, Record
from mlx_assay.conformance.rendering.encoding import FORMATS, Word, apart, word
from mlx_assay.conformance.rendering.figure import FINE, Column, Detail, Grid, grid, histogram
from mlx_assay.conformance.reporting.report import ContractRecord

MOST_DIAGNOSES = 6
PATTERN_LINE = "  pattern: "
"""How the message's line begins that tells of diagnoses, which are shown by themselves."""


@dataclass(frozen=True)
class Compared:
    """One place: its index, both encodings, and the distance between them."""

    index: str
    got: Word
    want: Word
    apart: str


@dataclass(frozen=True)
class Explanation:
    """A case: its record, and of its difference the places, figures and sentences.

    `first` is the one sentence to read where there is room for no other; `rules` are numbers and texts of the
    contract's rules that bear on the case, `promised` says whether the report holds all rules; `dtype` is that of the
    output, empty where it is not known.
    """

    record: Record
    first: str
    size: str
    rules: list[tuple[str, str]]
    promised: bool
    dtype: str
    places: list[Compared]
    diagnoses: list[Diagnosis]
    columns: list[Column]
    grid: Grid | None

    @classmethod
    def of(cls, record: Record, contracts: Mapping[str, ContractRecord], detail: Detail = FINE) -> Explanation:
        """What is known of a case that does not conform."""
        difference = record.difference
        pattern = difference.pattern if difference else None
        dtype = output_dtype(record)
        return cls(
            record,
            _first(record),
            size(difference) if difference else "",
            _rules(record, contracts.get(record.operation)),
            record.operation in contracts,
            dtype,
            _places(difference, dtype)[: detail.places] if difference else [],
            pattern.diagnoses[:MOST_DIAGNOSES] if pattern else [],
            histogram(pattern, detail.bars) if pattern else [],
            grid(pattern, detail) if pattern else None,
        )

    @property
    def headline(self) -> str:
        """The first line of the message."""
        return self.record.message.partition("\n")[0]

    @property
    def trace(self) -> str:
        """What the message holds beside its first line and what stands elsewhere: a traceback, or nothing."""
        lines = self.record.message.split("\n")[1:]
        if lines and self.record.replay in lines[-1]:
            lines.pop()
        return "\n".join(line for line in lines if not line.startswith(PATTERN_LINE))


def output_dtype(record: Record) -> str:
    """The pattern's dtype; else the case's own where a distance says that the output is in a float format like it."""
    difference = record.difference
    if difference is None:
        return ""
    if difference.pattern is not None:
        return difference.pattern.dtype
    layout = FORMATS.get(record.dtype)
    if difference.worst_ulp is None or layout is None:
        return ""
    return record.dtype if all(len(place.got) == 2 + layout.width // 4 for place in difference.places) else ""


def size(difference: Difference) -> str:
    """`31 of 127 places differ, by 3 ULP at most`."""
    verb = "differs" if difference.count == 1 else "differ"
    places = "place" if difference.total == 1 else "places"
    worst = f", by {difference.worst_ulp:,} ULP at most" if difference.worst_ulp is not None else ""
    return f"{difference.count:,} of {difference.total:,} {places} {verb}{worst}"


def _first(record: Record) -> str:
    difference = record.difference
    if difference is None:
        return record.message.partition("\n")[0]
    if difference.pattern and difference.pattern.diagnoses:
        return difference.pattern.diagnoses[0].text
    return difference.explanation or size(difference)


def _rules(record: Record, contract: ContractRecord | None) -> list[tuple[str, str]]:
    """The rule that the difference names; its text is empty where the report does not hold it."""
    rule = record.difference.rule if record.difference else ""
    return [(rule, contract.rules.get(rule, "") if contract else "")] if rule else []


def _places(difference: Difference, dtype: str) -> list[Compared]:
    compared = []
    for place in difference.places[: FINE.places]:
        got, want = word(place.got, dtype), word(place.want, dtype)
        compared.append(Compared(index(place.index), got, want, apart(got, want)))
    return compared


def index(axes: list[int]) -> str:
    """`[1, 31]`, or `the scalar`; of an index with more axes than arrays have, the first alone."""
    return f"[{', '.join(map(str, axes[:8]))}{', ...' if len(axes) > 8 else ''}]" if axes else "the scalar"
