"""The process of an implementation: imports it, runs its calls, reports plain bytes; the judge lives elsewhere."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.process.beginning import begun, settle
from mlx_assay.conformance.process.bounds import leave_to, limit_files
from mlx_assay.conformance.process.material import ChangedInput, Material
from mlx_assay.conformance.process.pipes import Channel
from mlx_assay.conformance.process.protocol import (
    TEXT_LIMIT,
    Call,
    Found,
    Leave,
    Raised,
    Ready,
    Refused,
    Reply,
    Request,
    Returned,
    Start,
    decode_order,
)
from mlx_assay.impl import executors
from mlx_assay.impl.executors import choice
from mlx_assay.impl.executors import stage as stages
from mlx_assay.impl.executors.cuda import device, fault

if TYPE_CHECKING:
    from mlx_assay.conformance.process.inspection import Inspection

BUILT_IN = "mlx_assay.impl"
_bases_of = type.__dict__["__mro__"].__get__
_builtin_exceptions = {
    value: name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
_format_exception = traceback.format_exception
_class_name = type.__dict__["__name__"].__get__
_decode_order, _str, _type = decode_order, str, type
_poison = executors.poison
_schedule = choice.schedule
_late = fault.late
_replace = msgspec.structs.replace
_stage, _taken = stopwatch.stage, stopwatch.taken


def main(orders: int, replies: int, arena: int, lifeline: int, parent: int) -> None:
    """Serves until the judge closes the channel."""
    channel = begun(orders, replies, lifeline, parent)
    text = channel.receive()
    if text is None:
        return
    start = _decode_order(text)
    if not isinstance(start, Start):
        raise TypeError(f"Expected a start but got {type(start).__name__}")
    if start.timed:
        stopwatch.start("start")
        stages.count(stopwatch.stage)
    with contextlib.ExitStack() as stack:
        try:
            settle(stack, start.executor, start.fidelity)
            stack.enter_context(choice.guarded())
            inspection = _inspected(start, stack)
            subject = _program(start) if start.program else Subject(functions(start), {})
        except BaseException as error:
            channel.send(Refused(_described(error)))
            return
        if start.record:
            from mlx_assay.conformance.bundling.recorder import recorded

            subject = subject._replace(functions=recorded(subject.functions, start.record))
        channel.send(Ready(sorted(subject.functions), subject.details, _taken("transport")))
        _serve(channel, Material(arena, torch=start.program is None), subject, inspection)


GONE = "the GPU does nothing more for this process"


class Unstarted(Exception):
    """A program from outside that did not start, in words that need no traceback."""


def _any_size(capacity: int) -> None:
    """An array that is larger is not written to the arena."""


class Subject(NamedTuple):
    """What is judged: its functions, what it says of itself, and what is special of a program from outside."""

    functions: dict[str, Callable[..., Any]]
    details: dict[str, str]
    allow: Callable[[int], None] = _any_size
    raised: Callable[[int, BaseException], Reply] | None = None
    stop: Callable[[], object] = str
    guardian: object = None


def _inspected(start: Start, stack: contextlib.ExitStack) -> Inspection | None:
    """Puts kernels under the checker from here on, those that the import makes included, where that is asked for."""
    if not start.checked:
        return None
    from mlx_assay.conformance.process.inspection import Inspection
    from mlx_assay.impl.executors.observation import listening, observed

    inspection = Inspection(start.checked)
    stack.enter_context(observed(inspection))
    stack.enter_context(listening(inspection.defined))
    return inspection


def _serve(channel: Channel, material: Material, subject: Subject, inspection: Inspection | None) -> None:
    while (text := channel.receive()) is not None:
        request = _decode_order(text)
        if isinstance(request, Leave):
            subject.stop()
            channel.send(Ready([]))
            continue
        if not isinstance(request, Request):
            raise TypeError(f"Expected a request but got {_type(request)}")
        material.begin()
        if inspection is not None:
            inspection.begin()
        answer: Reply = _gone(0)
        for index, call in enumerate(request.calls):
            if device.lost():
                # Not even arguments can be made on it: what lost it answers the other calls too.
                answer = _replace(answer, call=index) if isinstance(answer, Raised | Found) else _gone(index)
            else:
                subject.allow(call.capacity)
                reply = _answer(index, call, request, material, subject)
                answer = reply if inspection is None else _inspect(reply, inspection)
            if index == len(request.calls) - 1 and isinstance(answer, Returned | Raised | Found):
                answer = _replace(answer, spent=_taken("transport"))
            if not device.lost() or index < len(request.calls) - 1:
                channel.send(answer)
                continue
            # A line that nobody asked for makes the judge start another process for the next case.
            channel.send(answer, Refused(GONE))
            return


def _gone(call: int) -> Raised:
    return Raised(call, [], "RuntimeError", GONE, "")


def _inspect(reply: Reply, inspection: Inspection) -> Reply:
    """A fault of a kernel takes the place of what the call came to, be it right or what was expected."""
    launches, text = inspection.take()
    if not isinstance(reply, Returned | Raised):
        return reply
    if text:
        return Found(reply.call, _encodable(text[:TEXT_LIMIT]), launches)
    return _replace(reply, launches=launches)


def _answer(index: int, call: Call, request: Request, material: Material, subject: Subject) -> Reply:
    """Runs one call; whatever it raises is an answer too."""
    function, raised = subject.functions[request.operation], subject.raised or _raised
    arguments = material.arguments(request.subcases[call.subcase])
    material.prime(call.poison)
    seen = False
    reply: Reply
    try:
        with _poison(call.poison), _schedule(call.schedule):
            with _stage("call", stages.GRAPHS):
                result = function(*arguments)
            if call.overwrite:
                material.inputs_to_arena(call.after)
                material.overwrite_host()
                seen = True
            reply = material.deliver(index, call, result)
            result = None
    except BaseException as error:
        reply = raised(index, _late(error))
    try:
        # Where the GPU is lost, nothing can be read of it any more.
        if not seen and not device.lost():
            material.inputs_to_arena(call.after)
    except ChangedInput as error:
        return Raised(index, [], "ChangedInput", _str(error), "")
    return reply


def _raised(index: int, error: BaseException) -> Raised:
    kind = _type(error)
    bases = [_builtin_exceptions[base] for base in _bases_of(kind) if base in _builtin_exceptions]
    try:
        message = _str(error)[:TEXT_LIMIT]
    except BaseException:
        message = "(its text cannot be had)"
    try:
        trace = "".join(_format_exception(error, limit=-4))[-TEXT_LIMIT:]
    except BaseException:
        trace = ""
    return Raised(index, bases, _str(_class_name(kind))[:200], _encodable(message), _encodable(trace))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8", "replace")


def _program(start: Start) -> Subject:
    """Starts the program that stands for what would be imported."""
    from mlx_assay.conformance.adapters.channel import Broken
    from mlx_assay.conformance.adapters.guardian import Guardian
    from mlx_assay.conformance.adapters.program import Program, reply

    assert start.program is not None
    limit_files()
    guardian = Guardian(start.program.folder)
    leave_to(guardian.release)
    try:
        told = start.program
        program = Program(told.argv, told.folder, told.executor, told.parameters, seconds=told.seconds)
    except Broken as error:
        raise Unstarted(error.message) from None
    return Subject(program.functions(), program.details, program.allow, reply, program.stop, guardian)


def _described(error: BaseException) -> str:
    if _type(error) is Unstarted:
        return _str(error)
    raised = _raised(0, error)
    if (isinstance(error, ModuleNotFoundError) and _importing(error)) or (
        _type(error) is AttributeError and _own(error)
    ):
        return f"{raised.type}: {raised.message}"
    return f"{raised.type}: {raised.message}\n{raised.traceback}".strip()


def _importing(error: BaseException) -> bool:
    """Whether none but this suite and Python's import system had begun to run: the target itself is not there."""
    return all(
        frame.f_code.co_filename in (__file__, importlib.__file__) or frame.f_code.co_filename.startswith("<frozen")
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _own(error: BaseException) -> bool:
    """Whether none but this file had begun to run: the target has no such object."""
    return all(frame.f_code.co_filename == __file__ for frame, _ in traceback.walk_tb(error.__traceback__))


def host_kernels(target: str | None) -> None:
    """Where Metal text runs on the host, a user's own kernels do too: mx.fast.metal_kernel is the executor's."""
    if target is not None and executors.current() == "host":
        import mlx.core as mx

        mx.fast.metal_kernel = executors.metal_kernel


def functions(start: Start) -> dict[str, Callable[..., Any]]:
    """Imports the target and finds its operations."""
    sys.path[:] = [os.getcwd(), *sys.path, *(folder for folder in start.path if folder not in sys.path)]
    host_kernels(start.target)
    module, _, path = (start.target or BUILT_IN).partition(":")
    found: Any = importlib.import_module(module)
    for name in filter(None, path.split(".")):
        found = getattr(found, name)
    operations = {name: getattr(found, name, None) for name in start.operations}
    return {name: function for name, function in operations.items() if callable(function)}
