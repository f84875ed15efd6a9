"""The device class: what bits depend on, in one word that a policy can ask for."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping

PARAVIRTUAL = "paravirtual"
"""GPUs of virtual Macs, as hosted runners have: another driver, which may add in other orders and hides families."""

_APPLE = re.compile(r"applegpu_(g\d+)[a-z]*")
_CUDA = re.compile(r"sm_(\d+)[a-z]*")
_MACHINES = {"aarch64": "arm64", "AMD64": "x86_64"}


def device_class(executor: Mapping[str, str], machine: str | None = None) -> str:
    """The class of the device on which an executor ran, from what the executor says of itself.

    `g13` to `g17` and so on for Apple's GPUs, without the letter that tells their size; `paravirtual` for a GPU
    without such a family, or of that name; `cuda-sm90`; `host-x86_64` or `host-arm64`. Empty where nobody knows.
    """
    architecture, name = executor.get("architecture", ""), executor.get("executor") or executor.get("name", "")
    if name == "host":
        machine = machine or platform.machine()
        return f"host-{_MACHINES.get(machine, machine)}"
    if name == "cuda":
        found = _CUDA.fullmatch(architecture)
        return f"cuda-sm{found[1]}" if found else ""
    if name == "metal":
        found = _APPLE.fullmatch(architecture)
        virtual = PARAVIRTUAL in executor.get("device_name", "").lower()
        return PARAVIRTUAL if virtual or found is None else found[1]
    return ""
