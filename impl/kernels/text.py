"""The Metal text that stands beside the launchers."""

from __future__ import annotations

from importlib.resources import files


def metal_text(name: str) -> str:
    """The text of `name`.metal in this package; a name may lead into a folder of it."""
    return files("mlx_assay.impl.kernels").joinpath(f"{name}.metal").read_text(encoding="utf-8")
