"""The page of a report: what it shows, how large it grows, and that it is sound HTML, closed to all from outside."""

from __future__ import annotations

import hashlib
import re
import sys
from base64 import b64encode
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from markup import Page

from mlx_assay.conformance.record import Bar, Map, Pattern
from mlx_assay.conformance.rendering import page as pages
from mlx_assay.conformance.rendering.cleaning import clean
from mlx_assay.conformance.rendering.encoding import shortened
from mlx_assay.conformance.rendering.explanation import Explanation
from mlx_assay.conformance.rendering.figure import COARSE, FINE, grid, histogram
from mlx_assay.conformance.rendering.page import LARGEST, page
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.verdict import Verdict

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from report_rendering import LIE, report


def changed(of: Report, place: int, **fields: object) -> Report:
    """The report with fields of one case changed."""
    cases = list(of.cases)
    cases[place] = msgspec.structs.replace(cases[place], **fields)
    return msgspec.structs.replace(of, cases=cases)


@pytest.mark.parametrize("failing", [0, 1, 200])
def test_a_page_of_ten_thousand_cases_stays_small_and_shows_all_that_fail(failing: int) -> None:
    made = page(report(10_000, failing))
    assert len(made.encode()) <= LARGEST
    assert made.count('<details class="case') == failing
    assert f"{10_000 - failing:,}" in Page(made).text


def test_the_hardest_patterns_have_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(LIE):
        monkeypatch.setitem(LIE, name, LIE["anywhere"])
    made = page(report(1000, 200))
    assert len(made.encode()) <= LARGEST
    assert made.count('<svg class="map"') == made.count('<details class="case') == 200


def test_what_has_no_room_is_counted() -> None:
    made = page(report(900, 900))
    assert len(made.encode()) <= LARGEST
    shown = made.count('<details class="case') + made.count('<p class="case brief')
    assert 200 < shown < 900
    assert f"{900 - shown:,} more cases that do not conform are left out" in Page(made).text


def test_where_all_that_has_room_is_still_too_much_there_is_less_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    for largest in (LARGEST, 500_000, 250_000, 40_000):
        monkeypatch.setattr(pages, "LARGEST", largest)
        made = page(report(400, 100))
        assert len(made.encode()) <= largest
        assert Page(made).faults == []
        assert "All 400 cases ran; 100 do not conform" in Page(made).text
        sizes.append(len(made))
    assert sizes == sorted(sizes, reverse=True)
    assert "100 more cases that do not conform are left out here" in Page(made).text


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_texts_stand_out_in_light_and_dark(scheme: int) -> None:
    style = files("mlx_assay.conformance.rendering").joinpath("templates", "page.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--([\w-]+):(#[0-9a-f]+)", style.split(":root{")[1 + scheme]))
    pairs = [(text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "page", "code")]
    pairs += [(text, f"{text}-bg") for text in ("good", "bad", "worse", "open")]
    pairs += [(text, "paper") for text in ("good", "bad", "worse", "open", "s", "e", "m")]
    pairs += [(text, "hit") for text in ("s", "e", "m")]
    weak = {}
    for pair in pairs:
        dark, light = sorted(luminance(colours[name]) for name in pair)
        if (contrast := (light + 0.05) / (dark + 0.05)) < 4.5:
            weak[pair] = round(contrast, 2)
    assert weak == {}


@pytest.mark.parametrize("failing", [0, 5])
def test_the_page_is_sound(failing: int) -> None:
    parsed = Page(page(report(40, failing)))
    assert parsed.faults == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert [tag for _, tag in parsed.elements].count("h1") == 1
    targets = {link[1:] for link in parsed.links if link.startswith("#")}
    assert targets <= set(parsed.ids)
    assert {link for link in parsed.links if not link.startswith("#")} == {"data:,"}


def test_the_policy_allows_this_style_and_nothing_else() -> None:
    made = page(report(40, 5))
    style = re.search(r"<style>(.*?)</style>", made, re.DOTALL)
    assert style is not None
    digest = b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in made
    assert "<script" not in made
    assert "style=" not in made


def test_the_verdict_comes_first_and_the_environment_before_any_case() -> None:
    text = Page(page(report(40, 5))).text
    order = ["differs", "my_kernels on the executor host, host-x86_64", "All 40 cases ran; 5 do not conform", "0.32.4"]
    places = [text.index(word) for word in [*order, "stock-mlx", "apply_token_bitmask/bfloat16/kind-0"]]
    assert places == sorted(places)


def test_a_failing_case_is_told_whole() -> None:
    of = report(40, 5)
    told, case = Page(page(of)).text, of.cases[0]
    assert case.difference is not None
    assert case.difference.pattern is not None
    texts = [case.id, case.why, case.replay, case.tensors, "warning: something was printed"]
    texts += [one.text for one in case.difference.pattern.diagnoses]
    texts += [f"Rule {case.difference.rule}", of.contracts[case.operation].rules[case.difference.rule]]
    texts += [place.got for place in case.difference.places]
    assert [text for text in texts if text not in told] == []


def test_a_link_by_case_id_leads_to_the_case() -> None:
    of = report(40, 5)
    assert of.cases[0].id in Page(page(of)).ids


