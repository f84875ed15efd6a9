"""The profile in a capture of a device: the switches of the host executor that its recorded bits show.

Only the capture's own bits are believed: each switch is told from them again, by rules of this module's own.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlx_assay.impl.executors.fidelity import SWITCHES, Fidelity

SCHEMA = "urn:mlx-assay:capture:1"
PROBES = 1
SIZE_LIMIT = 1 << 20
UNKNOWN = "unknown"
HOST = "host"
_SEAL = re.compile(rb'"seal": "[0-9a-f]*"')
_NAME = re.compile(r"[a-z0-9._-]{1,64}")
_LANES = 32

_SHOWN = {
    "contraction": {
        "contraction.f32": {"33800000": "on", "00000000": "off"},
        "contraction.f16": {"0c00": "on", "0000": "off"},
    },
    "f32_denormals": {
        "denormals.f32.operand": {"30800000 b0800000": "kept", "00000000 80000000": "flushed"},
        "denormals.f32.result": {"00080000 80080000": "kept", "00000000 80000000": "flushed"},
        "denormals.f32.sum": {"00400000": "kept", "00000000": "flushed"},
    },
}
"""Switch -> probe -> results -> the value that they show."""


class ProfileError(ValueError):
    """A file that is no sound capture of a device."""


class ProfileWarning(UserWarning):
    """What a device does and the host executor does not."""


@dataclass(frozen=True)
class Profile:
    """A device's switches; those that its capture does not settle are left out. `beyond` names the probes whose answers

    the host executor does not give under them, by the capture's own account.
    """

    device: str
    seal: str
    switches: Mapping[str, str]
    beyond: tuple[str, ...]

    def told(self) -> str:
        """In words, for reports and warnings."""
        text = f"profile {self.seal[:12]} of {self.device}"
        unsettled = [name for name in SWITCHES if name not in self.switches]
        if unsettled:
            text += f"; no value for {', '.join(unsettled)}, which stay as they are"
        return f"{text}; not reproduced: {', '.join(self.beyond)}" if self.beyond else text

    def applied(self, switches: Fidelity) -> Fidelity:
        """The switches with this profile's values."""
        return switches.switched(profile=self.told(), **self.switches)


def read(path: str | Path) -> Profile:
    """The profile of a capture; ProfileError names the file, what came and what was expected."""
    try:
        with open(path, "rb") as file:
            document = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise ProfileError(f"{path}: expected a capture to read but: {error.strerror}") from error
    try:
        return _profile(document)
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as error:
        told = str(error) if isinstance(error, ProfileError) else f"got something else ({type(error).__name__})"
        raise ProfileError(f"{path}: expected a capture of a device but {told}: mlx-assay capture makes one") from error


def _profile(document: bytes) -> Profile:
    if len(document) > SIZE_LIMIT:
        raise ProfileError(f"got more than {SIZE_LIMIT} bytes")
    capture = json.loads(document)
    if (capture["schema"], capture["probes_version"]) != (SCHEMA, PROBES):
        raise ProfileError(f"got {capture['schema']!r} with probes of version {capture['probes_version']!r}")
    blank = _SEAL.sub(b'"seal": ""', document, count=1)
    if capture["seal"] != hashlib.sha256(blank).hexdigest():
        raise ProfileError("its seal is that of other contents: it was damaged or edited")
    device, beyond = capture["device_class"], tuple(capture["beyond_host"])
    for name in (device, *beyond):
        if not _NAME.fullmatch(name):
            raise ProfileError(f"got {name!r} as a name")
    shown = _shown({probe["name"]: probe for probe in capture["probes"]})
    for name, value in shown.items():
        if capture["switches"][name] != value:
            raise ProfileError(f"it says {name}={capture['switches'][name]!r}, and its bits show {value!r}")
    settled = {name: value for name, value in shown.items() if value != UNKNOWN}
    functions = ("transcendental functions (the C library's here)",) if device != HOST else ()
    return Profile(device, capture["seal"], settled, (*beyond, *functions))


def _shown(probes: Mapping[str, Any]) -> dict[str, str]:
    """Each switch's value by the bits, or "unknown"."""
    values = {}
    for switch, known in _SHOWN.items():
        said = {results.get(probes[name]["results"], UNKNOWN) for name, results in known.items()}
        values[switch] = said.pop() if len(said) == 1 else UNKNOWN
    sum_ = probes["simd-sum.f32"]
    return values | {"simd_sum": _order(_floats(sum_["operands"]), _floats(sum_["results"]))}


def _floats(text: str) -> np.ndarray[Any, Any]:
    """float32 [rows, 32] of hex encodings."""
    words = np.array([int(word, 16) for word in text.split()], np.uint64).astype(np.uint32)
    return words.view(np.float32).reshape(-1, _LANES)


def _order(values: np.ndarray[Any, Any], got: np.ndarray[Any, Any]) -> str:
    found = [
        order
        for order in SWITCHES["simd_sum"]
        if got.shape == values.shape and np.array_equal(got, np.broadcast_to(_total(values, order)[:, None], got.shape))
    ]
    return found[0] if len(found) == 1 else UNKNOWN


def _total(values: np.ndarray[Any, Any], order: str) -> np.ndarray[Any, Any]:
    lanes = list(values.T)
    if order == "reverse-sequential":
        lanes.reverse()
    while len(lanes) > 1:
        half = len(lanes) // 2
        if order == "ascending-butterfly":
            lanes = [a + b for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
        elif order == "descending-butterfly":
            lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
        else:
            lanes = [lanes[0] + lanes[1], *lanes[2:]]
    return np.asarray(lanes[0])
