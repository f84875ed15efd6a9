"""A captured device as the host executor's switches: read as a stranger's file, then held by this whole process."""

from __future__ import annotations

from pathlib import Path

from mlx_assay.conformance.capture.reading import read
from mlx_assay.impl.executors import fidelity
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.profiles import read as profile_of


def switches(file: str | Path) -> Fidelity:
    """The switches under a profile. BadCapture or ProfileError (ValueErrors): the file is no sound capture."""
    read(file)
    return profile_of(file).applied(Fidelity())


def adopt(file: str | Path) -> Fidelity:
    """Holds the switches wherever nobody sets others, in every thread; returns those that held before."""
    before = fidelity.preferred()
    fidelity.prefer(switches(file))
    return before
