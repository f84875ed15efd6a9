"""The page of a report in headless Chromium: a silent console, no sideways scrolling, another look in the dark."""

from __future__ import annotations

import json
import re
import struct
import sys
import zlib
from pathlib import Path

import pytest
from scripts import script

from mlx_assay.conformance.rendering.page import page

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "ci" / "benchmarks"))
from report_rendering import report  # noqa: E402

MEASURED = """
const wide = [...document.querySelectorAll('*')].filter(e =>
  !e.closest('.scroll,.output,svg,.skip') && e.getBoundingClientRect().right > innerWidth + 1);
const shown = [...document.querySelectorAll('.case')].filter(e => e.offsetParent !== null).length;
const boxes = [...document.querySelectorAll('.filters input')];
const before = shown; boxes.forEach(box => box.click());
const after = [...document.querySelectorAll('.case')].filter(e => e.offsetParent !== null).length;
document.body.innerHTML = '<p id="measured">' + JSON.stringify({inner: innerWidth,
  scroll: document.documentElement.scrollWidth, wide: wide.length, before, after, boxes: boxes.length}) + '</p>';
"""


@pytest.fixture(scope="module")
def browser() -> str:
    found = script("screenshot").browser()
    if found is None:
        pytest.skip("NOT RUN: pictures of a report's page, no Chromium is on the PATH or fetched by playwright")
    return str(found)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page(report(60, 6)), encoding="utf-8")
    return file


def pixels(file: Path) -> tuple[int, int, bytes]:
    """Width, height and the unfiltered rows' bytes of a PNG of 8 bits a channel, filters left as they are."""
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    data, place = b"", 8
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        if content[place + 4 : place + 8] == b"IDAT":
            data += content[place + 8 : place + 8 + length]
        place += length + 12
    return width, height, zlib.decompress(data)


def test_pictures_in_light_and_dark(browser: str, shown: Path, tmp_path: Path) -> None:
    taken = {}
    for name, dark in (("light", False), ("dark", True)):
        log = script("screenshot").picture(browser, shown, tmp_path / f"{name}.png", 900, 1400, dark)
        assert [line for line in log.splitlines() if "CONSOLE" in line] == []
        width, height, taken[name] = pixels(tmp_path / f"{name}.png")
        assert (width, height) == (900, 1400)
        assert len(set(taken[name])) > 100
    assert taken["light"] != taken["dark"]


def test_the_console_is_heard(browser: str, shown: Path, tmp_path: Path) -> None:
    loud = script("screenshot").altered(shown, script="console.error('heard')")
    assert "heard" in script("screenshot").picture(browser, loud, tmp_path / "loud.png", 600, 400)


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window_and_filters_hide_cases(browser: str, shown: Path, width: int) -> None:
    probed = script("screenshot").altered(shown, script=MEASURED)
    dom = script("screenshot").chromium(browser, f"--window-size={width},900", "--dump-dom", probed.as_uri()).stdout
    found = re.search(r'<p id="measured">(.*?)</p>', dom)
    assert found is not None
    measured = json.loads(found[1])
    assert measured["scroll"] <= measured["inner"]
    assert measured["wide"] == 0
    assert measured["before"] == 6
    assert measured["boxes"] > 1
    assert measured["after"] == 0


def test_sideways_scrolling_would_be_seen(browser: str, shown: Path) -> None:
    probed = script("screenshot").altered(shown, "h1{width:3000px}", MEASURED)
    dom = script("screenshot").chromium(browser, "--window-size=360,900", "--dump-dom", probed.as_uri()).stdout
    found = re.search(r'<p id="measured">(.*?)</p>', dom)
    assert found is not None
    assert json.loads(found[1])["wide"] > 0


def test_the_picture_of_the_readme_is_there_and_small() -> None:
    width, height, rows = pixels(script("screenshot").PICTURE)
    assert width > 1000 < height * 2
    assert len(set(rows)) > 100
    assert script("screenshot").PICTURE.stat().st_size <= script("screenshot").LARGEST
