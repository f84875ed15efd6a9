"""Lines of a kernel's text are found in the file where they stand, however the text was put together."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from mlx_assay.conformance.checking import literals, places, sources
from mlx_assay.conformance.checking.origin import Line, locate, regions
from mlx_assay.conformance.checking.places import Texts, meant
from mlx_assay.impl.executors.checker.finding import Place
from mlx_assay.impl.executors.signature import Definition

BODY = """
    uint i = thread_position_in_grid.x;  // @1
    if (i < n) {  // @2
      y[i] = x[i];  // @3
    }  // @4
"""

FORMS = {
    "plain": f'source = """{BODY}"""',
    "raw": f'source = r"""{BODY}"""',
    "called": f'source = make(name="k", source="""{BODY}""")',
    "stripped": f'source = """{BODY}""".strip()',
    "dedented": f'import textwrap\nsource = textwrap.dedent("""{BODY}""")',
    "indented anew": f'import textwrap\nsource = textwrap.indent(textwrap.dedent("""{BODY}"""), "  ")',
    "formatted": 'N = 4\nsource = f"""\n  int i;  // @1\n  if (i < {N}) {{  // @2\n    y[i] = {N};\n  }}  // @3\n"""',
    "format method": 'source = """\n  int a = {n};\n  if (a) {{ b[a]++; }}  // @1\n  c[a] = 1;  // @2\n""".format(n=3)',
    "replaced": 'source = """\n  T a = 0;\n  b[a] += 1;  // @1\n  T c;\n  d[c] = 1;  // @2\n""".replace("T", "int")',
    "both ends": 'source = """a[{n}] = 1;  // @1\n  b[lane];  // @2\n  c[{n}] = 3;  // @3""".format(n="i")',
    "pieces": 'source = (\n  "uint row = position.x;  // @1\\n"\n  "x[row] += 1;  // @2\\n"\n)',
    "one line": 'source = "y[thread] = x[thread];  // @1"',
    "one literal of two lines": 'source = "a[thread] = 1;  // @1\\n b[thread] = 2;  // @1"',
    "joined": 'source = "\\n".join(["a[thread] = 1;  // @1", "b[thread] = 2;  // @2"])',
    "constants": 'A = """\nuint row = group.x;  // @1\n"""\n\nB = """\ny[row] = 1;  // @2\n"""\nsource = A + B',
    "a comment before": '# y[thread] = x[thread];\nsource = "y[thread] = x[thread];  // @1"',
    "a docstring before": f'"""{BODY.replace("@", "")}"""\nsource = """{BODY}"""',
    "a near twin before": f'other = """{BODY.replace("y[i] = x[i];  // @3", "y[i] = 0;").replace("@", "")}"""\n'
    f'source = """{BODY}"""',
    "escaped quotes": 'source = "y[thread] = x[thread]; // \\"one\\" @1"',
    "escaped quotes of three": 'source = """\n a[thread] = 1; // \\"\\"\\" @1\n b[thread] = 2; // @2\n"""',
    "the other quotes": "source = 'a[thread] = 1; // \"@1\" \\'x\\''",
    "filled in a line": 'N = 3\nsource = f"a[thread] = {N};  // @1"',
    "filled beside an escape": 'N = 3\nsource = f"int a;  // @1\\nb[a] = {N};  // @1\\n"',
    "filled with quotes": "D = {'n': 3}\nsource = f\"int a = {D['n']:d};  // @1\"",
    "filled several times": 'source = "\\n".join(f"a[thread + {n}] = {n};  // @1" for n in range(3))',
    "filled and joined": 'source = "int a;  // @1\\n" + "\\n".join(f"b[a] = {n};  // @2" for n in range(2))'.replace(
        ' + "', ' + \\\n "'
    ),
    "appended": 'lines = ["int thread = 0;  // @1"]\nfor n in range(2):\n  lines.append(f"a[thread] = {n};  // @2")\n'
    'source = "\\n".join(lines)',
    "by percent": 'source = "\\n  int a[%d];  // @1\\n  a[%d] = 1;  // @1" % (4, 3)',
    "by name": 'source = "a[{index}] = 1;  // @1".format(index="thread + 1")',
    "continued": 'source = """\\\n  a[thread] = 1;  // @1\n  b[thread] \\\n = 2;\n  c[thread] = 3;  // @2\n"""',
    "tabs": 'source = "\\ta[thread] =\\tb[thread];  // @1"',
    "numbered characters": 'source = "a[thread] = \\x31; // \\u00e9\\N{BULLET}\\101 @1"',
    "raw backslashes": 'source = r"""\n  #define A \\\n   a[thread]  // @1\n  A = 1;  // @2\n"""',
    "a part of another literal before": 'other = "int a; b[a] = 1; c[a] = 2;"\nsource = "\\n b[a] = 1;  // @1"',
    "names beyond ASCII": 'µ = 1; source = f"a[thread] = {µ}; // µ @1"; other = "µ"',
    "backslashes": 'source = """\n#define ADD(a) \\\\\n  a += 1;  // @1\nADD(y[thread])  // @2\n"""',
}


