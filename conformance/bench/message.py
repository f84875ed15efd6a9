"""What the judge and the measuring process say to each other: one JSON line a message."""

from __future__ import annotations

import msgspec

from mlx_assay.impl.executors.counting.counts import Counts


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="says"):
    pass


class Start(_Message, frozen=True, tag="start"):
    """What to import, where its kernels run, and with which switches."""

    target: str | None
    executor: str
    fidelity: dict[str, str]
    path: list[str]
    operations: list[str]


class Seat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A contender: where its factory stands, whose arrays it takes, and what it needs."""

    name: str
    place: str
    library: str
    needs: list[str]


class Prepare(_Message, frozen=True, tag="prepare"):
    """The contenders of a benchmark; an implementation is one too, under the empty name."""

    operation: str
    dtype: str
    shape: dict[str, int]
    seats: list[Seat]


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An argument: the content that lies in the arena, of which a call sees `shape` from some element on."""

    dtype: str
    kind: str
    shape: list[int]
    offset: int
    count: int


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plain argument, as process.protocol writes it down."""

    type: str
    text: str


class Load(_Message, frozen=True, tag="load"):
    """The content of every array argument, and the plain ones; `order` has an index into either for each parameter."""

    regions: list[Region]
    values: list[Value]
    order: list[tuple[bool, int]]


class Queue(_Message, frozen=True, tag="queue"):
    """A queue of calls of one contender: for each call where its window begins in each region.

    `near`: all windows lie in one place, and NEAR of them are asked for again and again. Of outputs up to `whole` bytes
    each the bytes are written to the arena at `place`. `probed`: afterwards it is looked whether work goes on beside
    what was waited for. Of call `counted` the launches are told, on the host executor, where those of all are counted.
    """

    contender: str
    windows: list[list[int]]
    near: bool
    reference: str
    whole: int
    place: int
    probed: bool = False
    counted: int = -1


class Idle(_Message, frozen=True, tag="idle"):
    """A queue of no calls, timed as one."""


class Fetch(_Message, frozen=True, tag="fetch"):
    """The output of one call of the last queue, to be written to the arena at `place`."""

    call: int
    place: int


class Copy(_Message, frozen=True, tag="copy"):
    """Copies of `size` bytes on the device, timed."""

    size: int


class Inspect(_Message, frozen=True, tag="inspect"):
    """What the process knows of tricks by now."""


class Ready(_Message, frozen=True, tag="ready"):
    """The implementation is imported; `device` describes where kernels run."""

    operations: list[str]
    device: dict[str, str]


class Refused(_Message, frozen=True, tag="refused"):
    """What was asked cannot be done."""

    message: str


class Seated(_Message, frozen=True, tag="seated"):
    """The contenders that are there; of the others why not."""

    missing: dict[str, str]


class Done(_Message, frozen=True, tag="done"):
    """It is done."""


class Began(_Message, frozen=True, tag="began"):
    """A queue begins with the next instruction."""


class Timed(_Message, frozen=True, tag="timed"):
    """The spans of a queue in nanoseconds, told at once.

    `called`: from before the first call to after the last. `evaluated`: from then, after a look at the inputs, until
    every output was there and the device had nothing to do. `total`: both, and the look; `raw`: the same by the second
    clock. `lazy`: no input had been touched before the second span, so all work lies in it.
    """

    called: int
    evaluated: int
    total: int
    raw: int
    lazy: bool


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one call returned. `digest` was taken right after the queue; `nbytes` lie in the arena, 0 for none."""

    type: str
    dtype: str
    shape: list[int]
    digest: tuple[int, int] = (0, 0)
    nbytes: int = 0


class Alarm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A trick that was noticed, by its name, and in words."""

    trick: str
    text: str


class Outcome(_Message, frozen=True, tag="outcome"):
    """What a queue came to. `references` are digests of the reference's outputs on the same calls, where asked for.

    `taken` is how long the digests of the same few outputs took in nanoseconds, right after the queue and again.
    `launches` are what those of the counted call did.
    """

    key: tuple[int, int]
    outputs: list[Output]
    references: list[tuple[int, int]]
    alarms: list[Alarm]
    taken: tuple[int, int]
    launches: list[Counts] = []


class Raised(_Message, frozen=True, tag="raised"):
    """A call raised."""

    call: int
    type: str
    message: str


class Fetched(_Message, frozen=True, tag="fetched"):
    """The bytes are in the arena."""

    nbytes: int


class Copied(_Message, frozen=True, tag="copied"):
    """Nanoseconds of a copy, by the way that it was made."""

    spans: dict[str, list[int]]


class Findings(_Message, frozen=True, tag="findings"):
    """Tricks that were noticed."""

    alarms: list[Alarm]


Order = Start | Prepare | Load | Queue | Idle | Fetch | Copy | Inspect
Reply = Ready | Refused | Seated | Done | Began | Timed | Outcome | Raised | Fetched | Copied | Findings

decode_order = msgspec.json.Decoder(Order, strict=True).decode
decode_reply = msgspec.json.Decoder(Reply, strict=True).decode
