"""The Python processes that a checked script starts: where one imports MLX its kernels are watched, and told to a file.

Imported at the start of each of them, so nothing heavy is imported before MLX is.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlx_assay.conformance.checking.protocol import Message, Settings

SETTINGS = "settings.json"
TOLD = "told-"
"""What the names of the files begin with that processes tell."""

_START = """\
import importlib.machinery, importlib.util, sys
sys.path[:] = [path for path in sys.path if path != {folder!r}]
try:
    from mlx_assay.conformance.checking.offspring import attend
except ImportError:
    pass
else:
    attend({folder!r})
spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
if spec is not None:
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""
"""Run by Python before anything else, and then the sitecustomize whose place it takes."""


def adopt(settings: Settings) -> None:
    """From now on Python processes that this one starts are attended to, and tell into the folder of the settings."""
    import msgspec

    folder = settings.offspring
    for name, text in ((SETTINGS, msgspec.json.encode(settings)), ("sitecustomize.py", _START.format(folder=folder))):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))


def attend(folder: str) -> None:
    """Waits for MLX to be imported in this process."""
    sys.meta_path.insert(0, _Finder(folder))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds mlx.core as others do, once, and puts it under watch when it is loaded."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "mlx.core":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._folder)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, own: importlib.abc.Loader, folder: str) -> None:
        self._own = own
        self._folder = folder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._own.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        _watch(self._folder)


def _watch(folder: str) -> None:
    """Kernels of this process run under the checker until it ends."""
    import atexit
    import contextlib
    from pathlib import Path

    import msgspec

    from mlx_assay.conformance.checking import places, sources
    from mlx_assay.conformance.checking.protocol import Settings, Stumbled
    from mlx_assay.conformance.checking.report import Problem

    send = _Sink(folder).send
    try:
        from mlx_assay.conformance.checking.watch import Watch
        from mlx_assay.impl import executors
        from mlx_assay.impl.executors.observation import listening, observed

        settings = msgspec.json.decode(Path(folder, SETTINGS).read_bytes(), type=Settings)
        if settings.profile:
            from mlx_assay.conformance.capture import adoption

            adoption.adopt(settings.profile)
        places.start_from(settings.start)
        sources.listen()
        watch = Watch(settings, send)
        contexts = contextlib.ExitStack()
        contexts.enter_context(executors.host_metal())
        contexts.enter_context(observed(watch))
        contexts.enter_context(listening(watch.defined, watch.called))
    except Exception as error:
        # What cannot be watched must still run as it would.
        send(Stumbled(Problem(what="subprocess", message=f"a process is not checked: {type(error).__name__}: {error}")))
        return
    own = os.getpid()

    def end() -> None:
        contexts.close()
        if os.getpid() == own:
            watch.finish()

    atexit.register(end)


class _Sink:
    """A file of this process; what is forked from it appends to the same one."""

    def __init__(self, folder: str) -> None:
        import tempfile

        self._descriptor, path = tempfile.mkstemp(prefix=TOLD, dir=folder)
        os.close(self._descriptor)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)

    def send(self, message: Message) -> None:
        """Writes one line."""
        import contextlib

        from mlx_assay.conformance.checking.protocol import line

        # The folder's disk may be full, or the check be over.
        with contextlib.suppress(OSError):
            os.write(self._descriptor, line(message))