def source_of(text: str) -> str:
    space: dict[str, Any] = {"make": lambda name, source: source}
    exec(text, space)
    source: str = space["source"]
    return source


def tags(lines: list[str]) -> dict[int, str]:
    return {number: line.split("@")[1][0] for number, line in enumerate(lines, 1) if "@" in line}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_tagged_lines_are_found_where_they_stand(tmp_path: Path, text: str) -> None:
    file = tmp_path / "script.py"
    file.write_text(text)
    source = source_of(text)
    found = locate(source, regions(file))
    wanted = tags(source.split("\n"))
    assert wanted
    for number, tag in wanted.items():
        line = found[number - 1]
        assert line is not None, source.split("\n")[number - 1]
        assert line.path == file
        assert line.text == text.split("\n")[line.number - 1]
        assert f"@{tag}" in line.text


def test_a_line_between_two_that_are_found_is_counted_off(tmp_path: Path) -> None:
    text = 'source = f"""\n  first[thread] = 1;\n  second = {1 + 1};\n  third[thread] = 3;\n"""'
    (tmp_path / "script.py").write_text(text)
    found = locate(source_of(text), regions(tmp_path / "script.py"))
    assert [line and line.number for line in found] == [None, 2, 3, 4, None]


def test_of_equal_texts_the_one_near_the_call_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text('one = "a[i] = b[i];"\n' * 3)
    found = [locate("a[i] = b[i];", regions(file), {str(file): [line]}) for line in (1, 2, 3, 9)]
    assert [line and line.number for (line,) in found] == [1, 2, 3, 3]


def test_a_text_in_one_piece_goes_before_its_pieces(tmp_path: Path) -> None:
    text = 'f("int i; // one", "x", "b[i] = 1; // two")\n\nf("int i; // one\\nb[i] = %d; // two" % 1)'
    (tmp_path / "script.py").write_text(text)
    found = locate("int i; // one\nb[i] = 1; // two", regions(tmp_path / "script.py"))
    assert [line and line.number for line in found] == [3, 3]


def test_a_text_is_preferred_that_stands_in_the_call(tmp_path: Path) -> None:
    text = 'f("int i; // one\\nb[i] = %d; // two" % 1)\nf("int i; // one", "b[i] = 1; // two")'
    file = tmp_path / "script.py"
    file.write_text(text)
    found = locate("int i; // one\nb[i] = 1; // two", regions(file), {str(file): [2]})
    assert [line and line.number for line in found] == [2, 2]


@pytest.mark.parametrize("module", [__name__, "argparse", "json.decoder", "html.entities", "textwrap", "tokenize"])
def test_literals_are_worth_what_python_says(module: str) -> None:
    text = Path(__file__).read_text() if module == __name__ else inspect.getsource(importlib.import_module(module))
    (piece,) = literals.pieces(f"x = {text!r}")
    assert piece.lines == text.removesuffix("\n").split("\n")
    tree = ast.parse(text)
    formatted = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    rows = [row.encode() for row in text.split("\n")]
    compared = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in formatted:
            characters = literals.characters(literals.written(rows, node), node.lineno)
            assert "".join(one.text for one in characters) == node.value
            compared += 1
    assert compared > 10


