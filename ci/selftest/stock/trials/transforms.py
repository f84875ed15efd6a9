"""Fourier and Hadamard transforms."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock.library import StockLibrary, TextLibrary
from trials.trial import BF16, F16, F32, FLOATS, METAL, NAMES, U32, Array, Trial, normal, on_cpu, rounding, wide

RADICES = (13, 11, 8, 7, 6, 5, 4, 3, 2)
REASON = "log2(n) stages of complex products and sums, 8 u each, of the transform's 2-norm; twiddles from cos and sin"


def plan(n: int) -> list[int]:
    """How often each radix is used, as MLX chooses them."""
    tuned, steps, rest = n & (n - 1) == 0 and n < 512, [], n
    for radix in RADICES:
        steps.append(0)
        while rest > 1 and rest % radix == 0 and not (tuned and radix > 4):
            steps[-1] += 1
            rest //= radix
    assert rest == 1, f"{n} is no product of {RADICES}"
    return steps


def elements_a_thread(used: list[int]) -> int:
    """MLX's choice for the radices in use."""
    large = {11, 13} & set(used)
    if 7 in used and large:
        return 7
    if len(large) == 2:
        return 11
    if len(used) == 2 and large:
        return sum(used) // 2
    return used[min(len(used) - 1, 1)]


def _constants(n: int, size: int, inverse: bool, steps: list[int], rader: list[int], factor: int = 1) -> dict[str, Any]:
    used = sorted({r for r, s in zip(RADICES * 2, steps + rader, strict=True) if s})
    each = elements_a_thread(used)
    constants: dict[str, Any] = {"inv_": inverse, "is_power_of_2_": size & (size - 1) == 0, "elems_per_thread_": each}
    constants["rader_m_"] = n // factor
    constants |= {f"radix_{r}_steps_": s for r, s in zip(RADICES, steps, strict=True)}
    constants |= {f"rader_{r}_steps_": s for r, s in zip(RADICES, rader, strict=True)}
    return constants | {"use_bluestein_twiddle_table_": False}


def _used(library: RawLibrary, name: str, constants: dict[str, Any]) -> Any:
    """Bitcode keeps the constants that a kernel uses alone, and refuses others: they are left out one by one."""
    given = dict(constants)
    while True:
        try:
            return library.function(name, given)
        except ValueError as error:
            unknown = next((n for n in given if f"no function constant {n!r}" in str(error)), None)
            if unknown is None:
                raise
            del given[unknown]


def _error(exact: Array, n: int) -> Array:
    norm = np.sqrt((np.abs(exact) ** 2).sum(-1, keepdims=True))
    return np.broadcast_to(8 * np.ceil(np.log2(n)) * U32 * norm, exact.shape)


