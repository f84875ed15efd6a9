"""What nobody but a GPU can settle, as switches: how the host executor computes where Metal's bits are not published.

Every thread and task chooses for itself. Evidence for the defaults: docs/fidelity.md.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace

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
    """

    contraction: str = SWITCHES["contraction"][0]
    f32_denormals: str = SWITCHES["f32_denormals"][0]
    simd_sum: str = SWITCHES["simd_sum"][0]

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

    def switched(self, **changes: str) -> "Fidelity":
        """With other values. ValueError: no such switch, or no such value of it."""
        for name, value in changes.items():
            if name not in SWITCHES:
                raise ValueError(f"unknown switch {name!r}={value!r}: expected one of {', '.join(SWITCHES)}")
            if value not in SWITCHES[name]:
                raise ValueError(f"switch {name!r} is given {value!r}: expected one of {', '.join(SWITCHES[name])}")
        return replace(self, **changes)

    def described(self) -> dict[str, str]:
        return asdict(self)


_DEFAULT = Fidelity()
_current: ContextVar[Fidelity] = ContextVar("mlx_assay_fidelity", default=_DEFAULT)


def current() -> Fidelity:
    """The switches as `switched` has set them, else the defaults."""
    return _current.get()


@contextlib.contextmanager
def switched(**changes: str) -> Iterator[Fidelity]:
    """Kernels called inside run on the host executor with these switches; those not named stay as they are.

    ValueError: no such switch, or no such value of it.
    """
    token = _current.set(_current.get().switched(**changes))
    try:
        yield _current.get()
    finally:
        _current.reset(token)