def test_lines_that_are_only_alike_count_for_the_whole(tmp_path: Path) -> None:
    one = 'one = """\n  int thread = 0;\n  a[thread + FIRST] = 1;\n"""'
    text = one + '\n\ntwo = f"int thread = 0;\\na[thread + {n}] = 1;"'
    file = tmp_path / "script.py"
    file.write_text(text)
    for line, wanted in ((4, [2, 3]), (7, [6, 6])):
        found = locate("int thread = 0;\na[thread + 5] = 1;", regions(file), {str(file): [line]})
        assert [line and line.number for line in found] == wanted


def test_a_blank_literal_between_two_parts_nothing(tmp_path: Path) -> None:
    text = 'one = "int thread;", "a[thread] = 1;"\nsource = "int thread;" + "\\n" + "a[thread] = 1;"'
    (tmp_path / "script.py").write_text(text)
    places = [region.lines for region in regions(tmp_path / "script.py")]
    assert places == [("int thread;", "a[thread] = 1;")] * 2


@pytest.mark.parametrize("source", ["\n  b[thread] = 1;\n  d[thread] = 2;\n", "", "\n\n", "}\n}\n"])
def test_a_text_that_is_nowhere_is_not_found(tmp_path: Path, source: str) -> None:
    (tmp_path / "script.py").write_text(FORMS["plain"])
    assert set(locate(source, regions(tmp_path / "script.py"))) == {None}


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"def (", b"x = '" + b"a" * (1 << 20) + b"'"])
def test_a_file_that_cannot_be_read_has_no_regions(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "script.py").write_bytes(content)
    assert regions(tmp_path / "script.py") == []


def test_a_metal_file_that_was_read_is_searched(tmp_path: Path) -> None:
    file = tmp_path / "body.metal"
    file.write_text("// a kernel of this test alone\nquokka[thread] = wombat[thread];\n")
    sources.listen()
    assert sources.find(file.read_text())[1] == (file, 2, "quokka[thread] = wombat[thread];")


def test_a_place_in_no_file_keeps_to_the_kernels_own_text() -> None:
    texts = Texts(Definition("k", ("x",), ("y",), "int a;\n  zebra[a] = gnu[" + "a" * 2 + "];"), {})
    assert texts.begin() is None
    place = texts.location(Place("source", 2), "gnu", "read")
    assert (place.file, place.line, place.part, place.kernel_line) == ("", 0, "source", 2)
    assert place.text[place.column - 1 : place.end_column - 1] == "gnu[aa]"
    header = texts.location(Place("metal_math", 40, "return x;"))
    assert (header.part, header.kernel_line, header.text) == ("metal_math", 40, "return x;")


MEANT = {
    "the only access": ("  y[i] = x[i + 1];", "", "x", "read", "x[i + 1]"),
    "what is written stands left": ("s[i] = s[j] + s[k];", "", "s", "write", "s[i]"),
    "what is read stands right": ("s[i] = s[j];", "", "s", "read", "s[j]"),
    "both at once": ("s[i] += s[j];", "", "s", "atomic read-modify-write", "s[i]"),
    "no subscript": ("  *p = 1;  // late", "", "p", "write", "p"),
    "two subscripts": ("t[i][j[0]] = 0;", "", "t", "write", "t[i][j[0]]"),
    "not a part of another name": ("xs[0] = a.x + x[1];", "", "x", "read", "x[1]"),
    "no array": (
        "    threadgroup_barrier(mem_flags::mem_none);",
        "",
        "",
        "",
        "threadgroup_barrier(mem_flags::mem_none);",
    ),
    "a part of the line": ('source="y[0] = x[0];")', "y[0] = x[0];", "", "", "y[0] = x[0];"),
    "a declaration before": ("threadgroup float a[8]; a[lane] = 1;", "", "a", "write", "a[lane]"),
    "declared and set": ("threadgroup float a[8]; f(a[0]);", "", "a", "read", "a[0]"),
    "a read that is only written here": ("y[i] = x[i - 9];", "", "y", "read", "y[i] = x[i - 9];"),
    "a comparison is a read": ("if (s[i] == s2[i]) return;", "", "s", "read", "s[i]"),
    "a product is no declaration": ("float y = 2 * a[i];", "", "a", "read", "a[i]"),
    "returned": ("return a[i];", "", "a", "read", "a[i]"),
    "counted up": ("n[b[i]]++;", "", "n", "write", "n[b[i]]"),
    "an atomic": (
        "atomic_fetch_add_explicit(&n[0], 1, memory_order_relaxed);",
        "",
        "n",
        "atomic write",
        "n[0]",
    ),
    "an unknown array": ("f(a);", "f(a);", "z", "read", "f(a);"),
    "escaped quotes": ('f("y = x[0]; // \\"x\\"")', 'y = x[0]; // "x"', "", "", 'y = x[0]; // \\"x\\"'),
    "doubled braces": ('f"if (a) {{ y[0] = 1; }}"', "if (a) { y[0] = 1; }", "y", "write", "y[0]"),
    "an open bracket": ("t[i", "", "t", "read", "t[i"),
}


