"""The corpus of planted faults: kernels with one fault each, and a sound twin beside it.

A row of rows/*.toml is written like a difference: lines that begin with `-` are in the faulty kernel only, lines with
`+` in its sound twin only, others in both. A row without a fault is a sound kernel that looks wrong. Comments mark what
has to be found in the faulty kernel:

- `fault: KIND [ARRAY[INDEX]]` and `other: KIND` are lines that a finding has to name;
- `may: KIND` is a line that one may name besides, since it follows from the fault;
- `barrier` is the barrier that a finding names;
- `note: KIND` is said of both kernels, and harmless.

Several kinds are parted by a comma, alternatives by a bar. `faults` names what has no line, `unseen` says why the
checker cannot see the fault, `want` gives the twin's outputs. Unless a row says otherwise, `a` is uint32[64] and holds
0 to 63, `out` is uint32[64], and 64 threads form one threadgroup.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROWS = Path(__file__).with_name("rows")
ROLES = ("fault", "other", "may", "note")
KEYS = {
    *(
        "why",
        "source",
        "header",
        "inputs",
        "outputs",
        "grid",
        "threadgroup",
        "template",
        "atomic_outputs",
        "init_value",
    ),
    *("ensure_row_contiguous", "want", "faults", "twin", "unseen"),
}
_MARK = re.compile(r"(?P<role>\w+): (?P<kinds>[\w|-]+)(?: (?P<array>\w+)(?:\[(?P<index>-?\d+)\])?)?\Z")
_ARRAY = re.compile(
    r"(?P<name>\w+) (?P<dtype>\w+)\[(?P<shape>[\d, ]*)\]"
    r"(?P<view>\.T|\[[\d:, -]+\]| -> [\d, ]+)?(?: = (?P<values>.*))?\Z"
)


@dataclass(frozen=True)
class Mark:
    """What a comment says of its line. `kinds` are alternatives; `file` is empty for what has no line."""

    role: str
    kinds: tuple[str, ...]
    array: str = ""
    index: int | None = None
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Array:
    """An argument: its name, its dtype by NumPy's name, its shape, and the values that fill it in turn.

    `view` is what of it the kernel is given: `.T`, a slice such as `[1:]`, or ` -> 8, 8` for a broadcast.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    view: str = ""
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """One of the two kernels of a row, and how it is launched."""

    name: str
    texts: dict[str, str]
    marks: tuple[Mark, ...]
    launch: dict[str, Any] = field(default_factory=dict)

    def line(self, file: str, number: int) -> str:
        """A line of the text, from 1, without surrounding blanks."""
        return self.texts[file].splitlines()[number - 1].strip()


@dataclass(frozen=True)
class Row:
    """`faulty` is None where the row is a sound kernel alone."""

    name: str
    why: str
    faulty: Kernel | None
    twin: Kernel
    want: str
    unseen: str


def _mark(text: str, file: str = "", line: int = 0) -> Mark:
    match = _MARK.match(text)
    if match is None or match["role"] not in ROLES:
        raise ValueError(f"{file} line {line}: {text!r} is no mark: write `fault: KIND ARRAY[INDEX]`")
    index = None if match["index"] is None else int(match["index"])
    return Mark(match["role"], tuple(match["kinds"].split("|")), match["array"] or "", index, file, line)


def _marks(text: str, file: str) -> Iterator[Mark]:
    for number, line in enumerate(text.splitlines(), 1):
        comment = line.partition(" // ")[2].strip()
        for part in filter(None, re.split(r"; ", comment)):
            role, _, listed = part.partition(": ")
            if role == "barrier":
                yield Mark("barrier", (), file=file, line=number)
            else:
                yield from (_mark(f"{role}: {one}", file, number) for one in listed.split(", "))


def _side(text: str, own: str) -> str:
    kept = (line for line in text.splitlines() if line[:2].strip() in ("", own))
    return "".join(line[2:] + "\n" for line in kept)


def _arrays(text: str) -> list[Array]:
    arrays = []
    for one in re.split(r", (?=[a-z])", text) if text else ():
        match = _ARRAY.match(one)
        if match is None:
            raise ValueError(f"{one!r} is no array: write `a float32[4, 16].T` or `a float32[64] = 1 2 3`")
        shape = tuple(int(n) for n in match["shape"].split(",") if n.strip())
        values = tuple(float(v) for v in (match["values"] or "").split())
        arrays.append(Array(match["name"], match["dtype"], shape, match["view"] or "", values))
    return arrays


def _kernel(name: str, row: dict[str, Any], own: str) -> Kernel:
    texts = {file: _side(row.get(file, ""), own) for file in ("source", "header")}
    marks = [mark for file, text in texts.items() for mark in _marks(text, file)]
    marks += [_mark(f"fault: {fault}") for fault in row.get("faults", ())]
    if own == "+":
        marks = [mark for mark in marks if mark.role == "note"]
    told = row | (row.get("twin", {}) if own == "+" else {})
    launch = {
        "inputs": _arrays(told.get("inputs", "a uint32[64]")),
        "outputs": _arrays(told.get("outputs", "out uint32[64]")),
        "grid": tuple([*told.get("grid", [64]), 1, 1][:3]),
        "threadgroup": tuple([*told.get("threadgroup", [64]), 1, 1][:3]),
        "template": list(told.get("template", {}).items()),
        "atomic_outputs": told.get("atomic_outputs", False),
        "ensure_row_contiguous": told.get("ensure_row_contiguous", True),
        "init_value": told.get("init_value"),
    }
    return Kernel(re.sub(r"\W", "_", name), texts, tuple(marks), launch)


def rows() -> Iterator[Row]:
    """Every row of the corpus. ValueError: a row that is not well formed, by name."""
    for path in sorted(ROWS.glob("*.toml")):
        for key, row in tomllib.loads(path.read_text()).items():
            name = f"{path.stem}/{key}"
            if unknown := row.keys() - KEYS:
                raise ValueError(f"{name}: unknown {sorted(unknown)}: expected some of {sorted(KEYS)}")
            faulty = _kernel(name, row, "-")
            faulted = any(mark.role == "fault" for mark in faulty.marks)
            differs = any(re.search(r"^[+-] ", row.get(text, ""), re.M) for text in ("source", "header"))
            if faulted != (differs or "twin" in row):
                raise ValueError(f"{name}: a fault needs a twin that differs from it, and a difference a fault")
            twin = _kernel(name, row, "+")
            yield Row(name, row["why"], faulty if faulted else None, twin, row["want"], row.get("unseen", ""))


def values(array: Array) -> np.ndarray[Any, Any]:
    """The whole of an input before its view is taken: its values in turn, else 0, 1, 2 ..."""
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, array.dtype, array.dtype))
    size = int(np.prod(array.shape))
    told = np.resize(np.array(array.values), size) if array.values else np.arange(size)
    return told.astype(dtype).reshape(array.shape)


def viewed(array: Array, whole: Any, library: Any) -> Any:
    """The view of an array of this library (NumPy or MLX)."""
    if array.view.startswith(" -> "):
        return library.broadcast_to(whole, tuple(int(n) for n in array.view[4:].split(",")))
    return eval("whole" + array.view, {"whole": whole})


def wanted(row: Row) -> list[np.ndarray[Any, Any] | None]:
    """The twin's outputs by `want`, an expression over its inputs; None for one that is not told."""
    names = {array.name: viewed(array, values(array), np) for array in row.twin.launch["inputs"]}
    told = eval(row.want, {"np": np, **names})
    return [None if each is None else np.asarray(each) for each in (told if isinstance(told, tuple) else (told,))]
