"""The verb `fixtures`: holds what is recorded, regenerates it for review, and settles what waits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mlx_assay.conformance.regeneration import real_input
from mlx_assay.conformance.regeneration.captures import adopt, hold_captures
from mlx_assay.conformance.regeneration.holding import Held, hold_all
from mlx_assay.conformance.regeneration.machine import Absent
from mlx_assay.conformance.regeneration.permission import writing
from mlx_assay.conformance.regeneration.regen import REAL, chosen, regenerate
from mlx_assay.conformance.regeneration.review import Ask, Keyboard, Quit, review, waiting
from mlx_assay.conformance.verbs.refusal import Refusal, refusing
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE
from mlx_assay.fixtures.goldens.catalogue import groups
from mlx_assay.fixtures.goldens.store import FOLDER, PENDING, Damage

Say = Callable[[str], object]
MARKS = {"holds": "ok", "fault": "FAULT", "incomplete": "NOT RUN", "elsewhere": "--", "waits": "NEW"}


def check(say: Say = print, root: Path = FOLDER) -> int:
    """Holds everything; writes nothing. 0 where all of it holds, 1 for a fault, 3 where a library is missing."""
    return _closed((*hold_all(root=root), hold_captures()), say)


def keep_capture(path: str, say: Say = print) -> int:
    """Keeps a device's capture among the fixtures; Refusal says why it cannot be one."""
    writing("adopt")
    try:
        say(f"Kept as {adopt(Path(path))}")
    except ValueError as error:
        raise Refusal(str(error)) from error
    return EXIT_CONFORMS


def regen(queries: Sequence[str], say: Say = print, root: Path = FOLDER) -> int:
    """Writes `.new` files beside what changed; 1 where a change is refused, 3 where a library is missing."""
    writing("regen")
    with refusing():
        asked = chosen([query for query in queries if query != REAL]) if list(queries) != [REAL] else {}
    found: list[Held] = [_say(regenerate(groups()[name], members, root), say) for name, members in asked.items()]
    if not queries or REAL in queries:
        found.append(_say(_real(), say))
    return _code(found)


def _real() -> Held:
    """The real input: nothing is written where it is the same, or other bytes within the tools' bounds."""
    try:
        made = list(real_input.fresh())
    except Absent as error:
        return Held("real input", "incomplete", (str(error),))
    lines, refused = [], False
    for one in made:
        lines.append(one.told())
        if one.faults and one.accounted():
            path = real_input.DATA / f"{one.name}.safetensors{PENDING}"
            path.write_bytes(one.data)
            lines.append(f"{path}: compare it, move it in place and set DIGESTS in fixtures/recorded.py: {one.digest}")
        elif one.faults:
            refused = True
            lines.append(f"{one.name}: refused, the releases are those it was recorded with")
    return Held("real input", "fault" if refused else "holds", tuple(lines), len(made))


def settle(accept: bool, ask: Ask | None = None, say: Say = print, root: Path = FOLDER) -> int:
    """Reviews what waits; with `accept` all of it at once. 1 where something was rejected, 3 where some still waits."""
    writing("review")
    if not accept and ask is None and not sys.stdin.isatty():
        raise Refusal("Expected a keyboard to accept or reject each case from: give --accept to accept all of them")
    keyboard = Keyboard(ask or input, True if accept else None)
    rejected = 0
    try:
        found = list(waiting(root))
        for one in found:
            rejected += review(one, keyboard, say, root)[1]
    except Damage as error:
        raise Refusal(f"nothing of it is settled: {error}", EXIT_DIFFERS) from error
    except Quit:
        say("left: what was not settled waits on")
        return EXIT_INCOMPLETE
    if not found:
        say("nothing waits for review")
    return EXIT_DIFFERS if rejected else EXIT_CONFORMS


def _closed(found: Iterable[Held], say: Say) -> int:
    return _code([_say(held, say) for held in found])


def _say(held: Held, say: Say) -> Held:
    behind = f" ({held.cases})" if held.cases else ""
    say(f"{MARKS[held.state]:8}{held.subject}{behind}")
    for line in held.lines:
        say(f"        {line}")
    return held


def _code(found: Sequence[Held]) -> int:
    states = {held.state for held in found}
    if "fault" in states:
        return EXIT_DIFFERS
    return EXIT_INCOMPLETE if "incomplete" in states else EXIT_CONFORMS
