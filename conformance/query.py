"""A query: a glob over case paths with optional filters on parameters and tags, or a whole case id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from urllib.parse import unquote

from mlx_assay.fixtures.case import Case

WILDCARDS = frozenset("*[")
TAG = "tag"


class QueryError(ValueError):
    """A query that cannot be meant: malformed, or naming an operation or dtype that nobody knows."""


@dataclass(frozen=True)
class Query:
    """`path?key=value&...`: `*` crosses slashes, a whole folder of cases is named by its path alone.

    A filter compares a parameter of the case as text, by glob; the key `tag` asks for one of the kind's tags.
    """

    text: str
    path: str
    filters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Query:
        """Reads a query; QueryError says what is wrong with it."""
        path, _, query = text.strip().partition("?")
        if not path or path != path.strip("/") or "//" in path:
            raise QueryError(
                f"Expected a query such as 'apply_token_bitmask/*' or '*/bfloat16/nan*?rows=3' but got {text!r}"
            )
        filters = []
        for pair in filter(None, query.split("&")):
            key, separator, value = pair.partition("=")
            if not separator or not key:
                raise QueryError(
                    f"Expected 'key=value' after the question mark of a query but got {pair!r} in {text!r}"
                )
            filters.append((unquote(key), unquote(value)))
        return cls(text.strip(), path, tuple(filters))

    def matches(self, case: Case, tags: Iterable[str] = ()) -> bool:
        """Whether a case is meant, by its path, its parameters, and its kind's tags."""
        return self.leads_to(case.path) and self.admits(case, tags)

    def leads_to(self, path: str) -> bool:
        """Whether cases of a path are meant, their parameters and tags aside."""
        return fnmatchcase(path, self.path) or fnmatchcase(path, f"{self.path}/*")

    def admits(self, case: Case, tags: Iterable[str] = ()) -> bool:
        """Whether a case passes the filters, its path aside."""
        if not self.filters:
            return True
        parameters = {key: str(value) for key, value in case.parameters}
        return all(
            any(fnmatchcase(tag, value) for tag in tags)
            if key == TAG
            else key in parameters and fnmatchcase(parameters[key], value)
            for key, value in self.filters
        )

    def check(self, operations: Sequence[str], dtypes: Sequence[str]) -> None:
        """QueryError if the operation or the dtype is written out and nobody knows it."""
        for what, known, segment in zip(
            ("operation", "dtype"), (operations, dtypes), self.path.split("/"), strict=False
        ):
            if WILDCARDS & set(segment):
                return
            if segment not in known:
                raise QueryError(
                    f"Expected {with_article(what)} {', '.join(known)} but got {segment!r} in query {self.text!r}"
                )

    @property
    def exact(self) -> Case | None:
        """The case whose id this may be, or None if it is a glob."""
        if WILDCARDS & set(self.path):
            return None
        try:
            return Case.parse(self.text)
        except ValueError:
            return None


def with_article(noun: str) -> str:
    """The noun with its article."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def nearest(text: str, known: Iterable[str], count: int = 5) -> list[str]:
    """Known names that look most like `text`, best first."""
    return get_close_matches(text, sorted(set(known)), n=count, cutoff=0.3)
