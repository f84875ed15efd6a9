"""The measuring process: imports the implementation, times queues, tells at once what came; the judge is elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from mlx_assay.conformance.bench import device, message, queue
from mlx_assay.conformance.bench.contender import IMPLEMENTATION, Contestant, seated
from mlx_assay.conformance.bench.digest import Key
from mlx_assay.conformance.bench.message import Alarm, Output
from mlx_assay.conformance.bench.probe import beside, rebound, returned, reused
from mlx_assay.conformance.bench.sentry import Sentry, Streams
from mlx_assay.conformance.bench.stage import Stage
from mlx_assay.conformance.process import protocol, serve
from mlx_assay.conformance.process.beginning import begun, settle
from mlx_assay.conformance.process.material import put
from mlx_assay.conformance.process.pipes import Channel
from mlx_assay.impl.executors import counting
from mlx_assay.impl.executors.counting.counts import Counts

TEXT_LIMIT = 2000
_decode_order, _type, _str, _list, _count = message.decode_order, type, str, list, counting.counted


def main(orders: int, replies: int, arena: int, lifeline: int, parent: int) -> None:
    """Serves until the judge closes the channel."""
    channel = begun(orders, replies, lifeline, parent)
    text = channel.receive()
    if text is None:
        return
    start = _decode_order(text)
    assert isinstance(start, message.Start)
    with contextlib.ExitStack() as stack:
        try:
            settle(stack, start.executor, start.fidelity)
            server = Server(channel, arena, start)
        except BaseException as error:
            channel.send(message.Refused(_described(error)))
            return
        channel.send(message.Ready(sorted(server.functions), device.described(start.executor)))
        while (text := channel.receive()) is not None:
            server.answer(_decode_order(text))


class Server:
    """What is measured, and what has been made ready for it. The implementation is imported last."""

    def __init__(self, channel: Channel, arena: int, start: message.Start) -> None:
        self._channel = channel
        self._arena = arena
        self._executor = start.executor
        self._stage: Stage | None = None
        self._contestants: dict[str, Contestant] = {}
        self._last: queue.Ran | None = None
        self._launches: list[Counts] = []
        self._streams = Streams()
        self._synchronize = device.synchronizer(start.executor, self._streams.made)
        queue.on_device.ready()
        self._prepare_imports(start)
        self._sentry = Sentry(self._streams)
        self.functions: dict[str, Callable[..., Any]] = serve.functions(_as_judged(start))

    def _prepare_imports(self, start: message.Start) -> None:
        """What the import of an implementation would change on purpose, before the sentry looks."""
        serve.host_kernels(start.target)
        if self._executor == "cuda":
            with contextlib.suppress(ImportError):
                import torch

                torch.cuda.init()

    def answer(self, order: message.Order) -> None:
        """Does what one order says."""
        if isinstance(order, message.Prepare):
            self._streams.settle()
            self._contestants, missing = seated(order, self.functions)
            self._streams.forget()
            self._channel.send(message.Seated(missing))
        elif isinstance(order, message.Load):
            self._stage = self._last = None
            self._stage = Stage(self._arena, order)
            self._channel.send(message.Done())
        elif isinstance(order, message.Queue):
            self._run(order)
        elif isinstance(order, message.Idle):
            self._idle()
        elif isinstance(order, message.Fetch):
            self._fetch(order)
        elif isinstance(order, message.Copy):
            self._channel.send(message.Copied(device.copies(order.size, self._executor)))
        elif isinstance(order, message.Inspect):
            self._channel.send(message.Findings(self._sentry.alarms()))
        else:
            raise TypeError(f"Expected an order but got {_type(order)}")

    def _idle(self) -> None:
        queue.quiet(self._synchronize)
        self._channel.send(message.Began())
        ran = queue.run(_str, [], self._synchronize, bool, [])
        self._channel.send(message.Timed(*ran.span))
        queue.loud()

    def _run(self, order: message.Queue) -> None:
        assert self._stage is not None
        contestant = self._contestants[order.contender]
        self._last = None
        watched = queue.drawn(len(order.windows))
        queue.quiet(self._synchronize)
        try:
            ran, calls = self._timed(contestant, order, watched)
            self._channel.send(message.Timed(*ran.span))
            self._deliver(ran, calls, watched, contestant, order)
        except queue.Strange as error:
            self._channel.send(message.Raised(error.call, "", f"got {error.kind}, expected mlx.core.array"))
        except queue.Failed as error:
            self._channel.send(message.Raised(error.call, _type(error.error).__name__[:200], _text(error.error)))
        finally:
            queue.loud()

    def _timed(
        self, contestant: Contestant, order: message.Queue, watched: Sequence[int]
    ) -> tuple[queue.Ran, queue.Calls]:
        assert self._stage is not None
        if contestant.library == "torch":
            calls = self._stage.torch(order.windows, order.near)
            self._channel.send(message.Began())
            return queue.run_torch(contestant.function, calls, self._synchronize), calls
        calls = self._stage.mlx(order.windows, order.near, watched)
        marks = [call in watched for call in range(len(calls))]
        self._channel.send(message.Began())
        if self._executor != "host" or order.contender != IMPLEMENTATION:
            return queue.run(contestant.function, calls, self._synchronize, self._stage.untouched, marks), calls
        return self._counted(contestant, calls, marks, order.counted), calls

    def _counted(self, contestant: Contestant, calls: queue.Calls, marks: Sequence[bool], told: int) -> queue.Ran:
        """Every queue is counted, each call in the same way, so that none knows whose launches are told."""
        assert self._stage is not None
        before: list[int] = []
        with _count() as launches:
            counted = queue.noted(calls, launches, before)
            ran = queue.run(contestant.function, counted, self._synchronize, self._stage.untouched, marks)
        self._launches = _list(launches)[before[told] : before[told + 1]] if told >= 0 else []
        return ran

    def _deliver(
        self,
        ran: queue.Ran,
        calls: queue.Calls,
        watched: Sequence[int],
        contestant: Contestant,
        order: message.Queue,
    ) -> None:
        """Digests of the watched outputs first, twice; then what their objects hold by now, and the rest."""
        if contestant.library != "mlx" or order.contender != IMPLEMENTATION:
            self._channel.send(message.Outcome((0, 0), [], [], [], (0, 0)))
            return
        key = queue.key()
        found, taken = queue.digests(ran.taken, key)
        again, taken_again = queue.digests(ran.taken, key)
        alarms = rebound([ran.results[call] for call in watched], found, again, key)
        alarms += reused(ran.results)
        alarms += returned(ran.results, calls)
        alarms += self._sentry.beside()
        alarms += self._changed(watched)
        outputs = [self._output(call, result, order, key) for call, result in enumerate(ran.results)]
        references = self._references(order, key)
        if order.probed:
            alarms += self._beside(contestant, order)
        self._last = ran
        self._channel.send(message.Outcome(key, outputs, references, alarms, (taken, taken_again), self._launches))

    def _output(self, call: int, result: Any, order: message.Queue, key: Key) -> Output:
        bits = queue.unsigned(result)
        dtype, shape, nbytes = queue.told(result)
        found, _ = queue.digests([bits], key)
        written = put(self._arena, bits, order.place + call * order.whole) if nbytes <= order.whole else 0
        return Output("", dtype, shape, found[0], written)

    def _references(self, order: message.Queue, key: Key) -> list[tuple[int, int]]:
        if not order.reference:
            return []
        assert self._stage is not None
        function = self._contestants[order.reference].function
        return [
            queue.digests([queue.unsigned(function(*arguments))], key)[0][0]
            for arguments in self._stage.mlx(order.windows, order.near)
        ]

    def _changed(self, calls: Sequence[int]) -> list[Alarm]:
        assert self._stage is not None
        changed = self._stage.changed(calls)
        return [Alarm("input-changed", f"it wrote into its inputs: array {changed[0] + 1}")] if changed else []

    def _beside(self, contestant: Contestant, order: message.Queue) -> list[Alarm]:
        assert self._stage is not None
        calls = self._stage.mlx(order.windows, order.near)
        return beside(contestant.function, calls, self._synchronize)

    def _fetch(self, order: message.Fetch) -> None:
        assert self._last is not None
        self._channel.send(
            message.Fetched(put(self._arena, queue.unsigned(self._last.results[order.call]), order.place))
        )


def _as_judged(start: message.Start) -> protocol.Start:
    return protocol.Start(start.target, start.executor, start.fidelity, start.path, start.operations)


def _text(error: BaseException) -> str:
    try:
        text = _str(error)[:TEXT_LIMIT]
    except BaseException:
        return "(its text cannot be had)"
    return text.encode("utf-8", "replace").decode("utf-8", "replace")


def _described(error: BaseException) -> str:
    return f"{_type(error).__name__}: {_text(error)}"
