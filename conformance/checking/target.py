"""What is checked: a Python file run as a program, or a function of a module."""

from __future__ import annotations

import importlib
import inspect
import io
import os
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


class NoTarget(ValueError):
    """A target that is not there or cannot be run."""


@dataclass(frozen=True)
class Script:
    """A file that is run as `python FILE` would."""

    path: str

    def run(self, arguments: list[str]) -> None:
        """Runs the file as `__main__`; what it raises goes through."""
        sys.argv = [self.path, *arguments]
        sys.path.insert(0, str(Path(self.path).resolve().parent))
        with io.open_code(os.path.abspath(self.path)) as file:
            code = compile(file.read(), os.path.abspath(self.path), "exec", dont_inherit=True)
        module = types.ModuleType("__main__")
        vars(module).update(__file__=self.path, __builtins__=__builtins__)
        sys.modules["__main__"] = module
        exec(code, vars(module))


@dataclass(frozen=True)
class Function:
    """A function that is called without arguments."""

    module: str
    name: str

    def run(self, arguments: list[str]) -> None:
        """Imports the module, the working directory first on its path, and calls the function.

        NoTarget: there is no such module or function, or the function needs arguments. SystemExit: it returned an
        integer, which is its status.
        """
        sys.argv = [self.module, *arguments]
        sys.path.insert(0, os.getcwd())
        try:
            found: object = importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if error.name and f"{self.module}.".startswith(f"{error.name}."):
                raise NoTarget(
                    f"Expected a module but got {self.module!r}: there is no module {error.name!r}"
                ) from None
            raise
        for part in self.name.split("."):
            if not hasattr(found, part):
                raise NoTarget(f"Expected a function but got {self.name!r}: {self.module} has no {part!r}")
            found = getattr(found, part)
        if not callable(found):
            raise NoTarget(f"Expected a function but {self.module}:{self.name} is of type {type(found).__name__}")
        try:
            inspect.signature(found).bind()
        except TypeError as error:
            raise NoTarget(
                f"Expected a function without arguments but {self.module}:{self.name} lacks some ({error}): give one "
                "that makes them"
            ) from None
        except ValueError:
            # A function of C need not have a signature.
            pass
        status = found()
        if isinstance(status, int) and not isinstance(status, bool):
            # As for a console script: pytest:main and others return their status.
            raise SystemExit(int(status))


def target(text: str) -> Script | Function:
    """Reads FILE or MODULE:FUNCTION; NoTarget says what came and what was expected."""
    if Path(text).is_file():
        return Script(text)
    if _FUNCTION.fullmatch(text):
        module, _, name = text.partition(":")
        return Function(module, name)
    if Path(text).is_dir():
        raise NoTarget(f"Expected a Python file or module:function but got the folder {text!r}")
    hint = ": name the module with dots, without .py" if ".py:" in text else ": there is no such file"
    raise NoTarget(f"Expected a Python file or module:function but got {text!r}{hint}")
