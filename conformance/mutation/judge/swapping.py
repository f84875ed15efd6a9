"""A fault within functions is put into the functions that are there: nothing needs to be imported anew."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType


class Unswappable(Exception):
    """A fault that is met when its module is imported, or in a function that cannot be found."""


def swaps(old: str, new: str, path: str) -> list[tuple[CodeType, CodeType]]:
    """The functions of a text that differ in another, as they were and as they are. Unswappable."""
    return list(_pairs(compile(old, path, "exec"), compile(new, path, "exec")))


def swap(old: str, new: str, path: str) -> None:
    """Puts the functions of a changed text in place of those that the module of a file has. Unswappable."""
    wanted = {(one.co_qualname, one.co_firstlineno): other for one, other in swaps(old, new, path)}
    found = set()
    for function in gc.get_objects():
        # What asks an object for its class may run code of its own.
        if type(function) is FunctionType and function.__code__.co_filename == path:
            key = function.__code__.co_qualname, function.__code__.co_firstlineno
            if key in wanted:
                try:
                    function.__code__ = wanted[key]
                except ValueError as error:
                    raise Unswappable(str(error)) from None
                found.add(key)
    if found != set(wanted):
        raise Unswappable(f"no function {', '.join(name for name, _ in set(wanted) - found)} is there")


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Of the body of a module or a class, whose own part has to be the same."""
    if _own(old) != _own(new):
        raise Unswappable(f"{old.co_qualname} itself differs")
    for one, other in zip(_inner(old), _inner(new), strict=True):
        if not one.co_flags & inspect.CO_OPTIMIZED:
            yield from _pairs(one, other)
        elif _whole(one) != _whole(other):
            yield one, other


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """What code does, but for the code within it and the place where it stands."""
    constants = tuple(
        (type(one), repr(one)) if not isinstance(one, CodeType) else one.co_name for one in code.co_consts
    )
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_flags, code.co_argcount, code.co_exceptiontable


def _whole(code: CodeType) -> tuple[object, ...]:
    return (*_own(code), *map(_whole, _inner(code)))
