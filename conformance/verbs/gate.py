"""The verb `gate`: reports and a policy in, a decision out, and a statement where there is a verdict to state."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from mlx_assay.conformance.gating import statement
from mlx_assay.conformance.gating.decision import Artefact, Decision, decide
from mlx_assay.conformance.gating.presence import moment
from mlx_assay.conformance.gating.reading import PolicyError, PolicyFile, load
from mlx_assay.conformance.gating.rendering import markdown, show
from mlx_assay.conformance.reporting.intake import EMPTY, Damaged, digest, printed
from mlx_assay.conformance.verbs import outputs
from mlx_assay.conformance.verbs.refusal import Refusal

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
DIGEST = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._+/-]{0,199})@)?sha256:([0-9a-f]{64})")
URL = re.compile(r"https?://[^\s<>\"']{1,500}")
WIDTH = 160
"""Columns of a table where standard output is no terminal: a log has no edge to keep to."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line of `gate` asks for."""

    reports: Sequence[str]
    policy: str
    commit: str | None = None
    artefact: str | None = None
    statement: str | None = None
    predicate: str | None = None
    url: str | None = None
    now: str | None = None
    json: str | None = None
    markdown: str | None = None
    mutants: str | None = None


def gate(request: Request) -> int:
    """Decides; the exit code is the decision's. Files of an earlier call are removed first, whatever comes of this."""
    asked = [request.statement, request.predicate, request.json, request.markdown]
    files = outputs.asked(asked, [*request.reports, request.policy, *filter(None, (request.artefact, request.mutants))])
    outputs.clear(files)
    now, commit, artefact = _now(request), _commit(request), _artefact(request)
    policy = _policy(request, commit)
    with _unswept():
        decision = decide(policy, request.reports, now, commit, artefact, mutants=request.mutants)
    _write(decision, files, request.url or "")
    console = Console()
    show(decision, console if console.is_terminal else Console(width=WIDTH))
    return decision.exit_code


@contextmanager
def _unswept() -> Iterator[None]:
    """Without the cycle collector, which would walk a hundred thousand records again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _write(decision: Decision, files: Sequence[Path | None], url: str) -> None:
    for_statement, for_predicate, for_json, for_markdown = files
    if for_json:
        outputs.write(for_json, msgspec.json.format(msgspec.json.encode(decision), indent=2) + b"\n")
    if for_markdown:
        outputs.write(for_markdown, markdown(decision).encode())
    for path, make in ((for_statement, statement.statement), (for_predicate, statement.predicate)):
        if path and decision.verdict == "incomplete":
            print(f"mlx-assay: {path} is not written: there is no verdict to state", file=sys.stderr)
        elif path:
            outputs.write(path, statement.encode(make(decision, url)))


def _now(request: Request) -> datetime:
    try:
        return moment(request.now) if request.now is not None else datetime.now(UTC)
    except (ValueError, OverflowError) as error:
        raise Refusal(f"--now: {error}") from error


def _commit(request: Request) -> str:
    if request.commit is not None and not COMMIT.fullmatch(request.commit):
        raise Refusal(f"Expected a whole commit, 40 or 64 hex digits, but got {printed(request.commit)!r}")
    if request.url is not None and not URL.fullmatch(request.url):
        raise Refusal(f"Expected a URL, https://..., but got {printed(request.url)!r}")
    return request.commit or ""


def _artefact(request: Request) -> Artefact | None:
    """The file's digest, or the one given; Refusal where a statement has nothing to be about."""
    given = request.artefact
    if given is None:
        if request.statement is not None:
            raise Refusal("Expected --artefact FILE or sha256:HEX for a statement to be about but got none")
        return None
    if found := DIGEST.fullmatch(given):
        if found[2] == EMPTY:
            raise Refusal(f"Expected the digest of what is to be released but got that of nothing, {printed(given)!r}")
        return Artefact(name=found[1] or "", sha256=found[2])
    try:
        return Artefact(name=printed(Path(given).name), sha256=digest(Path(given)))
    except Damaged as error:
        raise Refusal(f"Expected a file or [NAME@]sha256:HEX but got {printed(given)!r}: {error}") from error


def _policy(request: Request, commit: str) -> PolicyFile:
    try:
        file = load(request.policy)
    except PolicyError as error:
        raise Refusal(str(error)) from error
    if file.policy.commit and not commit:
        raise Refusal("The policy asks for a commit: give it by --commit SHA, or set commit = false in the policy")
    return file
