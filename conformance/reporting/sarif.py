"""SARIF 2.1.0 (OASIS): what logs of any kind share, whatever their results are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import msgspec

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
"""What relative addresses are relative to: where the run was started."""

Object = dict[str, Any]


def encoded(log: Object) -> bytes:
    """The log file: JSON of two-space indents, one newline at its end."""
    return msgspec.json.format(msgspec.json.encode(log), indent=2) + b"\n"


def log(version: str, rules: Sequence[Object], invocation: Object, results: Sequence[Object], **more: Any) -> Object:
    """One run of one tool, this suite of that version; `more` are properties of the run."""
    run = {
        "tool": {"driver": {"name": "mlx-assay", "version": version, "rules": list(rules)}},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": list(results),
        **more,
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def utc(started: str) -> str:
    """A time of ISO 8601 in UTC as SARIF writes it."""
    return started.replace("+00:00", "Z")


def physical(file: str, region: Object) -> Object:
    """A place in a file, its address relative to ROOT where the path is relative."""
    return {"artifactLocation": _artifact(file), "region": region}


def _artifact(file: str) -> Object:
    path = PurePath(file)
    if path.is_absolute():
        return {"uri": "file://" + quote(path.as_posix())}
    return {"uri": quote(path.as_posix()), "uriBaseId": ROOT}
