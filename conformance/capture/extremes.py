"""Questions about the larger and the smaller of two, and about exchanges: NaN, and zeros of both signs."""

from __future__ import annotations

from mlx_assay.conformance.capture.question import Kind, Question, Words, bf16, f16, f32

NUMBER, NAN = "the number", "the NaN"
BITS_BY_VALUE = "by bits, told by value"
_ENCODED = {"f32": (f32, 0x7FC00000), "f16": (f16, 0x7E00), "bf16": (bf16, 0x7FC0)}
_TYPES = {"f32": ("float", "uint"), "f16": ("half", "ushort"), "bf16": ("bfloat16_t", "ushort")}


def _loaded(kind: Kind) -> str:
    type_, word = _TYPES[kind]
    return f"{type_} v = as_type<{type_}>({word}(a[0])), w = as_type<{type_}>({word}(a[1]));"


def _both_ways(kind: Kind, name: str) -> str:
    """r[0] of (v, w), r[1] of (w, v)."""
    type_, word = _TYPES[kind]
    return (
        f"{_loaded(kind)} {type_} t = {name}(v, w), u = {name}(w, v); "
        f"r[0] = as_type<{word}>(t); r[1] = as_type<{word}>(u);"
    )


def _nan(kind: Kind, name: str) -> Question:
    encode, nan = _ENCODED[kind]
    (one,) = encode(1.0)
    return Question(
        f"nan.{name}.{kind}",
        f"{name}(NaN, 1) and {name}(1, NaN)",
        kind,
        (nan, one),
        2,
        _both_ways(kind, name),
        {NUMBER: (one, one), NAN: (nan, nan), "the first": (nan, one), "the second": (one, nan)},
        NUMBER,
    )


def _zero(name: str) -> Question:
    plus, minus = f32(0.0, -0.0)
    return Question(
        f"zeros.{name}",
        f"{name}(+0, -0) and {name}(-0, +0)",
        "f32",
        (plus, minus),
        2,
        _both_ways("f32", name),
        {
            "+0": (plus, plus),
            "-0": (minus, minus),
            "the first": (plus, minus),
            "the second": (minus, plus),
        },
        "the second",
    )


def _across(name: str) -> Question:
    """Two lanes hold NaN, the others 0 to 29."""
    values: list[float] = [float(i) for i in range(30)]
    words: Words = (*f32(*values[:7]), 0x7FC00000, *f32(*values[7:21]), 0x7FC00000, *f32(*values[21:]))
    (best,) = f32(29.0 if name == "simd_max" else 0.0)
    return Question(
        f"nan.{name}",
        f"{name} of 0 to 29 and two NaN",
        "f32",
        words,
        32,
        f"float v = as_type<float>(a[lane]); float t = {name}(v); r[lane] = as_type<uint>(t);",
        {NUMBER: (best,) * 32, NAN: (0x7FC00000,) * 32},
        NUMBER,
        group="lanes",
    )


def _clamp() -> Question:
    nan, low, high = 0x7FC00000, *f32(2.0, 3.0)
    return Question(
        "nan.clamp",
        "clamp(NaN, 2, 3)",
        "f32",
        (nan, low, high),
        1,
        "r[0] = as_type<uint>(clamp(as_type<float>(a[0]), as_type<float>(a[1]), as_type<float>(a[2])));",
        {"the lower end": (low,), "the upper end": (high,), NAN: (nan,)},
        "the lower end",
    )


def _exchange(name: str, about: str, held: int, expected: int) -> Question:
    """r[0] whether it tells success, r[1] what the cell holds afterwards. Others have seen it told by value on GPUs."""
    (new,) = f32(7.0)
    relaxed = "memory_order_relaxed"
    same = name == "nan"
    return Question(
        f"{name}.exchange",
        about,
        "u32",
        (held, expected, new),
        2,
        f"threadgroup atomic_float cell; atomic_store_explicit(&cell, as_type<float>(a[0]), {relaxed});\n"
        "float seen = as_type<float>(a[1]);\n"
        "bool done = atomic_compare_exchange_weak_explicit(\n"
        f"    &cell, &seen, as_type<float>(a[2]), {relaxed}, {relaxed});\n"
        f"r[0] = done ? 1u : 0u; r[1] = as_type<uint>(atomic_load_explicit(&cell, {relaxed}));",
        {
            "by bits": (1, new) if same else (0, held),
            BITS_BY_VALUE: (0, new) if same else (1, held),
            "by value": (0, held) if same else (1, new),
        },
        BITS_BY_VALUE,
    )


QUESTIONS = (
    *(_nan("f32", name) for name in ("fmax", "fmin", "max", "min")),
    *(_nan(kind, name) for kind in ("f16", "bf16") for name in ("max", "min")),
    _clamp(),
    *(_across(name) for name in ("simd_max", "simd_min")),
    *(_zero(name) for name in ("max", "min", "fmax", "fmin")),
    _exchange("nan", "a compare and exchange of a float NaN with itself", 0x7FC00000, 0x7FC00000),
    _exchange("zeros", "a compare and exchange of the float -0 with +0", *f32(-0.0, 0.0)),
)
