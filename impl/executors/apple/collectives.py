"""The `air.*` functions in which lanes meet: barriers, simdgroup and quad operations, matrices."""

import re
from collections.abc import Callable

from mlx_assay.impl.executors.apple.assembly import Assembly
from mlx_assay.impl.executors.apple.layout import Layout
from mlx_assay.impl.executors.apple.types import Type, parse

_SCOPE = r"(?:simd|quad)"
_REDUCTION = re.compile(rf"air\.({_SCOPE}_(?:sum|product|max|min|and|or|xor)|simd_prefix_\w+)\.(?:([su])\.)?(\w+)")
_MOVE = re.compile(rf"air\.({_SCOPE}_(?:shuffle(?:_rotate)?(?:_down|_up|_xor)?|broadcast(?:_first)?))\.(?:[su]\.)?\w+")
_FILL = re.compile(r"air\.(simd_shuffle_and_fill_(?:up|down))\.(?:[su]\.)?\w+")
_MATRIX = re.compile(r"air\.simdgroup_matrix_8x8_(multiply_accumulate|load|store)\.[\w.]+")
_VOTE = re.compile(r"air\.simd_(any|all|ballot|active_threads_mask)(?:\.i64)?")

# The order in which a GPU adds is not published; the runtime's is the one documented in docs/apple-kernels.md.
ORDERED = re.compile(
    rf"air\.(?:{_SCOPE}_(?:prefix_\w+_)?(?:sum|product)\.b?f\d+|simdgroup_matrix_8x8_multiply.*|dot\..*)"
)

# As in runtime/launch.h.
_FOR_BRANCHES, _NEEDS_ALL = 1 << 31, 1 << 30


