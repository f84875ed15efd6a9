"""Questions about integers where C++ leaves the result open: division by zero, conversions and shifts out of range."""

from __future__ import annotations

from mlx_assay.conformance.capture.question import Question, Words, f32

LEAST, ONES = 0x80000000, 0xFFFFFFFF
_BEYOND = (3e9, -3e9, float("inf"), float("-inf"))
_NAN = 0x7FC00000


def _word(value: int) -> int:
    return value & ONES


def _signed(operator: str, results: dict[str, Words], host: str) -> Question:
    of = "quotient" if operator == "/" else "remainder"
    return Question(
        f"integers.{of}-by-zero.int",
        f"7 {operator} 0 and -7 {operator} 0 of int",
        "u32",
        (7, _word(-7), 0),
        2,
        f"int z = int(a[2]); r[0] = uint(int(a[0]) {operator} z); r[1] = uint(int(a[1]) {operator} z);",
        results,
        host,
    )


def _unsigned(operator: str, results: dict[str, Words], host: str) -> Question:
    of = "quotient" if operator == "/" else "remainder"
    return Question(
        f"integers.{of}-by-zero.uint",
        f"7 {operator} 0 of uint",
        "u32",
        (7, 0),
        1,
        f"r[0] = a[0] {operator} a[1];",
        results,
        host,
    )


_SHIFTS = (1, 32, 33, 255)


def _shift(name: str, told: str, value: int, source: str, modulo: Words, beyond: Words, beyond_name: str) -> Question:
    return Question(
        f"integers.{name}",
        f"{told} by 1, 32, 33 and 255",
        "u32",
        (value, *_SHIFTS),
        4,
        " ".join(f"r[{i}] = {source.format(i + 1)};" for i in range(4)),
        {"modulo 32": modulo, beyond_name: beyond},
        "modulo 32",
    )


QUESTIONS = (
    _signed("/", {"all bits": (ONES, ONES), "zero": (0, 0), "the dividend": (7, _word(-7))}, "all bits"),
    _signed("%", {"the dividend": (7, _word(-7)), "zero": (0, 0), "all bits": (ONES, ONES)}, "the dividend"),
    _unsigned("/", {"all bits": (ONES,), "zero": (0,), "the dividend": (7,)}, "all bits"),
    _unsigned("%", {"the dividend": (7,), "zero": (0,), "all bits": (ONES,)}, "the dividend"),
    Question(
        "integers.least-by-minus-one",
        "-2^31 / -1 and -2^31 % -1",
        "u32",
        (LEAST, ONES),
        2,
        "int v = int(a[0]), w = int(a[1]); r[0] = uint(v / w); r[1] = uint(v % w);",
        {"wraps": (LEAST, 0), "saturates": (0x7FFFFFFF, 0)},
        "wraps",
    ),
    Question(
        "integers.float-to-int",
        "3e9, -3e9, +inf, -inf and NaN as int",
        "u32",
        (*f32(*_BEYOND), _NAN),
        5,
        " ".join(f"r[{i}] = uint(int(as_type<float>(a[{i}])));" for i in range(5)),
        {
            "saturates, NaN is 0": (0x7FFFFFFF, LEAST, 0x7FFFFFFF, LEAST, 0),
            "saturates, NaN is the least": (0x7FFFFFFF, LEAST, 0x7FFFFFFF, LEAST, LEAST),
            "the least for all": (LEAST,) * 5,
        },
        "saturates, NaN is 0",
    ),
    Question(
        "integers.float-to-uint",
        "5e9, -1, +inf, -inf and NaN as uint",
        "u32",
        (*f32(5e9, -1.0, float("inf"), float("-inf")), _NAN),
        5,
        " ".join(f"r[{i}] = uint(as_type<float>(a[{i}]));" for i in range(5)),
        {"saturates, NaN is 0": (ONES, 0, ONES, 0, 0), "all bits for all": (ONES,) * 5},
        "saturates, NaN is 0",
    ),
    Question(
        "integers.float-to-uchar",
        "300 and -1 as uchar",
        "u32",
        f32(300.0, -1.0),
        2,
        "r[0] = uint(uchar(as_type<float>(a[0]))); r[1] = uint(uchar(as_type<float>(a[1])));",
        {"saturates": (255, 0), "wraps": (44, 255)},
        "saturates",
    ),
    _shift("shift-left", "1u <<", 1, "a[0] << a[{}]", (2, 1, 2, LEAST), (2, 0, 0, 0), "zero"),
    _shift(
        "shift-right.uint",
        "0x80000000 >>",
        LEAST,
        "a[0] >> a[{}]",
        (1 << 30, LEAST, 1 << 30, 1),
        (1 << 30, 0, 0, 0),
        "zero",
    ),
    _shift(
        "shift-right.int",
        "-8 >>",
        _word(-8),
        "uint(int(a[0]) >> int(a[{}]))",
        (_word(-4), _word(-8), _word(-4), ONES),
        (_word(-4), ONES, ONES, ONES),
        "the sign",
    ),
)
