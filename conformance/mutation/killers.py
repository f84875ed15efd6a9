"""Which cases are tried first: those that killed the most mutants of a text when the order was last learned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

LEARNED = 12
"""Cases that are kept for a text."""


def path() -> Path:
    """The file that holds the order."""
    return Path(str(files("mlx_assay.conformance.mutation"))) / "killers.json"


@cache
def _read() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(path().read_text("utf-8"))
    return known


def killers(source: str) -> list[str]:
    """Ids of cases for mutants of a text, the most deadly first; empty where nothing is known."""
    return list(_read()["killers"].get(source, ()))


def checked_cases(operations: Sequence[str]) -> list[str]:
    """Ids of the cases that are run under the checker for mutants that no case kills otherwise."""
    return [case_id for operation in operations for case_id in _read()["checked"].get(operation, ())]


def all_killers() -> list[str]:
    """Ids of every case that is tried first on some text, each once."""
    return list(dict.fromkeys(case_id for ids in _read()["killers"].values() for case_id in ids))


def all_checked() -> list[str]:
    """Ids of every case that is run under the checker, each once."""
    return list(dict.fromkeys(case_id for ids in _read()["checked"].values() for case_id in ids))


def learned(kills: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The order from (text, case that killed), the most frequent first and the id deciding ties."""
    counts: dict[str, Counter[str]] = {}
    for source, case_id in kills:
        counts.setdefault(source, Counter())[case_id] += 1
    return {
        source: [case_id for case_id, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))][:LEARNED]
        for source, count in sorted(counts.items())
    }


def write(order: dict[str, list[str]]) -> None:
    """Keeps a learned order; what is not in it stays as it was."""
    known = json.loads(path().read_text("utf-8"))
    known["killers"] = {**known["killers"], **order}
    path().write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")