def test_two_cases_of_one_id_have_two_anchors_and_an_alarm() -> None:
    of = report(40, 2)
    twice = msgspec.structs.replace(of, cases=[*of.cases, of.cases[0]])
    parsed = Page(page(twice))
    assert parsed.faults == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert "does not agree with itself" in parsed.text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"verdict": "conforms"}, "it says conforms, its cases say differs"),
        ({"complete": False}, "it says differs, its cases say incomplete"),
        ({"altered": ["judge.py"]}, "it says differs, its cases say incomplete"),
    ],
)
def test_a_report_that_contradicts_itself_is_told_of(change: dict[str, object], told: str) -> None:
    of = report(40, 5)
    assert "does not agree with itself" not in page(of)
    assert told in page(msgspec.structs.replace(of, **change))


def test_a_case_that_could_not_be_compared_has_its_traceback_and_no_figures() -> None:
    message = "x[1]: raised Error\n    File one, line 2\n  executor host · " + report(40, 1).cases[0].replay
    of = changed(report(40, 1), 0, verdict=Verdict.CRASHED, difference=None, message=message)
    made = page(of)
    assert "File one, line 2" in made
    assert "<svg" not in made
    assert "· mlx-assay replay" not in made


@pytest.mark.parametrize(
    ("got", "want", "shown"),
    [
        ("0x3f80", "0x3f81", ["0", "01111111", "000000", "0", "1", "0x3f80", "1.0078125", "-1 ULP"]),
        ("0x0000", "0x8000", ["zeros of two signs", "-0"]),
        ("0x7fc0", "0x3f80", ["no distance", "nan"]),
        ("0xff80", "0x7f7f", ["-inf", "3.38953139e+38", "-65,279 ULP"]),
        ("0x1", "zebra", ["zebra"]),
        ("0x12345", "0x0001", ["74565", "0x12345"]),
    ],
)
def test_encodings_are_shown_by_their_bits_and_values(got: str, want: str, shown: list[str]) -> None:
    of = report(12, 1)
    difference = of.cases[0].difference
    assert difference is not None
    place = msgspec.structs.replace(difference.places[0], got=got, want=want)
    told = Page(page(changed(of, 0, difference=msgspec.structs.replace(difference, places=[place])))).text
    assert [word for word in shown if word not in told] == []


def pattern(rows: int, columns: int, extent: int, counts: list[int]) -> Pattern:
    cells = Map(rows=rows, columns=columns, row_extent=1, column_extent=extent, counts=counts)
    return Pattern(dtype="bfloat16", shape=[rows, columns * extent], map=cells)


def test_a_map_keeps_its_cells_where_there_is_room() -> None:
    drawn = grid(pattern(2, 4, 16, [0, 1, 8, 16, 0, 0, 0, 5]), FINE)
    assert drawn is not None
    assert drawn.shades == [[0, 1, 2, 4], [0, 0, 0, 2]]
    assert drawn.lines == (2,)
    assert drawn.thick == ()


def test_a_cell_takes_no_more_than_the_darkest_shade() -> None:
    drawn = grid(pattern(1, 2, 1, [99, -5]), FINE)
    assert drawn is not None
    assert drawn.shades == [[4, 0]]


def test_cells_are_put_together_where_there_is_not() -> None:
    drawn = grid(pattern(1, 128, 16, [16] + [0] * 127), COARSE)
    assert drawn is not None
    assert (drawn.columns, drawn.column_extent) == (32, 64)
    assert drawn.shades[0][:2] == [1, 0]
    assert drawn.thick == (16,)


@pytest.mark.parametrize(
    ("rows", "columns", "counts"),
    [(2, 2, [1]), (0, 4, []), (-1, -1, [1]), (2**20, 2**20, [1]), (1, 2**17, [1] * 2**17)],
)
def test_a_map_that_is_none_is_not_drawn(rows: int, columns: int, counts: list[int]) -> None:
    assert grid(pattern(rows, columns, 1, counts), FINE) is None


def test_bars_stand_from_low_to_high_and_are_put_together() -> None:
    bars = [Bar(2**power, 2 ** (power + 1) - 1, 1) for power in reversed(range(40))]
    columns = histogram(msgspec.structs.replace(pattern(1, 1, 1, [0]), histogram=[*bars, Bar(5, 5, -3)]), 16)
    assert [column.count for column in columns] == [3] * 13 + [1]
    assert columns[0].label == "+1 to +7"
    assert columns[-1].height == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (-9999, "-9999"), (10_000, "+10k"), (-32767, "-33k"), (2**31, "+2.1G"), (2**63 - 1, "+9.2E")],
)
def test_distances_are_short(number: int, shown: str) -> None:
    assert shortened(number) == shown


def test_numbers_without_end_are_refused() -> None:
    with pytest.raises(ValueError, match=r"below 2\^63"):
        clean(changed(report(12, 1), 0, subcases=10**400))


def test_an_explanation_without_pattern_knows_floats_by_their_distance() -> None:
    case = report(12, 1).cases[0]
    assert case.difference is not None
    bare = msgspec.structs.replace(case.difference, pattern=None)
    known = msgspec.structs.replace(case, difference=bare)
    unknown = msgspec.structs.replace(case, difference=msgspec.structs.replace(bare, worst_ulp=None))
    assert Explanation.of(known, {}).dtype == "bfloat16"
    assert Explanation.of(unknown, {}).dtype == ""
