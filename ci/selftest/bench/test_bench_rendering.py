"""Figures and their rendering, from numbers that are written down here."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mlx_assay.conformance.bench.figure import figure
from mlx_assay.conformance.bench.rendering import head, lines, markdown, size, time
from mlx_assay.conformance.bench.report import (
    SCHEMA,
    Copied,
    Entry,
    Form,
    Judged,
    Outcome,
    Report,
    Result,
    Rotation,
    encode,
)

COPY = Copied(way="torch's copy_", size=1 << 30, bytes_a_second=4e12, spread=0.01)
OURS = figure([20_000, 21_000, 22_000, 20_500, 21_500], 1)
STOCK = figure([84_000] * 5, 2)
WILD = figure([10, 100, 1000], 1)


def result(outcome: Outcome = "measured", **more: Any) -> Result:
    entries = [
        Entry(name="", figure=OURS if outcome == "measured" else None, whole=figure([40_000] * 5, 1), lazy=True),
        Entry(name="stock", figure=STOCK, whole=STOCK),
        Entry(name="wild | one", figure=WILD, whole=WILD, note="does other work"),
        Entry(name="absent", missing="ModuleNotFoundError: No module named 'absent'"),
    ]
    rotation = Rotation(
        name="beyond the cache", bytes_read=1 << 30, entries=entries, idle=STOCK, limit=10_000.0, timed=5, checked=2
    )
    return Result(
        id="normalized_argmax/bfloat16?rows=64&vocab=262144",
        operation="normalized_argmax",
        dtype="bfloat16",
        shape={"rows": 64, "vocab": 262144},
        outcome=outcome,
        read_bytes=1 << 25,
        written_bytes=256,
        **{"judged": Judged(cases=7), "rotations": [rotation], **more},
    )


def report(*results: Result, complete: bool = True) -> Report:
    device = {"name": "A GPU", "memory_bytes": str(1 << 37), "driver": "1.2.3", "version of mlx": "0.32.4"}
    return Report(
        schema=SCHEMA,
        suite="0.1.0",
        implementation="my_kernels",
        against="",
        executor="cuda",
        device=device,
        started="2026-11-30T15:00:00+00:00",
        calls=512,
        rounds=5,
        copied=COPY,
        results=list(results),
        complete=complete,
    )


def test_a_figure_is_the_median_with_its_quartiles() -> None:
    assert (OURS.median, OURS.low, OURS.high, OURS.least, OURS.queues) == (21000, 20500, 21500, 20000, 5)
    assert (STOCK.median, STOCK.calls) == (42000, 2)
    assert not OURS.noisy
    assert WILD.noisy


def test_lines_tell_ratios_noise_and_what_is_missing() -> None:
    told = list(lines(result(), COPY))
    assert told[0].endswith("reads 32.0 MiB, writes 256 bytes")
    ours = next(line for line in told if "the implementation" in line)
    assert "21.0 us (20.5 us to 21.5 us, 5 x 1 calls)" in ours
    assert "2.10 x the bytes' time" in ours
    assert "2.00 x as fast as stock" in ours
    assert "with Python's part 40.0 us" in ours
    assert any("too noisy: the quartiles are" in line for line in told)
    assert any("absent" in line and "missing: ModuleNotFoundError" in line for line in told)
    assert any("bytes at copy speed" in line and "10.0 us" in line for line in told)
    assert any("a queue of no calls" in line and "42.0 us" in line for line in told)


@pytest.mark.parametrize(
    ("outcome", "more", "told"),
    [
        ("trick", {"trick": "replayed", "message": "call 2 returned\x1b[2J"}, "trick: replayed, so it has no figure"),
        ("trick", {"trick": "threads", "message": "it keeps 1 thread"}, "no figure while it keeps threads: it keeps 1"),
        ("differs", {"judged": Judged(cases=1, failing="a/b/c", message="m"), "rotations": []}, "no figure: a/b/c"),
        ("error", {"message": "it raised", "rotations": []}, "error: it raised"),
        ("incomplete", {"message": "no oracle", "rotations": []}, "incomplete: no oracle"),
    ],
)
def test_what_has_no_figure_says_why(outcome: Outcome, more: dict[str, Any], told: str) -> None:
    text = "\n".join(lines(result(outcome, **more), COPY))
    assert told in text
    assert "21.0 us" not in text
    assert "\x1b" not in text


def test_the_head_names_the_device_and_the_copy() -> None:
    first, second = head(report())
    assert first == "my_kernels on cuda: A GPU, 128.0 GiB of memory, driver 1.2.3; mlx 0.32.4"
    assert second == "copy of 1.0 GiB: 4.00 TB/s read and written, by torch's copy_"


def test_the_page_has_a_row_for_each_and_escapes() -> None:
    page = markdown(report(result()))
    assert "| the implementation | 21.0 us | 20.5 us to 21.5 us | 2.10 | 2.00 |" in page
    assert "wild &#124; one" in page
    assert page.count("\n| ") == 5
    assert "## <code>normalized_argmax/bfloat16?rows=64&vocab=262144</code>" in page, "to be read as text too"
    assert "Incomplete" not in page
    assert "Incomplete: it was ended" in markdown(report(result(), complete=False))


def test_the_page_has_counts() -> None:
    forms = [
        Form(
            name="one",
            launches=2,
            measures={"atomics": 3.0, "active lanes": 0.5, "bytes of device memory touched, each once": 1e8},
        ),
        Form(name="other", launches=0, measures={}),
    ]
    page = markdown(report(result(rotations=[], forms=forms, comparison="one does less\none 4,532 units")))
    assert "\none does less\n- one 4,532 units\n\n" in page
    assert "| atomics | 3 | - |" in page
    assert "| active lanes | 50.0% | - |" in page


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (("measured",), 0),
        (("measured", "differs"), 1),
        (("trick",), 1),
        (("error",), 1),
        (("trick", "incomplete"), 3),
        ((), 3),
    ],
)
def test_exit_codes(outcomes: tuple[Outcome, ...], code: int) -> None:
    assert report(*(result(outcome) for outcome in outcomes)).exit_code == code


def test_a_report_that_is_under_way_is_incomplete() -> None:
    under_way = report(result(), complete=False)
    assert under_way.exit_code == 3
    assert msgspec.json.decode(encode(under_way), type=Report) == under_way


def test_units() -> None:
    assert [time(value) for value in (3, 1234, 56_789, 234_000, 2e9)] == [
        "3.00 ns",
        "1.23 us",
        "56.8 us",
        "234 us",
        "2.00 s",
    ]
    assert [size(count) for count in (17, 2048, 3 << 20, 5 << 30)] == ["17 bytes", "2.0 KiB", "3.0 MiB", "5.0 GiB"]