def fft(n: int, kind: str) -> Trial:
    """`kind`: "c2c", "inverse", "r2c" or "c2r"; Stockham where n is a product of radices, else Rader's or Bluestein's.

    Batches fill their threadgroups: in the last, partly filled one MLX 0.32's kernels write past the end of the output
    where the threads of a row hold more elements than it has (n = 62: 13 threads of 5).
    """
    real_in, real_out = kind == "r2c", kind == "c2r"
    inverse = kind in ("inverse", "c2r")
    rest, factor = n, 1
    for prime in (17, 31, 61, 47, 23, 59):
        if n % prime == 0:
            rest, factor = n // prime, prime
    bluestein = factor in (47, 23, 59)
    size = 1 << int(np.ceil(np.log2(2 * n - 1))) if bluestein else n
    steps = plan(size if bluestein else rest)
    rader = plan(factor - 1) if factor > 1 and not bluestein else [0] * 9
    together = max(256 // size, 1)
    batch = together * (2 if real_in or real_out else 1)
    signal = normal(F32, batch, n) if real_in or real_out else normal(F32, batch, 2 * n).view(np.complex64)
    x = np.fft.rfft(signal).astype(np.complex64) if real_out else signal
    of = {"c2c": mx.fft.fft, "inverse": mx.fft.ifft, "r2c": mx.fft.rfft, "c2r": lambda a: mx.fft.irfft(a, n)}[kind]
    exactly = {"c2c": np.fft.fft, "inverse": np.fft.ifft, "r2c": np.fft.rfft, "c2r": lambda a: np.fft.irfft(a, n)}[kind]
    memory = 1 << int(np.ceil(np.log2(together * size)))
    form = "bluestein_fft" if bluestein else "rader_fft" if factor > 1 else "fft"
    name = f"{form}_mem_{memory}_{'float' if real_in else 'float2'}_{'float' if real_out else 'float2'}"

    def run(library: RawLibrary) -> Array:
        constants = _constants(n, size, inverse, steps, rader, 1 if bluestein else factor)
        kernel = _used(library, name, constants)
        out = (
            np.zeros((batch, n), np.float32)
            if real_out
            else np.zeros((batch, n // 2 + 1 if real_in else n), np.complex64)
        )
        given: list[Any] = [x, out]
        if bluestein:
            k = np.arange(n)
            w_k = np.exp(-1j * np.pi * k.astype(np.float64) ** 2 / n).astype(np.complex64)
            w_q = np.zeros(size, np.complex64)
            w_q[: 2 * n - 1] = np.exp(1j * np.pi * np.arange(1 - n, n).astype(np.float64) ** 2 / n)
            given += [np.fft.fft(w_q).astype(np.complex64), w_k, np.int32(n), np.int32(size), np.int32(batch)]
        elif factor > 1:
            given += [*_rader(factor), np.int32(n), np.int32(batch), np.int32(factor)]
        else:
            given += [np.int32(n), np.int32(batch)]
        threads = -(-size // constants["elems_per_thread_"])
        groups = -(-batch // together)
        groups = -(-groups // 2) if real_in or real_out else groups
        kernel(given, grid=(groups, together, threads), threadgroup=(1, together, threads))
        return out

    def bound() -> tuple[Array, Array]:
        exact = exactly(wide(x) if real_in else x.astype(np.complex128))
        # Rader's and Bluestein's transforms are three of them, the second of more than twice the length.
        return exact, _error(exact, size) * (1 if factor == 1 else 8)

    return Trial("fft.h", name, f"n {n} {kind}", f"fft.{kind}", run, lambda: on_cpu(of, x), bound, REASON)


def _rader(factor: int) -> list[Array]:
    root = next(r for r in range(2, factor) if len({pow(r, i, factor) for i in range(factor - 1)}) == factor - 1)
    powers = np.array([pow(root, i, factor) for i in range(factor - 1)], np.int16)
    inverses = np.array([pow(root, -i, factor) for i in range(factor - 1)], np.int16)
    b_q = np.fft.fft(np.exp(-2j * np.pi * inverses.astype(np.float64) / factor)).astype(np.complex64)
    return [b_q, powers, inverses]


def four_step(n1: int, n2: int) -> Trial:
    """Columns of n1, then rows of n2."""
    n = n1 * n2
    x = normal(F32, 1, 2 * n).view(np.complex64)

    def step(library: RawLibrary, number: int, size: int, source: Array, out: Array) -> None:
        batch = n // size
        together = max(256 // size, min(4, 4096 // size), 1)
        memory = 1 << int(np.ceil(np.log2(together * size)))
        name = f"four_step_mem_{memory}_float2_float2_{number}_false"
        steps = plan(size)
        constants = _constants(size, size, False, steps, [0] * 9)
        threads = -(-size // constants["elems_per_thread_"])
        given = [source, out, np.int32(n1), np.int32(n2), np.int32(batch)]
        grid = (-(-batch // together), together, threads)
        _used(library, name, constants)(given, grid=grid, threadgroup=(1, together, threads))

    def run(library: RawLibrary) -> Array:
        between, out = np.zeros_like(x), np.zeros_like(x)
        step(library, 0, n1, x, between)
        step(library, 1, n2, between, out)
        return out

    def bound() -> tuple[Array, Array]:
        exact = np.fft.fft(x.astype(np.complex128))
        return exact, _error(exact, n)

    return Trial(
        "fft.h", "four_step_mem_256_float2_float2_0_false", f"n {n}", "fft.c2c", run,
        lambda: on_cpu(mx.fft.fft, x), bound, REASON,
    )  # fmt: skip


def twiddles() -> Trial:
    def run(library: RawLibrary) -> Array:
        out = np.zeros(584, np.complex64)
        library.function("generate_bluestein_twiddles")([out], grid=584, threadgroup=73)
        return out.reshape(1, -1)

    def angles() -> Array:
        index = np.arange(584)
        p = np.where(index < 8, 8, np.where(index < 72, 64, 512))
        k = np.where(index < 8, index, np.where(index < 72, index - 8, index - 72))
        return -2 * np.pi * k / (8 * p)

    def expected() -> Array:
        return (
            on_cpu(lambda a: mx.cos(a) + 1j * mx.sin(a), angles().astype(np.float32))
            .astype(np.complex64)
            .reshape(1, -1)
        )

    # The angle in f32 is rounded three times, its cosine and sine are the C library's.
    return Trial(
        "fft.h", "generate_bluestein_twiddles", "584", "exp(-2 pi i k / 8p)", run, expected,
        lambda: (np.exp(1j * angles()).reshape(1, -1), np.full((1, 584), 8 * U32 * 2)),
        "4 roundings of an angle below pi / 4 and of its functions",
    )  # fmt: skip


def hadamard(dtype: Any, n: int, rows: int = 3) -> Trial:
    """hadamard_n: a power of 2. MLX compiles it when it is asked for, with the sizes as template arguments."""
    x = normal(dtype, rows, n)
    radix, width = min(n, 16), 2 if n == 2 else 4
    arguments = (METAL[NAMES[x.dtype]], str(n), str(radix), str(width))

    def run(library: RawLibrary) -> Array:
        assert isinstance(library, StockLibrary)
        out = np.zeros_like(x)
        kernel = library.instantiate("hadamard.h", "hadamard_n", *arguments)
        kernel([x, out, np.float32(n**-0.5)], grid=(n // radix, rows, 1), threadgroup=(n // radix, 1, 1))
        return out

    def bound() -> tuple[Array, Array]:
        matrix = np.ones((1, 1))
        while len(matrix) < n:
            matrix = np.block([[matrix, matrix], [matrix, -matrix]])
        exact, size = wide(x) @ matrix / np.sqrt(n), np.abs(wide(x)).sum(-1, keepdims=True) / np.sqrt(n)
        stages = np.ceil(np.log2(n) / np.log2(radix)) + 2
        unit = 0.0 if dtype == F32 else rounding(np.ones(1), dtype)[0]
        # log2(n) sums in f32; between stages, and on the CPU at each sum, values are kept in the dtype.
        return exact, (np.log2(n) + 2) * (U32 + unit) * size + stages * unit * size

    return Trial(
        "hadamard.h", f"hadamard_n<{', '.join(arguments)}>", str(x.shape), "hadamard_transform", run,
        lambda: on_cpu(lambda a: mx.hadamard_transform(a), x), bound,
        "log2(n) sums in f32, and in 16 bits of values kept in the dtype between stages", doors="text",
    )  # fmt: skip


def hadamard_m(dtype: Any) -> Trial:
    """The outer factor of 12 x n: MLX writes its sums of rows into the text; here they come from a table."""
    m, n, rows = 12, 8, 2
    x = normal(dtype, rows, m * n)
    with mx.stream(mx.cpu):
        matrix = np.round(np.array(mx.hadamard_transform(mx.eye(m), scale=1.0))).astype(int).T
    sums = "".join(
        f"  t[{r}] = {' '.join(('+' if s > 0 else '-') + f' x[{c}]' for c, s in enumerate(row))};\n"
        for r, row in enumerate(matrix)
    )
    codelet = (
        f"METAL_FUNC void hadamard_radix_m(thread float *x) {{\n  float t[{m}];\n{sums}"
        f"  for (int i = 0; i < {m}; i++) x[i] = t[i];\n}}\n"
    )
    called = f"hadamard_m<{METAL[NAMES[x.dtype]]}, {n}, {m}, 4>"
    text = (
        '#include "mlx/backend/metal/kernels/utils.h"\n' + codelet + '#include "mlx/backend/metal/kernels/hadamard.h"\n'
        f'template [[host_name("m")]] [[kernel]] decltype({called}) {called};\n'
    )

    def run(library: RawLibrary) -> Array:
        out = np.zeros_like(x)
        TextLibrary(text).function("m")([x, out, np.float32(0.5)], grid=(n // 4, rows, 1), threadgroup=(n // 4, 1, 1))
        return out

    def bound() -> tuple[Array, Array]:
        given = wide(x).reshape(rows, m, n)
        exact = 0.5 * np.einsum("rc,bcn->brn", matrix, given).reshape(rows, -1)
        size = 0.5 * np.broadcast_to(np.abs(given).sum(1, keepdims=True), given.shape).reshape(rows, -1)
        return exact, m * U32 * size + 4 * rounding(size, dtype) * (dtype != F32)

    def expected() -> Array:
        return on_cpu(
            lambda a, h: (
                (0.5 * mx.einsum("rc,bcn->brn", h, a.astype(mx.float32).reshape(rows, m, n)))
                .reshape(rows, -1)
                .astype(a.dtype)
            ),
            x,
            matrix.astype(np.float32),
        )

    return Trial(
        "hadamard.h", called, str(x.shape), "0.5 * hadamard(12) @ x", run, expected, bound,
        "12 sums in f32 and the result's rounding", doors="text",
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [fft(n, k) for n in (8, 60, 128, 1001, 1024) for k in ("c2c", "inverse", "r2c", "c2r")]
    made += [fft(n, k) for n in (17, 62, 47, 59) for k in ("c2c", "r2c")]
    made += [four_step(64, 128), twiddles()]
    made += [hadamard(t, n) for t in FLOATS for n in (2, 16, 64, 1024)] + [hadamard_m(t) for t in (F32, F16, BF16)]
    return made