class Collective:
    """Writes a collective's definition: `(name, result, parameters) -> text`, or None for a name that is none."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def define(self, name: str, result: str, parameters: list[str], code: Assembly) -> str | None:
        rules: tuple[tuple[re.Pattern[str], Callable[..., str]], ...] = (
            (re.compile(r"air\.wg\.barrier"), self._barrier),
            (re.compile(r"air\.simdgroup\.barrier"), self._meet),
            (_REDUCTION, self._reduction),
            (_MOVE, self._move),
            (_FILL, self._fill),
            (_VOTE, self._vote),
            (_MATRIX, self._matrix),
        )
        for pattern, rule in rules:
            if found := pattern.fullmatch(name):
                return rule(code, found, result, parameters)
        return None

    def _lane(self, code: Assembly) -> str:
        return code.call("ptr", "assay_lane")

    def _leave(self, code: Assembly, lane: str, offset: int, type_: str, value: str) -> None:
        code.line(f"store {type_} {value}, ptr {code.field(lane, offset)}, align 1")

    def _take(self, code: Assembly, lane: str, type_: str, at: int = 0) -> str:
        return code.value(f"load {type_}, ptr {code.field(lane, self._layout.result + at)}, align 1")

    def _run(self, code: Assembly, complete: str, argument: int | None = 0) -> None:
        """`argument`: None where it is left already."""
        if argument is not None:
            self._leave(code, self._lane(code), self._layout.argument, "i32", str(argument))
        symbol = f"assay_air_{complete}"
        code.needs.add(f"declare void @{symbol}(ptr, i32)")
        code.call("void", "assay_simdgroup", "i32 %site", f"ptr @{symbol}")

    def _barrier(self, code: Assembly, *_: object) -> str:
        code.call("void", "assay_barrier", "i32 %site")
        return code.returns()

    def _meet(self, code: Assembly, *_: object) -> str:
        self._run(code, "meet")
        return code.returns()

    def _reduction(self, code: Assembly, found: re.Match[str], result: str, parameters: list[str]) -> str:
        operation, sign, suffix = found[1], found[2] or "u", found[3]
        value, type_ = "%a0", result
        if result == "bfloat":
            # As the runtime's own: in f32, rounded once.
            value, type_, suffix = code.value("fpext bfloat %a0 to float"), "float", "f32"
        if suffix.startswith("i"):
            suffix = f"{'u' if operation.endswith(('and', 'or')) else sign}{suffix[1:]}"
        lane = self._lane(code)
        self._leave(code, lane, self._layout.value, type_, value)
        self._run(code, f"{operation}_{suffix}")
        taken = self._take(code, lane, type_)
        return code.returns(code.value(f"fptrunc float {taken} to bfloat") if result == "bfloat" else taken)

    def _move(self, code: Assembly, found: re.Match[str], result: str, parameters: list[str]) -> str:
        operation = re.sub(r"_broadcast$", "_shuffle", found[1])
        type_ = parse(result)
        assert type_ is not None
        lane = self._lane(code)
        self._leave(code, lane, self._layout.value, result, "%a0")
        if len(parameters) > 1:
            argument = code.value(f"zext {parameters[1]} %a1 to i32")
            self._leave(code, lane, self._layout.argument, "i32", argument)
        self._run(code, f"{operation}_{type_.bytes}", 0 if len(parameters) == 1 else None)
        return code.returns(self._take(code, lane, result))

    def _fill(self, code: Assembly, found: re.Match[str], result: str, parameters: list[str]) -> str:
        type_ = parse(result)
        assert type_ is not None
        lane = self._lane(code)
        self._leave(code, lane, self._layout.value, result, "%a0")
        self._leave(code, lane, self._layout.fill, result, "%a1")
        delta, modulo = code.value("zext i16 %a2 to i32"), code.value("zext i16 %a3 to i32")
        high = code.value(f"shl i32 {modulo}, 16")
        self._leave(code, lane, self._layout.argument, "i32", code.value(f"or i32 {delta}, {high}"))
        self._run(code, f"{found[1]}_{type_.bytes}", None)
        return code.returns(self._take(code, lane, result))

    def _vote(self, code: Assembly, found: re.Match[str], result: str, parameters: list[str]) -> str:
        lane = self._lane(code)
        vote = code.value(f"zext {parameters[0]} %a0 to i64") if parameters else "1"
        self._leave(code, lane, self._layout.value, "i64", vote)
        self._run(code, "vote", _FOR_BRANCHES if found[1] == "active_threads_mask" else 0)
        yes = self._take(code, lane, "i64")
        if found[1] in {"ballot", "active_threads_mask"}:
            return code.returns(yes)
        other = self._take(code, lane, "i64", 8) if found[1] == "all" else "0"
        verdict = code.value(f"icmp {'eq' if found[1] == 'all' else 'ne'} i64 {yes}, {other}")
        return code.returns(verdict if result == "i1" else code.value(f"zext i1 {verdict} to {result}"))

    def _matrix(self, code: Assembly, found: re.Match[str], result: str, parameters: list[str]) -> str:
        if found[1] == "multiply_accumulate":
            return self._multiply_accumulate(code, result, parameters)
        return self._transfer(code, found[1], result, parameters)

    def _share(self, code: Assembly, matrix: Type, name: str) -> list[str]:
        """A lane's two elements of a matrix, as floats."""
        out = [code.value(f"extractelement {matrix} {name}, i32 {i}") for i in (0, 1)]
        return out if matrix.element == "float" else [code.value(f"fpext {matrix.element} {v} to float") for v in out]

    def _multiply_accumulate(self, code: Assembly, result: str, parameters: list[str]) -> str:
        shares = []
        for i, parameter in enumerate(parameters):
            matrix = parse(parameter)
            assert matrix is not None
            shares.append(self._share(code, matrix, f"%a{i}"))
        lane, layout = self._lane(code), self._layout
        for share, at in zip(shares, (layout.value, layout.value + 8, layout.fill), strict=True):
            for i in (0, 1):
                self._leave(code, lane, at + 4 * i, "float", share[i])
        self._run(code, "multiply_accumulate", _NEEDS_ALL)
        made, out = parse(result), "poison"
        assert made is not None
        for i in (0, 1):
            value = self._take(code, lane, "float", 4 * i)
            if made.element != "float":
                value = code.value(f"fptrunc float {value} to {made.element}")
            out = code.value(f"insertelement {result} {out}, {made.element} {value}, i32 {i}")
        return code.returns(out)

    def _transfer(self, code: Assembly, what: str, result: str, parameters: list[str]) -> str:
        """Load: (pointer, row stride, origin, transposed). Store: the matrix before them. Origin is (column, row)."""
        first = 1 if what == "store" else 0
        matrix = parse(parameters[0] if what == "store" else result)
        assert matrix is not None
        pointer, stride, origin, transposed = (f"%a{first + i}" for i in range(4))
        row, column = self._place(code)
        out = "poison"
        for i in (0, 1):
            this_column = code.value(f"add i64 {column}, {i}")
            along = code.value(f"select i1 {transposed}, i64 {row}, i64 {this_column}")
            down = code.value(f"select i1 {transposed}, i64 {this_column}, i64 {row}")
            x = code.value(f"add i64 {along}, " + code.value(f"extractelement <2 x i64> {origin}, i32 0"))
            y = code.value(f"add i64 {down}, " + code.value(f"extractelement <2 x i64> {origin}, i32 1"))
            index = code.value(f"add i64 {x}, " + code.value(f"mul i64 {y}, {stride}"))
            space = parameters[first]
            at = code.value(f"getelementptr {matrix.element}, {space} {pointer}, i64 {index}")
            if what == "store":
                value = code.value(f"extractelement {matrix} %a0, i32 {i}")
                code.line(f"store {matrix.element} {value}, {space} {at}")
            else:
                value = code.value(f"load {matrix.element}, {space} {at}")
                out = code.value(f"insertelement {matrix} {out}, {matrix.element} {value}, i32 {i}")
        return code.returns("" if what == "store" else out)

    def _place(self, code: Assembly) -> tuple[str, str]:
        """The row and the first column of a lane's share: MLX's layout (steel/gemm/mma.h)."""
        lane = self._lane(code)
        self._run(code, "index", _NEEDS_ALL)
        number = self._take(code, lane, "i64")
        quad = code.value(f"lshr i64 {number}, 2")
        half = code.value(f"and i64 {code.value(f'lshr i64 {number}, 1')}, 3")
        row = code.value(f"add i64 {code.value(f'and i64 {quad}, 4')}, {half}")
        left = code.value(f"shl i64 {code.value(f'and i64 {quad}, 2')}, 1")
        right = code.value(f"shl i64 {code.value(f'and i64 {number}, 1')}, 1")
        return row, code.value(f"add i64 {left}, {right}")