@pytest.mark.parametrize(("text", "statement", "array", "how", "wanted"), MEANT.values(), ids=MEANT)
def test_what_is_meant_in_a_line(text: str, statement: str, array: str, how: str, wanted: str) -> None:
    begin, end = meant(text, statement, array, how)
    assert text[begin:end] == wanted


MAKERS = '''
LAST = """
    uint j = lane;
    out[j] = a[j + 9];
"""

NAMED = """
    uint j = lane;
    out[j] = a[j + OFF] + 1;  // @named
"""

def one():
    return make("""
    uint j = lane;
    out[j] = a[j] + 1;  // one
    """)

def two():
    return make("""
    uint j = lane;
    out[j] = a[j] + 1;  // one
    """)  # @two

def formatted(n=3):
    return make(f"""
    uint j = lane;
    out[j] = a[j + {n}] + 1;  // @formatted
    """)

def replaced():
    return make("""
    uint j = lane;
    out[j] = a[j + OFF] + 1;  // @replaced
    """.replace("OFF", "4"))

def joined():
    lines = ["uint j = lane;"]
    lines.append("out[j] = a[j] + 1;  // @joined")
    return make("\\n".join(lines))

def escaped():
    return make("uint j = lane;\\nout[j] = a[j] + 1;  // \\"@escaped\\"")

table = {
    "first": lambda: make("uint j = lane; out[j] = a[j];"),
    "tabled": lambda: make("uint j = lane; out[j] = a[j];"),  # @tabled
}

def named():
    return make(NAMED.replace("OFF", "4"))

def generated():
    return make("uint j = lane;\\n" + "out[j] = " + "a[j] + 1;  // nowhere in whole")
'''


def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[list[Line | None], list[str]]:
    """Where the text that a function of MAKERS gives is found, and the lines of the file."""
    file = tmp_path / "makers.py"
    file.write_text(MAKERS)

    def make(source: str) -> tuple[str, dict[str, list[int]]]:
        return source, {str(file): places.stack()[str(file)]}

    space: dict[str, Any] = {"make": make}
    exec(compile(MAKERS, str(file), "exec"), space)
    text, made = space.get(name, space["table"].get(name))()
    monkeypatch.setattr(sources, "_read", {str(file): None})
    return sources.find(text, made), MAKERS.split("\n")


@pytest.mark.parametrize("name", ["two", "formatted", "replaced", "joined", "escaped", "tabled", "named"])
def test_of_texts_alike_the_one_is_found_that_made_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found, lines = maker(tmp_path, monkeypatch, name)
    there = next(number for number, line in enumerate(lines, 1) if f"@{name}" in line)
    told = {line.number for line in found if line is not None}
    assert there - (name == "two") in told, (told, there)


def test_a_line_that_no_text_holds_is_not_taken_from_another_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = maker(tmp_path, monkeypatch, "generated")
    assert found[1:] in ([], [None])
