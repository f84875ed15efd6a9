"""What a run was asked for: the plugin's options and ini keys, read once and checked."""

from __future__ import annotations

import math
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pytest

TIERS: tuple[Literal["quick", "full"], ...] = ("quick", "full")
"""As in mlx_assay.fixtures.kind, which is too heavy to import for this."""
DEFAULT_LIMIT = 60.0
DEFAULT_CHECKED_LIMIT = 300.0
"""Under the checker, where a launch runs once under each of four schedules."""
KEYS = {
    "implementation": "module, module:object, entry point or 'cmd: program' (default: the built-in kernels)",
    "executor": "metal, cuda or host (default: that of MLX's GPU, else host)",
    "tier": "quick or full (default: quick)",
    "seed": "whole number that draws a fresh set of cases (default: 0)",
    "report": "file to write the report to",
    "limit": "seconds that one case may take (default: 60, checked: 300)",
    "profile": "capture of a device whose switches the host executor takes",
    "shard": "part of a run that is split over machines, as 3/8",
    "durations": "report of an earlier run, by whose durations a run is split",
    "leg": "name by which a gate knows this run (default: the device class, such as g16 or host-x86_64)",
}
"""What can be asked for once, each an option and an ini key of pytest."""
FLAGS = {
    "checked": "run every kernel of what is judged under the checker, on the host executor",
    "stages": "count where the run's time goes, stage by stage, and tell of it in the report and at the end",
}
"""What can be asked for, or not, each an option and an ini key of pytest."""
LEG = re.compile(r"[A-Za-z0-9._-]{1,64}")
SHARD = re.compile(r"([0-9]{1,5})/([0-9]{1,5})")
MOST_SHARDS = 10_000
SERIAL_DISTRIBUTIONS = ("loadscope", "loadfile", "loadgroup", "each")
"""Ways of xdist to spread items that lose or repeat results when a worker aborts (xdist 3.8)."""


@dataclass(frozen=True)
class Options:
    """A run's options; `None` for implementation and executor means the built-in one and this machine's own."""

    queries: tuple[str, ...] = ()
    implementation: str | None = None
    executor: str | None = None
    tier: Literal["quick", "full"] = "quick"
    seed: int = 0
    report: str | None = None
    limit: float = DEFAULT_LIMIT
    without: tuple[str, ...] = ()
    profile: str | None = None
    leg: str | None = None
    checked: bool = False
    shard: str | None = None
    durations: str | None = None
    stages: bool = False

    def __post_init__(self) -> None:
        if self.implementation == "":
            raise ValueError("Expected an implementation, as module:object or 'cmd: program', but got ''")
        if self.leg is not None:
            leg(self.leg)
        if self.shard is not None:
            shard(self.shard)
        elif self.durations is not None:
            raise ValueError(
                f"Expected a shard, as --shard 3/8, where durations are given but got {self.durations!r} and none: to "
                "see where the time of a run goes write --stages"
            )

    @classmethod
    def of(cls, config: pytest.Config) -> Options:
        """Reads options first and ini keys second; ValueError says which value is wrong."""
        checked = flag(config, "checked")
        return cls(
            queries=tuple(config.getoption("mlx_assay_query") or config.getini("mlx_assay_query")),
            implementation=_text(config, "implementation"),
            executor=_text(config, "executor"),
            tier=tier(_text(config, "tier") or "quick"),
            seed=seed(_text(config, "seed") or "0"),
            report=_text(config, "report"),
            limit=limit(_text(config, "limit") or str(default_limit(checked))),
            profile=_text(config, "profile"),
            leg=_text(config, "leg"),
            checked=checked,
            shard=_text(config, "shard"),
            durations=_text(config, "durations"),
            stages=flag(config, "stages"),
            without=tuple(config.getoption("mlx_assay_without") or config.getini("mlx_assay_without")),
        )


def flag(config: pytest.Config, name: str) -> bool:
    """Whether one of FLAGS is asked for."""
    return bool(config.getoption(f"mlx_assay_{name}") or config.getini(f"mlx_assay_{name}"))


def _text(config: pytest.Config, name: str) -> str | None:
    given = config.getoption(f"mlx_assay_{name}")
    return str(given) if given is not None else config.getini(f"mlx_assay_{name}") or None


def tier(text: str) -> Literal["quick", "full"]:
    """One of TIERS."""
    for known in TIERS:
        if text == known:
            return known
    raise ValueError(f"Expected a tier, {' or '.join(TIERS)}, but got {text!r}")


def seed(text: str) -> int:
    """A decimal integer in [0, 2^31): it is added to each case's own seed."""
    if not (text.isascii() and text.isdigit() and int(text) < 2**31):
        raise ValueError(f"Expected a seed, a whole number from 0 to 2147483647, but got {text!r}")
    return int(text)


def limit(text: str) -> float:
    """Seconds a case may take."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"Expected a limit in seconds above 0 but got {text!r}")
    return seconds


def default_limit(checked: bool) -> float:
    """Seconds a case may take where nobody says."""
    return DEFAULT_CHECKED_LIMIT if checked else DEFAULT_LIMIT


def leg(text: str) -> str:
    """What a gate knows a run by: up to 64 letters, digits, dots, underlines and hyphens of ASCII."""
    if not LEG.fullmatch(text):
        raise ValueError(f"Expected a leg's name, 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', but got {text!r}")
    return text


def shard(text: str) -> tuple[int, int]:
    """A shard's number, from 1, and how many there are."""
    found = SHARD.fullmatch(text)
    if not found or not 1 <= int(found[1]) <= int(found[2]) <= MOST_SHARDS:
        raise ValueError(f"Expected a shard, 1/N to N/N with N up to {MOST_SHARDS}, but got {text!r}")
    return int(found[1]), int(found[2])


def resolved(text: str | Path) -> Path:
    """A path without links, as far as it has any; unlike pathlib's it never raises, for a link to itself or a NUL."""
    try:
        return Path(os.path.realpath(text))
    except ValueError:
        return Path(os.path.abspath(text))


def output(text: str) -> Path:
    """A file to write: new, or a regular one, in a folder where files can be made. Never a device, pipe or socket."""
    path = resolved(text)
    if text in ("", "-") or path.is_dir():
        told = f"the folder {text!r}" if text and path.is_dir() else repr(text)
        raise ValueError(f"Expected a file but got {told}: name the file that is to be written")
    if "\0" in text or path.is_symlink():
        raise ValueError(f"Expected a file but got {text!r}, which is a link that leads nowhere, or no name of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"Expected a regular file but got {text!r}, which is a device, pipe or socket")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        reason = f"Expected a file in a folder that can be written but got {text!r}: {error.strerror}"
        raise ValueError(reason) from error


def distribution(name: str) -> str:
    """A way of xdist to spread cases over workers; ValueError for those that lose results."""
    if name in SERIAL_DISTRIBUTIONS:
        raise ValueError(
            f"Expected --dist load or worksteal but got {name!r}: it loses or repeats cases when a worker aborts"
        )
    return name
