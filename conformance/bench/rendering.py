"""The benchmark for people: lines on a terminal or in a log, and Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlx_assay.conformance.bench.benchmark import Asked, contenders
from mlx_assay.conformance.bench.counts import table as counts_table
from mlx_assay.conformance.bench.counts import told, uncounted
from mlx_assay.conformance.bench.figure import Figure
from mlx_assay.conformance.bench.report import Copied, Entry, Report, Result, Rotation
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.rendering.prose import code, prose

OURS, HOST = "the implementation", "on the host"
KEPT = ("threads", "processes")
"""Found beside what is timed, whatever they are for."""
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


def listed(asked: Sequence[Asked], executor: str) -> Iterator[str]:
    """Every benchmark with its bytes and who runs beside."""
    for one in asked:
        names = ", ".join(contender.name for contender in contenders(one, executor)) or "nobody"
        yield f"{one.id}: reads {size(one.moved.read)}, writes {size(one.moved.written)}; beside it {names}"


def head(report: Report) -> Iterator[str]:
    """What is measured, and where."""
    device = report.device
    told = [device.get("name", "an unnamed device")]
    if memory := device.get("memory_bytes"):
        told.append(f"{size(int(memory))} of memory")
    if cache := device.get("cache_bytes"):
        told.append(f"{size(int(cache))} of last-level cache")
    if driver := device.get("driver"):
        told.append(f"driver {driver}")
    versions = [f"{key.removeprefix('version of ')} {value}" for key, value in device.items() if "version of" in key]
    yield f"{report.implementation} on {report.executor}: {', '.join(told)}; {', '.join(versions)}"
    if report.copied is not None:
        yield f"copy of {size(report.copied.size)}: {_speed(report.copied)} read and written, by {report.copied.way}"


def lines(result: Result, copy: Copied | None) -> Iterator[str]:
    """One benchmark."""
    moved = f"reads {size(result.read_bytes)}, writes {size(result.written_bytes)}"
    yield f"{result.id}: {moved}"
    if result.judged is not None and not result.judged.failing:
        yield f"  conforms on {counted(result.judged.cases, 'case')}, judged in {result.judged.seconds:.0f} s"
    if result.outcome == "differs" and result.judged is not None:
        yield f"  differs, so it has no figure: {result.judged.failing}"
    elif result.outcome == "trick" and result.trick in KEPT:
        yield f"  no figure while it keeps {result.trick}: {printable(result.message)}"
    elif result.outcome == "trick":
        yield f"  trick: {result.trick}, so it has no figure: {printable(result.message)}"
    elif result.outcome in ("error", "incomplete"):
        yield f"  {result.outcome}: {result.message}"
    for rotation in result.rotations:
        yield from _host(rotation) if rotation.name == HOST else _rotation(rotation)
    if result.forms:
        yield from told(result.forms, result.read_bytes + result.written_bytes)
    if result.comparison:
        yield f"  {result.comparison}"


def _host(rotation: Rotation) -> Iterator[str]:
    """Without times: those of a CPU say little about a GPU, and stand in the JSON report alone."""
    yield f"  on the host, where it is counted what a call does, not timed: {_verified(rotation)}"


def _verified(rotation: Rotation) -> str:
    compared = f", {rotation.compared:,} against stock on the device" if rotation.compared else ""
    checked = f"{rotation.checked} of {rotation.timed:,} timed outputs checked by the oracle{compared}"
    return f"{checked}; {rotation.seconds:.0f} s"


def _rotation(rotation: Rotation) -> Iterator[str]:
    yield f"  {rotation.name}, {size(rotation.bytes_read)} a queue: {_verified(rotation)}"
    width = max(len(_name(entry)) for entry in rotation.entries)
    for entry in rotation.entries:
        yield f"    {_name(entry):<{width}}  {_told(entry, rotation)}"
    if rotation.limit is not None:
        yield f"    {'bytes at copy speed':<{width}}  {time(rotation.limit)}"
    if rotation.idle is not None:
        yield f"    {'a queue of no calls':<{width}}  {time(rotation.idle.median)} in all, part of every queue"


def _told(entry: Entry, rotation: Rotation) -> str:
    if entry.missing:
        return f"missing: {printable(entry.missing)}"
    if entry.figure is None:
        return "no figure"
    figure = entry.figure
    told = [f"{time(figure.median)} ({_quartiles(figure)}, {figure.queues} x {figure.calls} calls)"]
    if rotation.limit:
        told.append(f"{figure.median / rotation.limit:.2f} x the bytes' time")
    if (stock := _of(rotation, "stock")) and entry.name != "stock":
        told.append(f"{stock.median / figure.median:.2f} x as fast as stock")
    if entry.whole is not None and entry.lazy:
        told.append(f"with Python's part {time(entry.whole.median)}")
    if entry.note:
        told.append(entry.note)
    if figure.noisy:
        told.append(f"too noisy: the quartiles are {figure.spread:.0%} apart")
    return "; ".join(told)


def _of(rotation: Rotation, name: str) -> Figure | None:
    return next((entry.figure for entry in rotation.entries if entry.name == name), None)


def _name(entry: Entry) -> str:
    return entry.name or OURS


def _quartiles(figure: Figure) -> str:
    return f"{time(figure.low)} to {time(figure.high)}"


def time(nanoseconds: float) -> str:
    """Three digits or more, with the unit."""
    scale, unit = next(((scale, unit) for scale, unit in UNITS if nanoseconds >= scale), UNITS[-1])
    value = nanoseconds / scale
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"


def size(count: int) -> str:
    """Bytes with the largest unit of which there is one."""
    scale, unit = next(((scale, unit) for scale, unit in SIZES if count >= scale), SIZES[-1])
    return f"{count} bytes" if scale == 1 else f"{count / scale:.1f} {unit}"


def _speed(copy: Copied) -> str:
    return (
        f"{copy.bytes_a_second / 1e12:.2f} TB/s"
        if copy.bytes_a_second >= 1e12
        else f"{copy.bytes_a_second / 1e9:.0f} GB/s"
    )


def markdown(report: Report) -> str:
    """The whole report as one page."""
    parts = ["# Benchmarks\n\n", *(f"{prose(line)}\n\n" for line in head(report))]
    if not report.complete:
        parts.append("Incomplete: it was ended before all benchmarks were measured.\n\n")
    for result in report.results:
        parts += [f"## {code(result.id)}\n\n", *_page(result, report.copied)]
    return "".join(parts)


def _page(result: Result, copy: Copied | None) -> Iterator[str]:
    least = result.read_bytes + result.written_bytes
    timed = [rotation for rotation in result.rotations if rotation.name != HOST]
    tables = [rotation for rotation in timed if any(entry.figure for entry in rotation.entries)]
    shown = {line for rotation in tables for line in _rotation(rotation)} | set(told(result.forms, least))
    for form in result.forms:
        if why := uncounted(form, least):
            yield f"{prose(f'{form.name}: {why}')}\n\n"
    for line in lines(result, copy):
        if line not in shown:
            first, *more = line.strip().split("\n")
            yield "".join([f"{prose(first)}\n", *(f"- {prose(each)}\n" for each in more), "\n"])
    for rotation in tables:
        yield f"{prose(f'{rotation.name}, {size(rotation.bytes_read)} a queue')}\n\n"
        yield "| who | a call | quartiles | times the bytes' time | times as fast as stock | notes |\n"
        yield "|---|---:|---:|---:|---:|---|\n"
        for entry in rotation.entries:
            yield _row(entry, rotation)
        yield "\n"
    if result.forms:
        yield "".join(f"{line}\n" for line in counts_table(result.forms)) + "\n"


def _row(entry: Entry, rotation: Rotation) -> str:
    figure, stock = entry.figure, _of(rotation, "stock")
    if figure is None:
        return f"| {prose(_name(entry))} | | | | | {prose(entry.missing or 'no figure')} |\n"
    limit = f"{figure.median / rotation.limit:.2f}" if rotation.limit else ""
    ratio = f"{stock.median / figure.median:.2f}" if stock else ""
    notes = "; ".join(filter(None, (entry.note, "too noisy" if figure.noisy else "")))
    cells = (prose(_name(entry)), time(figure.median), _quartiles(figure), limit, ratio, prose(notes))
    return f"| {' | '.join(cells)} |\n"
