"""Elementwise kernels: arange, unary, binary, two results, ternary, copies, in every form of their strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock import dispatch
from trials.trial import (
    BF16,
    F16,
    F32,
    FLOATS,
    NAMES,
    U32,
    Array,
    Trial,
    normal,
    on_cpu,
    rounding,
    whole,
    wide,
)  # fmt: skip

Of = Callable[..., Any]
SHAPES = {"1": (35,), "2": (5, 7), "3": (3, 5, 7), "n": (2, 3, 5, 7)}
EACH = {"gn2": 2, "gn4large": 4, "gn1": 1, "ggn2": 2, "ggn4large": 4, "ggn2_dynamic": 2, "ggn4large_dynamic": 4}


def grid_of(shape: tuple[int, ...], each: int = 1) -> tuple[int, int, int]:
    """The last axis runs along x, `each` elements a thread."""
    x, y, *rest = (*reversed(shape), 1, 1)
    return -(-x // each), y, int(np.prod(rest, dtype=np.int64))


def strides(array: Array) -> Array:
    return np.array([s // array.itemsize for s in array.strides], np.int64)


def launch(library: RawLibrary, name: str, buffers: Any, grid: tuple[int, ...], constants: Any = None) -> None:
    x = min(grid[0], 32)
    library.function(name, constants or {})(buffers, grid=grid, threadgroup=(x, min(grid[1], 256 // x), 1))


def drawn(dtype: Any, *shape: int, seed: int = 0, positive: bool = False) -> Array:
    kind = np.dtype(dtype).kind
    if kind in "fV":
        made = normal(dtype, *shape, scale=5, seed=seed)
        return np.abs(made) if positive else made
    if kind == "c":
        return normal(F32, *shape, 2, seed=seed).view(np.complex64)[..., 0]
    return whole(dtype, 0, 2, *shape, seed=seed) if kind == "b" else whole(
        dtype, 1 if positive else -20 if kind == "i" else 0, 20, *shape, seed=seed
    )  # fmt: skip


def views(prefix: str, dtype: Any, count: int, positive: bool = False) -> list[Array]:
    """Operands of one shape that are not contiguous: transposed, broadcast, every second element."""
    kind = prefix.lstrip("g")[0]
    shape = SHAPES[kind]
    base = drawn(dtype, 3 * shape[0], *shape[1:], positive=positive)[::3]
    turned = drawn(dtype, *reversed(shape), seed=1, positive=positive).T
    spread = np.broadcast_to(drawn(dtype, *shape[1:], seed=2, positive=positive), shape)
    return [turned, spread if kind != "1" else base, base][:count]


def arange(dtype: Any) -> Trial:
    out_type = np.dtype(dtype)

    def run(library: RawLibrary) -> Array:
        out = np.zeros(37, dtype)
        launch(library, f"arange{NAMES[out_type]}", [np.array([3], dtype), np.array([2], dtype), out], (37, 1, 1))
        return out

    def expected() -> Array:
        return on_cpu(lambda s: mx.arange(3, 77, 2, dtype=s.dtype), np.zeros(1, dtype))

    return Trial("arange.h", f"arange{NAMES[out_type]}", "37", "arange(3, 77, 2)", run, expected)


def unary(kernel: str, of: Of, x: Array, result: Any = None, bound: Any = None, reason: str = "") -> Trial:
    prefix = "vn" if x.size >= 65536 and x.itemsize < 8 else "v"
    name = f"{prefix}_{kernel}{NAMES[x.dtype]}{NAMES[np.dtype(result or x.dtype)]}"
    return Trial(
        "unary.h", name, str(x.shape), kernel,
        lambda library: dispatch.unary(library, kernel, x, dtype=result), lambda: on_cpu(of, x), bound, reason,
    )  # fmt: skip


def unary_view(prefix: str, kernel: str, of: Of, dtype: Any) -> Trial:
    (x,) = views("gn", dtype, 1)
    name = f"{prefix}_{kernel}{NAMES[x.dtype]}{NAMES[x.dtype]}"

    def run(library: RawLibrary) -> Array:
        if prefix == "v2":
            flat, out = np.ascontiguousarray(x), np.zeros(x.shape, dtype)
            launch(library, name, [flat, out, np.int64(x.size)], (x.size // 2, 1, 1))
            return out
        out = np.zeros(x.shape, dtype)
        shape = np.array(x.shape, np.int32)
        launch(library, name, [x, out, shape, strides(x), np.int32(x.ndim)], grid_of(x.shape, EACH[prefix]))
        return out

    return Trial("unary.h", name, str(x.shape), kernel, run, lambda: on_cpu(of, np.ascontiguousarray(x)))


def binary(kernel: str, of: Of, dtype: Any, size: int = 101, result: Any = None, positive: bool = True) -> Trial:
    a, b = drawn(dtype, size), drawn(dtype, size, seed=1, positive=positive)
    prefix = "vvn" if size >= 65536 and a.itemsize < 8 else "vv"
    return Trial(
        "binary.h", f"{prefix}_{kernel}{NAMES[a.dtype]}", str(size), kernel,
        lambda library: dispatch.binary(library, kernel, a, b, dtype=result), lambda: on_cpu(of, a, b),
    )  # fmt: skip


def binary_view(prefix: str, kernel: str, of: Of, dtype: Any) -> Trial:
    a, b = views(prefix, dtype, 2, positive=True)
    name, two = f"{prefix}_{kernel}{NAMES[a.dtype]}", kernel == "DivMod"

    def run(library: RawLibrary) -> Array:
        outs = [np.zeros(a.shape, dtype) for _ in range(1 + two)]
        given = [a, b, *outs]
        if "n" in prefix:
            given += [np.array(a.shape, np.int32), strides(a), strides(b), np.int32(a.ndim)]
        else:
            given += [strides(a), strides(b)]
        launch(library, name, given, grid_of(a.shape, EACH.get(prefix, 1)))
        return np.stack(outs) if two else outs[0]

    def expected() -> Array:
        return on_cpu(of, np.ascontiguousarray(a), np.ascontiguousarray(b))

    return Trial("binary_two.h" if two else "binary.h", name, str(a.shape), kernel, run, expected)


def flat_pair(prefix: str, kernel: str, of: Of, dtype: Any) -> Trial:
    """binary.h and binary_two.h on rows: one of the operands may be a single element, sizes are 64 bits in form 2."""
    size = 94
    a = drawn(dtype, 1 if prefix[0] == "s" else size, positive=True)
    b = drawn(dtype, 1 if prefix[1] == "s" else size, seed=1, positive=True)
    name, two = f"{prefix}_{kernel}{NAMES[a.dtype]}", kernel == "DivMod"
    shape = (1,) if prefix == "ss" else (size,)

    def run(library: RawLibrary) -> Array:
        outs = [np.zeros(shape, dtype) for _ in range(1 + two)]
        long = prefix.endswith("2")
        size_given = [] if prefix == "ss" else [np.int64(size) if long else np.uint32(size)]
        each = 1 if prefix in ("ss", "sv", "vs", "vv") else max(8 // a.itemsize, 1)
        launch(library, name, [a, b, *outs, *size_given], (-(-shape[0] // each), 1, 1))
        return np.stack(outs) if two else outs[0]

    return Trial("binary_two.h" if two else "binary.h", name, str(size), kernel, run, lambda: on_cpu(of, a, b))


def select(prefix: str, dtype: Any) -> Trial:
    name = f"{prefix}_Select{NAMES[np.dtype(dtype)]}"
    if prefix[0] == "g":
        (b, c), shape = views(prefix, dtype, 2), SHAPES[prefix[1]]
        condition = np.broadcast_to(whole(bool, 0, 2, shape[-1]), shape)
    else:
        b, c = drawn(dtype, 1 if prefix[0] == "s" else 90), drawn(dtype, 1 if prefix[:2] == "vs" else 90, seed=1)
        condition, shape = whole(bool, 0, 2, 90), (90,)

    def run(library: RawLibrary) -> Array:
        out = np.zeros(shape, dtype)
        if prefix[0] == "g":
            kept = [np.array(shape, np.int32)] if "n" in prefix else []
            last = [np.int32(len(shape))] if "n" in prefix else []
            given = [condition, b, c, out, *kept, strides(condition), strides(b), strides(c), *last]
            launch(library, name, given, grid_of(shape, EACH.get(prefix, 1)))
        else:
            each = 1 if prefix in ("v", "sv", "vs") else max(8 // out.itemsize, 1)
            size = np.int64(90) if prefix.endswith("2") else np.uint32(90)
            launch(library, name, [condition, b, c, out, size], (-(-90 // each), 1, 1))
        return out

    def expected() -> Array:
        return on_cpu(mx.where, np.ascontiguousarray(condition), np.ascontiguousarray(b), np.ascontiguousarray(c))

    return Trial("ternary.h", name, str(shape), "where", run, expected)


def copy(prefix: str, source: Any, result: Any) -> Trial:
    name = f"{prefix}_copy{NAMES[np.dtype(source)]}{NAMES[np.dtype(result)]}"
    x = drawn(source, 1 if prefix[0] == "s" else 90) if prefix[0] in "sv" else views(prefix, source, 1)[0]
    shape = (90,) if prefix[0] in "sv" else x.shape

    def run(library: RawLibrary) -> Array:
        # The destination's first axis has gaps, where the kernel takes strides for it.
        wider = np.zeros((2 * shape[0], *shape[1:]), result)
        out = wider[::2] if prefix.startswith("gg") else np.zeros(shape, result)
        if prefix[0] in "sv":
            each = 1 if prefix in ("s", "v") else max(8 // out.itemsize, 1)
            size = np.int64(90) if prefix.endswith("2") else np.uint32(90)
            launch(library, name, [x, out, size], (-(-90 // each), 1, 1))
            return out
        given = {0: x, 1: wider if prefix.startswith("gg") else out, 3: strides(x)}
        if prefix in EACH:
            given |= {2: np.array(shape, np.int32), 5: np.int32(x.ndim)}
        if prefix.startswith("gg"):
            given[4] = strides(out)
        if "dynamic" in prefix:
            given |= {6: np.int64(0), 7: np.int64(0)}
        launch(library, name, given, grid_of(shape, EACH.get(prefix, 1)))
        return np.ascontiguousarray(out)

    def expected() -> Array:
        spread = np.ascontiguousarray(np.broadcast_to(x, shape))
        like = np.zeros(1, result)
        return on_cpu(lambda a, b: a.astype(b.dtype), spread, like)

    return Trial("copy.h", name, str(shape), f"astype({NAMES[np.dtype(result)]})", run, expected)


# Functions of the C library on both sides, in f32; MLX's CPU vectorises some of them by polynomials of its own.
FUNCTIONS: dict[str, tuple[Of, Callable[[Array], Array], tuple[float, float], float]] = {
    "ArcCos": (mx.arccos, np.arccos, (-1, 1), 4), "ArcCosh": (mx.arccosh, np.arccosh, (1, 50), 4),
    "ArcSin": (mx.arcsin, np.arcsin, (-1, 1), 4), "ArcSinh": (mx.arcsinh, np.arcsinh, (-9, 9), 4),
    "ArcTan": (mx.arctan, np.arctan, (-9, 9), 4), "ArcTanh": (mx.arctanh, np.arctanh, (-0.9, 0.9), 4),
    "Cos": (mx.cos, np.cos, (-9, 9), 4), "Cosh": (mx.cosh, np.cosh, (-9, 9), 4), "Exp": (mx.exp, np.exp, (-9, 9), 4),
    "Expm1": (mx.expm1, np.expm1, (-3, 3), 8), "Log": (mx.log, np.log, (0.01, 50), 4),
    "Log2": (mx.log2, np.log2, (0.01, 50), 4), "Log10": (mx.log10, np.log10, (0.01, 50), 4),
    "Log1p": (mx.log1p, np.log1p, (-0.5, 9), 8), "Sin": (mx.sin, np.sin, (-9, 9), 4),
    "Sinh": (mx.sinh, np.sinh, (-9, 9), 4), "Tan": (mx.tan, np.tan, (-1.4, 1.4), 4),
    "Tanh": (mx.tanh, np.tanh, (-9, 9), 4), "Rsqrt": (mx.rsqrt, lambda x: 1 / np.sqrt(x), (0.01, 50), 4),
    "Sigmoid": (mx.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (-9, 9), 8),
}  # fmt: skip


def function(kernel: str, dtype: Any) -> Trial:
    of, exactly, (low, high), units = FUNCTIONS[kernel]
    x = np.linspace(low, high, 513).astype(dtype)

    def bound() -> tuple[Array, Array]:
        exact = exactly(wide(x))
        # Near a zero of the function the error is that of its argument's reduction.
        error = units * 2 * U32 * np.maximum(np.abs(exact), 0.25)
        if kernel == "Expm1":
            # MLX's expm1f.h takes log(2) for 0.693145752, which is 1.43e-6 short, once for every halving.
            error = error + 1.4287e-6 * np.abs(np.rint(wide(x) / np.log(2))) * np.exp(wide(x))
        # In f16 MLX's CPU rounds each step: a square root, an exponential, a sum, a quotient.
        return exact, error + 3 * rounding(exact, dtype) * (dtype != F32)

    reason = f"{units} units in the last place of f32 from the C library's function, and the result's roundings"
    return unary(kernel, of, x, bound=bound, reason=reason)


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ARITHMETIC: dict[str, Of] = {
    "Add": mx.add, "Subtract": mx.subtract, "Multiply": mx.multiply, "Maximum": mx.maximum, "Minimum": mx.minimum,
}  # fmt: skip
COMPARISONS: dict[str, Of] = {
    "Equal": mx.equal, "NotEqual": mx.not_equal, "Greater": mx.greater, "GreaterEqual": mx.greater_equal,
    "Less": mx.less, "LessEqual": mx.less_equal,
}  # fmt: skip
BITWISE: dict[str, Of] = {
    "BitwiseAnd": mx.bitwise_and, "BitwiseOr": mx.bitwise_or, "BitwiseXor": mx.bitwise_xor,
    "LeftShift": mx.left_shift, "RightShift": mx.right_shift,
}  # fmt: skip
FORMS = ("g1", "g2", "g3", "gn2", "g1large", "g2large", "g3large", "gn4large")
EXACT: dict[str, Of] = {"Abs": mx.abs, "Negative": mx.negative, "Square": mx.square, "Sign": mx.sign}
ROUNDED: dict[str, Of] = {"Ceil": mx.ceil, "Floor": mx.floor, "Round": mx.round, "Sqrt": mx.sqrt}


def divmod_(a: Any, b: Any) -> Any:
    return mx.stack(mx.divmod(a, b))


def trials() -> list[Trial]:
    made = [arange(t) for t in ("uint8", "int16", "int32", "int64", F32, F16, BF16)]
    made += [binary(k, of, t) for k, of in ARITHMETIC.items() for t in ("int8", "uint16", "int32", "int64", *FLOATS)]
    made += [binary("Divide", mx.divide, t) for t in FLOATS]
    made += [binary(k, of, t, result=bool) for k, of in COMPARISONS.items() for t in ("int32", F16, BF16)]
    made += [binary("LogicalAnd", mx.logical_and, bool), binary("LogicalOr", mx.logical_or, bool)]
    made += [binary(k, of, t) for k, of in BITWISE.items() for t in ("int32", "uint8")]
    made += [binary("Remainder", mx.remainder, t) for t in ("int32", "uint8", F32)]
    made += [binary("Power", mx.power, "int32"), binary("Add", mx.add, F16, 70_001), binary("Add", mx.add, "complex64")]
    made += [binary_view(p, "Subtract", mx.subtract, t) for p in FORMS for t in (F32, "int16")]
    made += [binary_view(p, "DivMod", divmod_, "int32") for p in ("g1", "g2", "g3", "gn2")]
    rows = ("ss", "sv", "vs", "vv", "svn", "vsn", "vvn", "sv2", "vs2", "vv2")
    made += [flat_pair(p, "Multiply", mx.multiply, F16) for p in rows]
    made += [flat_pair(p, "DivMod", divmod_, "int32") for p in rows]
    for kernel, of in EXACT.items():
        made += [unary(kernel, of, drawn(t, 77)) for t in ("int8", "int32", *FLOATS)]
    for kernel, of in ROUNDED.items():
        made += [unary(kernel, of, drawn(t, 77, positive=kernel == "Sqrt")) for t in FLOATS]
    made += [unary("BitwiseInvert", mx.bitwise_invert, drawn("int32", 77))]
    made += [unary("LogicalNot", mx.logical_not, drawn(bool, 77)), unary("Negative", mx.negative, drawn(F16, 65_537))]
    made += [unary("Conjugate", mx.conjugate, drawn("complex64", 33))]
    made += [unary("Real", mx.real, drawn("complex64", 33), F32), unary("Imag", mx.imag, drawn("complex64", 33), F32)]
    made += [unary("ToFP8", mx.to_fp8, normal(t, 200, scale=50), "uint8") for t in FLOATS]
    codes = np.arange(256, dtype=np.uint8)
    for t, of_type in ((F32, mx.float32), (F16, mx.float16), (BF16, mx.bfloat16)):
        made.append(unary("FromFP8", lambda x, to=of_type: mx.from_fp8(x, dtype=to), codes, t))
    made += [unary_view(p, "Negative", mx.negative, F32) for p in ("v2", "gn1", "gn4large")]
    made += [function(kernel, t) for kernel in FUNCTIONS for t in (F32, F16)]
    made += [select(p, F32) for p in ("v", "sv", "vs", "vn", "svn", "vsn", "v2", "sv2", "vs2", *FORMS)]
    made += [select("v", t) for t in ("bool", "uint8", "int64", BF16, "complex64")]
    made += [copy(p, F32, "int32") for p in ("s", "v", "sn", "vn", "s2", "v2")]
    made += [copy(p, F32, F16) for p in FORMS]
    made += [copy(f"g{p}", "int16", "int16") for p in FORMS]
    made += [copy(f"g{p}_dynamic", F32, F32) for p in ("g1", "g2", "g3", "gn2")]
    made += [copy("v", a, b) for a in ("bool", "uint8", "int64", F32, F16, BF16) for b in ("bool", "int32", F32, BF16)]
    return made
