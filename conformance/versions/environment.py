"""An environment a release of MLX: made once by venv and pip, kept beside the kernel cache, made anew where damaged."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mlx_assay.impl.executors.cache import cache_directory
from mlx_assay.impl.executors.folder import check_own

MARK = "environment.json"
LEFT_SECONDS = 7200
"""Work of this age was left by a process that was killed."""

SECONDS = 600
"""What venv and pip may take for one environment."""


class EnvironmentFault(RuntimeError):
    """A release's environment cannot be had; the message says why."""


class Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Written last, so that an environment that has it is whole: what was asked for, and what pip brought."""

    release: str
    python: str
    platform: str
    packages: dict[str, str]


def folder() -> Path:
    """Where environments are kept."""
    return cache_directory() / "environments"


def environment(release: str) -> Path:
    """The environment of a release for this Python and platform, there or not."""
    return folder() / f"{release}-{sys.implementation.cache_tag}-{sysconfig.get_platform()}"


def interpreter(place: Path) -> Path:
    """An environment's Python."""
    return place / "bin" / "python"


def graphs(place: Path) -> Path:
    """Where MLX keeps the graphs that it compiles in an environment."""
    found = place / "graphs"
    found.mkdir(exist_ok=True)
    return found


def requirements(release: str) -> tuple[str, ...]:
    """What pip is asked for: MLX for the CPU, and what its oracle needs."""
    mlx = f"mlx=={release}" if sys.platform == "darwin" else f"mlx[cpu]=={release}"
    return (mlx, "numpy", "ml_dtypes")


def kept() -> list[Path]:
    """The environments that are there, by name."""
    return sorted(path.parent for path in folder().glob(f"*/{MARK}"))


def size(place: Path) -> int:
    """Bytes of an environment's files."""
    found = 0
    for root, _, names in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):
                found += os.lstat(os.path.join(root, name)).st_size
    return found


def damage(place: Path, release: str) -> str | None:
    """What is wrong with an environment, or None: its mark, its Python, and the size of each file that pip recorded."""
    try:
        mark = msgspec.json.decode((place / MARK).read_bytes(), type=Mark)
    except (OSError, msgspec.MsgspecError) as error:
        return f"its {MARK} cannot be read: {error}"
    if (mark.release, mark.platform) != (release, sysconfig.get_platform()):
        return f"it is of {mark.release} for {mark.platform}"
    if not interpreter(place).exists():
        return "its Python is gone"
    records = list(place.glob("lib/python*/site-packages/*.dist-info/RECORD"))
    if len(records) != len(mark.packages):
        return f"it has {len(records)} packages of {len(mark.packages)}"
    return next(filter(None, map(_damaged_package, records)), None)


def _damaged_package(record: Path) -> str | None:
    site = record.parent.parent
    try:
        with record.open(newline="") as lines:
            for name, _, length in csv.reader(lines):
                if not length or name.startswith(".."):
                    continue
                if (found := (site / name).stat().st_size) != int(length):
                    return f"{name} has {found} bytes of {length}"
    except (OSError, ValueError) as error:
        return f"{record.parent.name}: {error}"
    return None


def ready(release: str) -> tuple[Path, str]:
    """The environment of a release, made or mended if need be, and what was done: "kept", "made" or "mended: why".

    EnvironmentFault: it cannot be had. Untrusted: somebody else could have written it. Two processes may ask at once:
    one makes it, the other waits.
    """
    place = environment(release)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_own(place.parent)
    _sweep(place.parent)
    with _locked(place):
        if not place.exists():
            _make(place, release)
            return place, "made"
        check_own(place)
        if (wrong := damage(place, release)) is None:
            return place, "kept"
        _remove(place)
        _make(place, release)
        return place, f"mended: {wrong}"


def remake(release: str) -> Path:
    """The environment made anew, whatever is there; EnvironmentFault as `ready`."""
    place = environment(release)
    with _locked(place):
        _remove(place)
        _make(place, release)
    return place


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    lock = place.with_name(f".{place.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _sweep(folder: Path) -> None:
    """Removes what processes that were killed left unfinished."""
    for path in (*folder.glob(".work-*"), *folder.glob(".gone-*")):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < time.time() - LEFT_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def _remove(place: Path) -> None:
    """Out of the way by one rename, so that what another process has loaded from it stays."""
    away = tempfile.TemporaryDirectory(dir=place.parent, prefix=".gone-", ignore_cleanup_errors=True)
    with away as gone, contextlib.suppress(FileNotFoundError):
        place.rename(Path(gone) / "environment")


def _make(place: Path, release: str) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".work-", ignore_cleanup_errors=True) as work:
        made = Path(work) / "environment"
        _call(release, sys.executable, "-m", "venv", "--without-pip", str(made))
        pip = (sys.executable, "-m", "pip", "--python", str(interpreter(made)), "install", "--quiet", "--no-compile")
        _call(release, *pip, "--only-binary=:all:", "--disable-pip-version-check", *requirements(release))
        packages = dict(
            path.name.removesuffix(".dist-info").rsplit("-", 1)
            for path in made.glob("lib/python*/site-packages/*.dist-info")
        )
        mark = Mark(release, sys.version.split()[0], sysconfig.get_platform(), packages)
        (made / MARK).write_bytes(msgspec.json.encode(mark))
        made.rename(place)


def _call(release: str, *command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentFault(f"the environment of MLX {release} cannot be made: {error}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise EnvironmentFault(
            f"the environment of MLX {release} cannot be made: {' '.join(said)[-500:] or 'pip says nothing'}; "
            f"see by hand: {sys.executable} -m pip download --no-deps {requirements(release)[0]}"
        )
