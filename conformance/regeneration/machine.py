"""This machine as a key: releases, architecture, maths library and device, outside of which nothing is asserted."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mlx_assay.fixtures.goldens.document import ANY_DEVICE
from mlx_assay.fixtures.goldens.group import Group

CPU_FLAGS = Path("/proc/cpuinfo")
LEVELS = (("x86_64-v4", ("avx512f", "avx512bw", "avx512dq", "avx512vl")), ("x86_64-v3", ("avx2", "fma", "bmi2")))
"""Levels of the x86-64 psABI, by the flags that tell them: maths libraries choose their code by these."""
TOOLCHAIN = ("numpy", "ml_dtypes", "mlx", "mpmath")


class Absent(LookupError):
    """A library that a group stands on is not installed."""


@cache
def architecture() -> str:
    """The machine's architecture, with the level of its vector units where the same name covers several."""
    machine = platform.machine()
    if machine != "x86_64":
        return machine
    try:
        text = CPU_FLAGS.read_text()
    except OSError:
        return f"{machine}-unknown"
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return next((level for level, needed in LEVELS if set(needed) <= set(flags)), "x86_64-v2")


@cache
def maths() -> str:
    """The C library, whose maths the others call."""
    if platform.system() == "Darwin":
        return f"macos {platform.mac_ver()[0]}"
    return " ".join(filter(None, platform.libc_ver())) or "unknown"


def device(group: Group) -> str:
    """The device class whose numbers a group records: "any" for an exact oracle, else "cpu" or the chip's name."""
    if group.scope == "exact":
        return ANY_DEVICE
    if "mlx" not in group.libraries:
        return "cpu"
    import mlx.core as mx

    if mx.default_device() == mx.Device(mx.cpu):
        return "cpu"
    return str(mx.device_info().get("device_name", "gpu")).lower().replace(" ", "-")


def key(group: Group) -> dict[str, str]:
    """Empty for an exact oracle; else what must be equal for a recording to be asserted. Absent names a library."""
    if group.scope == "exact":
        return {}
    try:
        libraries = " ".join(f"{name} {version(name)}" for name in group.libraries)
    except PackageNotFoundError as error:
        raise Absent(f"{error.name} is not installed") from error
    return {"library": libraries, "architecture": architecture(), "maths": maths(), "device": device(group)}


def toolchain() -> dict[str, str]:
    """The releases that a recording is made with."""
    found = {"python": platform.python_version(), "architecture": architecture(), "maths": maths()}
    for name in TOOLCHAIN:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def today() -> str:
    """The day of a recording, in UTC."""
    return datetime.now(UTC).date().isoformat()
