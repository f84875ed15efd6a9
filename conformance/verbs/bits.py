"""The verb `bits`: two files of tensors, compared by their encodings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.diagnosis.container import read
from mlx_assay.conformance.diagnosis.pairing import Pair, Pairing, chosen, pair
from mlx_assay.conformance.options import output, resolved
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.rendering.characters import PLAIN, chart, histogram, legend, places
from mlx_assay.conformance.rendering.encoding import apart, word
from mlx_assay.conformance.rendering.explanation import Compared, index
from mlx_assay.conformance.rendering.figure import grid
from mlx_assay.conformance.rendering.figure import histogram as columns
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, Verdict

IN_FULL = 10
"""Tensors that differ of which everything is shown; of the others a line each."""
WORDS = {EXIT_CONFORMS: "same", EXIT_DIFFERS: "differs", EXIT_INCOMPLETE: "nothing was compared"}


def bits(first: str, second: str, names: Sequence[str], ulps: int | None, json: str | None) -> int:
    """Compares and prints; the exit code. `ulps` is a distance that passes, None lets none pass."""
    target = _target(json, first, second) if json is not None else None
    one, two = _read(first), _read(second)
    try:
        pairs, missing, extra = chosen(one, two, names)
    except ValueError as error:
        raise Refusal(printable(str(error))) from error
    held = [pair(name, other, one[name], two[other], ulps) for name, other in pairs]
    found = Pairing(first=first, second=second, ulps=ulps, pairs=held, missing=missing, extra=extra)
    if target is not None:
        _write(target, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    for line in told(found):
        print(printable(line))
    return found.exit_code


def _read(name: str) -> dict[str, np.ndarray]:
    try:
        return read(Path(name))
    except OSError as error:
        raise Refusal(f"{name}: expected a file to read but: {error.strerror}") from error
    except (ValueError, MemoryError) as error:
        raise Refusal(printable(str(error) or f"{name}: it takes more memory than there is")) from error


def _target(name: str, *given: str) -> Path:
    try:
        path = output(name)
    except ValueError as error:
        raise Refusal(str(error)) from error
    if path in {resolved(each) for each in given}:
        raise Refusal(f"Expected a file to write but got {name!r}, which is one of the two: name another")
    return path


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"{path} cannot be written: {error.strerror}", EXIT_INCOMPLETE) from error


def told(found: Pairing) -> Iterator[str]:
    """The text: what differs, what is missing, then counts and the verdict."""
    shown = 0
    for one in found.pairs:
        if one.verdict is not Verdict.SAME_BITS:
            shown += 1
            yield from _pair(one, found.ulps, shown <= IN_FULL)
    for names, where in ((found.missing, found.first), (found.extra, found.second)):
        for name in names:
            yield f"{name}: in {where} alone"
    counts = {verdict: sum(one.verdict is verdict for one in found.pairs) for verdict in Verdict}
    parts = [f"{count} {verdict.value}" for verdict, count in counts.items() if count]
    parts += [f"{len(names)} {word}" for names, word in ((found.missing, "missing"), (found.extra, "extra")) if names]
    allowed = f", {found.ulps} ULP allowed on request" if found.ulps is not None else ""
    size = f"{counted(found.elements, 'element')} compared"
    yield f"{WORDS[found.exit_code]}: {', '.join(parts) or 'no tensor'}, {size}{allowed}"


def _pair(one: Pair, ulps: int | None, full: bool) -> Iterator[str]:
    name = one.name if one.name == one.other else f"{one.name} against {one.other}"
    if one.reason:
        yield f"{name}: differs, {one.reason}"
        return
    worst = "" if one.worst_ulp is None else f", worst {one.worst_ulp} ULP"
    shape = "x".join(map(str, one.shape)) or "scalar"
    allowed = f" {ulps} allowed on request" if one.verdict is Verdict.WITHIN_ULP else ""
    yield f"{name}: {one.verdict.value}{allowed}, {one.dtype} {shape}, {one.count} of {one.total} places{worst}"
    if not full or one.pattern is None:
        return
    for diagnosis in one.pattern.diagnoses:
        if diagnosis.kind != "none":
            yield f"  pattern ({diagnosis.kind}): {diagnosis.text}"
    compared = []
    for place in one.places:
        got, want = word(place.got, one.dtype), word(place.want, one.dtype)
        compared.append(Compared(index(place.index), got, want, apart(got, want)))
    yield from (f"    {line}" for line in places(compared))
    if bars := columns(one.pattern, PLAIN.bars):
        yield "  first less second, in ULP:"
        yield from (f"    {line}" for line in histogram(bars))
    if cells := grid(one.pattern, PLAIN):
        yield f"  where; {legend(cells)}:"
        yield from (f"    {line}" for line in chart(cells))
