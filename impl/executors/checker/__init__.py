"""Undefined behaviour of kernels, found while they run."""

from mlx_assay.impl.executors.checker.finding import SEVERITY, Access, Finding, Kind, Place, Severity
from mlx_assay.impl.executors.checker.session import check, checked

__all__ = ["SEVERITY", "Access", "Finding", "Kind", "Place", "Severity", "check", "checked"]
