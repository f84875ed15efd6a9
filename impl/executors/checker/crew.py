"""Several calls at once, each in a thread of its own with the caller's context."""

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")


class _Task(Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._context = copy_context()
        self.value: T | None = None
        self.error: BaseException | None = None
        self.done = False

    def __call__(self) -> None:
        try:
            self.value = self._context.run(self._call)
            self.done = True
        except BaseException as error:
            self.error = error


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """What the calls return, in their order. The first of their errors is raised when all have ended.

    Where no thread can be started any more, as while Python ends, they are made one after the other.
    """
    tasks = [_Task(call) for call in calls]
    threads = []
    for task in tasks[1:]:
        thread = threading.Thread(target=task, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            task()
        else:
            threads.append(thread)
    for task in tasks[:1]:
        task()
    for thread in threads:
        thread.join()
    return [_taken(task) for task in tasks]


def _taken(task: _Task[T]) -> T:
    if task.error is not None:
        raise task.error
    assert task.done
    return task.value  # type: ignore[return-value]
