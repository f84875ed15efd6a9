"""What `--implementation` names: a module, an object in one, an installed package's entry point, or a program."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

PROGRAM = "cmd:"
BUILT_IN = "mlx_assay.impl"
GROUP = "mlx_assay.implementations"


class NoTarget(ValueError):
    """A text that names nothing that could be judged."""


@dataclass(frozen=True)
class Target:
    """What is to be judged: a program's command line, or `module:object` (None for the built-in kernels).

    `details` say where an entry point was found.
    """

    module: str | None = None
    argv: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()

    @property
    def told(self) -> str:
        """What messages call it."""
        if self.argv:
            return repr(f"{PROGRAM} {shlex.join(self.argv)}")
        place = ", ".join(text for _, text in self.details)
        return repr(self.module or BUILT_IN) + (f" (entry point {place})" if place else "")


def target(text: str | None) -> Target:
    """Reads the text; NoTarget says what is wrong with it.

    A name that an installed package has registered in the group `mlx_assay.implementations` means what is registered;
    `name:` is the module all the same.
    """
    if text is None:
        return Target()
    if text.startswith(PROGRAM):
        return Target(argv=command(text.removeprefix(PROGRAM)))
    if ":" in text:
        return Target(text)
    found = registered(text)
    if len(found) > 1:
        told = ", ".join(sorted(f"{point.value} ({owner(point)})" for point in found))
        raise NoTarget(
            f"Expected one entry point {text!r} in the group {GROUP} but {len(found)} are installed: {told}; "
            "name the module:object that is meant"
        )
    if not found:
        return Target(text)
    value = found[0].value.partition("[")[0].strip()
    return Target(value, details=(("entry_point", f"{text} = {value}"), ("distribution", owner(found[0]))))


def command(text: str) -> tuple[str, ...]:
    """The words of a command line, as a shell splits them; no shell runs it. NoTarget where there are none."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise NoTarget(f"Expected a command line behind {PROGRAM!r} but got {text.strip()!r}: {error}") from None
    if not words or not words[0]:
        raise NoTarget(f"Expected a command line behind {PROGRAM!r}, as in 'cmd: bun adapter.ts', but got none")
    if any("\0" in word for word in words):
        raise NoTarget(f"Expected a command line without NUL behind {PROGRAM!r} but got {text.strip()!r}")
    return words


def registered(name: str) -> list[EntryPoint]:
    """The entry points of a name."""
    return [point for point in installed() if point.name == name]


@cache
def installed() -> tuple[EntryPoint, ...]:
    """Every entry point of the group, by name; one that is found twice in the same place counts once."""
    found = {(point.name, point.value, owner(point)): point for point in entry_points(group=GROUP)}
    return tuple(found[key] for key in sorted(found))


def owner(point: EntryPoint) -> str:
    """The distribution that registers an entry point, and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"
