"""The words of a launch plan: what a program may answer `run` with in place of a result, every size bounded.

They are the arguments of mx.fast.metal_kernel and of its kernels, spelled so that JSON holds them exactly.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MOST_LAUNCHES = 16
MOST_BUFFERS = 31
"""Metal's argument table of buffers."""

MOST_TEMPLATE = 32
MOST_ELEMENTS = 4096
"""Of a constant: whatever is larger is computed by a launch."""

LONGEST_TEXT = 1 << 18
"""Characters of a kernel's source, and of its header."""

MOST_OUTPUT_BYTES = 1 << 30
"""Of all outputs of a plan together."""

MOST_AXES = 16
LARGEST_AXIS = 2**31 - 1
LARGEST_THREADGROUP = 1024

DtypeName = Literal[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Extent = Annotated[int, Meta(ge=0, le=LARGEST_AXIS)]
Shape = Annotated[list[Extent], Meta(max_length=MOST_AXES)]
Hex = Annotated[str, Meta(pattern="^0x[0-9a-f]{1,16}$")]
Place = Annotated[int, Meta(ge=0, lt=MOST_LAUNCHES)]
Axis = Annotated[int, Meta(ge=0, le=LARGEST_AXIS)]
ThreadgroupAxis = Annotated[int, Meta(ge=1, le=LARGEST_THREADGROUP)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Input(_Strict, frozen=True, kw_only=True, tag_field="is"):
    """What the kernel's text calls it, and how to look at it: other dtype of equal width, other shape of equal size."""

    name: Name
    view: DtypeName | None = None
    shape: Shape | None = None


class Argument(_Input, frozen=True, kw_only=True, tag="argument"):
    """An array of the call, by the contract's parameter name; in its own layout, as an implementation gets it."""

    argument: Name


class Output(_Input, frozen=True, kw_only=True, tag="output"):
    """An output of an earlier launch; the first launch is number 0."""

    launch: Place
    output: Name


class Constant(_Strict, frozen=True, kw_only=True, tag_field="is", tag="constant"):
    """A small array of the program's own: the encoding of each element, row by row, all digits of its dtype's width.

    A shape of no axes is a scalar, which the kernel's text gets as a reference.
    """

    name: Name
    dtype: DtypeName
    shape: Shape = []
    bits: Annotated[list[Hex], Meta(max_length=MOST_ELEMENTS)]


Input = Argument | Output | Constant


class Dtype(_Strict, frozen=True, kw_only=True, tag_field="is", tag="dtype"):
    """A template argument that is a type."""

    name: Name
    value: DtypeName


class Int(_Strict, frozen=True, kw_only=True, tag_field="is", tag="int"):
    """A template argument that is an integer."""

    name: Name
    value: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class Bool(_Strict, frozen=True, kw_only=True, tag_field="is", tag="bool"):
    """A template argument that is true or false."""

    name: Name
    value: bool


class Made(_Strict, frozen=True, kw_only=True):
    """An output that a launch makes."""

    name: Name
    dtype: DtypeName
    shape: Shape


class Launch(_Strict, frozen=True, kw_only=True):
    """One launch: the kernel's text, and what it is called with. `grid` counts threads.

    `init_value` is the encoding of a float32 that outputs are converted from before the launch; without it they hold
    garbage.
    """

    name: Name
    source: Text
    header: Text = ""
    inputs: Annotated[list[Input], Meta(max_length=MOST_BUFFERS)]
    outputs: Annotated[list[Made], Meta(min_length=1, max_length=MOST_BUFFERS)]
    template: Annotated[list[Dtype | Int | Bool], Meta(max_length=MOST_TEMPLATE)] = []
    grid: tuple[Axis, Axis, Axis]
    threadgroup: tuple[ThreadgroupAxis, ThreadgroupAxis, ThreadgroupAxis]
    init_value: Annotated[str, Meta(pattern="^0x[0-9a-f]{8}$")] | None = None
    ensure_row_contiguous: bool = True
    atomic_outputs: bool = False
    math_mode: Literal["safe", "relaxed", "fast"] = "safe"


class Result(_Strict, frozen=True, kw_only=True):
    """Which output is the answer, and the shape that it is given where that of the launch is another."""

    launch: Place
    output: Name
    view: DtypeName | None = None
    shape: Shape | None = None


class Plan(_Strict, frozen=True, kw_only=True):
    """Launches in the order in which they run, and the answer."""

    launches: Annotated[list[Launch], Meta(min_length=1, max_length=MOST_LAUNCHES)]
    result: Result
