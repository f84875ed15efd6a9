"""What nobody but a GPU can settle, as switches: how the host executor computes where Metal's bits are not published.

Every thread and task chooses for itself. Evidence for the defaults: docs/fidelity.md.
"""

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path

SWITCHES: dict[str, tuple[str, ...]] = {
    "contraction": ("on", "off"),
    "f32_denormals": ("flushed", "kept"),
    "simd_sum": ("ascending-butterfly", "descending-butterfly", "sequential", "reverse-sequential"),
}
"""Switch -> its values; the first is the default."""


@dataclass(frozen=True)
class Fidelity:
    """One value for each switch.

    `contraction`: whether a product and a sum in one expression are rounded once. "off" also holds against a
    `#pragma METAL fp contract`; fma() is always fused.
    `f32_denormals`: whether operands and results of f32 arithmetic that are denormal count as zero. f16 keeps them.
    `simd_sum`: in which order simd_sum, simd_product, their quad and prefix forms add and multiply.
    `profile`: which capture of a device the values come from, and what of it they do not reproduce; empty for none.
    """

    contraction: str = SWITCHES["contraction"][0]
    f32_denormals: str = SWITCHES["f32_denormals"][0]
    simd_sum: str = SWITCHES["simd_sum"][0]
    profile: str = ""

    @property
    def compiled(self) -> tuple[str, str]:
        """The switches that a compiled object depends on."""
        return (self.contraction, self.f32_denormals)

    @property
    def flushes(self) -> bool:
        return self.f32_denormals == "flushed"

    @property
    def order(self) -> int:
        """The order of sums as the scheduler numbers it."""
        return SWITCHES["simd_sum"].index(self.simd_sum)

    def switched(self, *, profile: str = "", **changes: str) -> "Fidelity":
        """With other values, those of `profile` or of none. ValueError: no such switch, or no such value of it."""
        for name, value in changes.items():
            if name not in SWITCHES:
                raise ValueError(f"unknown switch {name!r}={value!r}: expected one of {', '.join(SWITCHES)}")
            if value not in SWITCHES[name]:
                raise ValueError(f"switch {name!r} is given {value!r}: expected one of {', '.join(SWITCHES[name])}")
        moved = {name for name, value in changes.items() if getattr(self, name) != value}
        return replace(self, profile=profile or ("" if moved else self.profile), **changes)

    def described(self) -> dict[str, str]:
        """Each switch's value, and the profile where there is one."""
        return {name: value for name, value in asdict(self).items() if name in SWITCHES or value}


_preferred = Fidelity()
_current: ContextVar[Fidelity | None] = ContextVar("mlx_assay_fidelity", default=None)
_asked: ContextVar[frozenset[str]] = ContextVar("mlx_assay_fidelity_asked", default=frozenset())


def current() -> Fidelity:
    """The switches as `switched` or `profile` has set them here, else as `prefer` has, else the defaults."""
    return _current.get() or _preferred


def asked() -> frozenset[str]:
    """The switches that `switched` was given here by name, whatever their values."""
    return _asked.get()


def preferred() -> Fidelity:
    """The switches as `prefer` has set them, else the defaults."""
    return _preferred


def prefer(switches: Fidelity) -> None:
    """The switches wherever nobody has set any, in every thread of this process."""
    global _preferred
    _preferred = switches


@contextlib.contextmanager
def switched(**changes: str) -> Iterator[Fidelity]:
    """Kernels called inside run on the executors host and cuda with these switches; those not named stay as they are.

    On cuda f32_denormals are kept, as MLX's own operations keep them there, unless they are named here.
    ValueError: no such switch, or no such value of it.
    """
    with _held(current().switched(**changes)) as switches:
        token = _asked.set(_asked.get() | changes.keys())
        try:
            yield switches
        finally:
            _asked.reset(token)


@contextlib.contextmanager
def profile(path: str | Path) -> Iterator[Fidelity]:
    """Kernels called inside run on the host executor with the switches that a capture of a device shows.

    A switch that the capture does not settle stays as it is. That, and everything else of the device that the host
    executor does not reproduce, stands in the result's `profile`, which reports record, and is warned of
    (ProfileWarning). ProfileError (a ValueError): no capture, one that was damaged or edited, or one whose switches are
    not what its bits show.
    """
    from mlx_assay.impl.executors import profiles

    found = profiles.read(path)
    if found.beyond:
        warnings.warn(profiles.ProfileWarning(f"{path}: {found.told()}"), stacklevel=3)
    with _held(found.applied(current())) as switches:
        yield switches


@contextlib.contextmanager
def _held(switches: Fidelity) -> Iterator[Fidelity]:
    token = _current.set(switches)
    try:
        yield switches
    finally:
        _current.reset(token)
