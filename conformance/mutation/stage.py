"""The implementation that a campaign judges: it runs whichever mutant a file names, in one process after another.

It is imported by the process of an implementation. Every name that it is asked for is an operation, whose mutant is
imported when it is called.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

import mlx_assay.impl
from mlx_assay.conformance.mutation.playbill import Playbill
from mlx_assay.impl.executors import host
from mlx_assay.impl.executors.checker import Severity, checked
from mlx_assay.impl.executors.signature import Text

FOLDER = "MLX_ASSAY_MUTANTS"
"""The variable that names the folder of copies, and of what is said about them."""

PACKAGE = "mlx_assay.impl.kernels"
TEXTS = "texts"
SECONDS = 5.0
"""That one launch may take under one schedule of the checker."""


class Found(RuntimeError):
    """The checker's finding in a mutant."""


class Stage:
    """The mutant that is on, and the texts that the unchanged kernels were compiled from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._name = ""
        self._playbill = Playbill(folder)
        self._known: set[str] = set()
        sys.path.insert(0, str(folder))

    def function(self, operation: str) -> Callable[..., Any]:
        """An operation of the mutant that is on now."""
        name, _ = self._playbill.read()
        if name != self._name:
            for loaded in [one for one in sys.modules if one.partition(".")[0] == self._name]:
                del sys.modules[loaded]
            importlib.invalidate_caches()
            self._name = name
        home = getattr(mlx_assay.impl, operation).__module__
        module = importlib.import_module(home.replace(PACKAGE, name))
        found: Callable[..., Any] = getattr(module, operation)
        return found

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Under the checker, where that is asked for; what it finds is raised."""
        _, checking = self._playbill.read()
        if not checking:
            yield
            return
        with checked(seconds=SECONDS) as findings:
            yield
        errors = [finding for finding in findings if finding.severity is Severity.ERROR]
        if errors:
            first = errors[0]
            place = first.place
            raise Found(f"[{first.kind.value}] {first.message}{f' ({place.file}:{place.line})' if place else ''}")

    def keep(self, text: Text) -> None:
        """Writes down the text of a kernel that is not changed, once."""
        if self._name == ORIGINAL and str(text) not in self._known:
            self._known.add(str(text))
            target = self.folder.parent / TEXTS / f"{len(self._known)}-{os.getpid()}.json"
            target.write_bytes(msgspec.json.encode(text))


ORIGINAL = "mutant_0"
"""The copy without a fault."""

_stage = Stage(Path(os.environ[FOLDER])) if FOLDER in os.environ else None
_text = host.HostKernel.text


def _kept(self: host.HostKernel, *arguments: Any) -> Text:
    text = _text(self, *arguments)
    if _stage is not None:
        _stage.keep(text)
    return text


def __getattr__(name: str) -> Callable[..., Any]:
    if _stage is None or name.startswith("_") or not hasattr(mlx_assay.impl, name):
        raise AttributeError(name)
    stage = _stage
    host.HostKernel.text = _kept  # type: ignore[method-assign,assignment]

    def operation(*arguments: Any) -> Any:
        with stage.watched():
            return stage.function(name)(*arguments)

    return operation
