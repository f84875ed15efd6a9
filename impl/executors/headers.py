"""The headers that MLX ships, for kernels that include them as MLX's own sources do.

They are MLX's own text, so that kernels see what they would on a Mac. A few places are changed, see _CHANGES:
bf16_math.h leaves the simdgroup operations of bfloat to the runtime and utils.h hands on its callers' lines, which tell
calls apart; complex.h is given a copy from the constant space, which clang does not make by itself.
"""

import importlib.util
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import repeat
from pathlib import Path

from mlx_assay.impl.executors import rewriting

KERNELS = Path("mlx/backend/metal/kernels")
INCLUDED = f'#include "{KERNELS.as_posix()}/utils.h"\n'
"""What MLX puts before the text of every custom kernel."""


_INCLUDE = re.compile(rf'^[ \t]*#[ \t]*include[ \t]+"{KERNELS.as_posix()}/([^"]+)"[^\n]*', re.M)
_NUMBER = "ASSAY_NUMBER"
_NUMBERED = re.compile(rf"\b{_NUMBER}\b")
_BFLOAT_SIMD = re.compile(r"^instantiate_metal_simd_(?:comm|reduction)_funcs\([^;]*;", re.M)
_SIMD_FUNCTION = re.compile(r"^inline [\w ]+?\s(simd_\w+)\(([^)]*)\) \{\n(.*?)^\}", re.M | re.S)
_SIMD_CALL = re.compile(r"(?:metal::)?\b(simd_\w+)\(")
_COMPLEX = re.compile(r"^struct complex_t \{$", re.M)
_COMPLEX_COPY = (
    "struct complex_t { template <class B, class = metal::enable_if_t<metal::is_same_v<B, complex_t>>> "
    "constexpr complex_t(const __constant B& other) : real(other.real), imag(other.imag) {} "
    "constexpr complex_t(const complex_t&) = default;"
)


_REDUCTION = ("atomic.h", "reduction/ops.h")
_GEMM = ("steel/gemm/gemm.h",)
_CONV = ("steel/conv/conv.h",)

PREREQUISITES: dict[str, tuple[str, ...]] = {
    "binary.h": ("binary_ops.h",),
    "binary_two.h": ("binary_ops.h",),
    "fp_quantized.h": (*_GEMM, "quantized_utils.h"),
    "gemv_masked.h": ("steel/utils.h",),
    "indexing/gather.h": ("indexing/indexing.h",),
    "indexing/gather_front.h": ("indexing/indexing.h",),
    "indexing/scatter.h": (*_REDUCTION, "indexing/indexing.h"),
    "indexing/scatter_axis.h": _REDUCTION,
    "quantized.h": (*_GEMM, "quantized_utils.h"),
    "reduce.h": _REDUCTION,
    "reduction/ops.h": ("atomic.h",),
    "reduction/reduce_all.h": _REDUCTION,
    "reduction/reduce_col.h": _REDUCTION,
    "reduction/reduce_init.h": _REDUCTION,
    "reduction/reduce_row.h": _REDUCTION,
    "searchsorted.h": ("sort.h",),
    "steel/attn/kernels/steel_attention.h": ("steel/attn/attn.h",),
    "steel/conv/kernels/steel_conv.h": _CONV,
    "steel/conv/kernels/steel_conv_3d.h": _CONV,
    "steel/conv/kernels/steel_conv_general.h": (*_CONV, "steel/conv/loaders/loader_general.h"),
    "steel/conv/loader.h": _CONV,
    "steel/conv/loaders/loader_channel_l.h": _CONV,
    "steel/conv/loaders/loader_channel_n.h": _CONV,
    "steel/conv/loaders/loader_general.h": _CONV,
    "steel/gemm/kernels/steel_gemm_fused.h": _GEMM,
    "steel/gemm/kernels/steel_gemm_gather.h": _GEMM,
    "steel/gemm/kernels/steel_gemm_masked.h": _GEMM,
    "steel/gemm/kernels/steel_gemm_segmented.h": _GEMM,
    "steel/gemm/kernels/steel_gemm_splitk.h": _GEMM,
    "ternary.h": ("ternary_ops.h",),
    "unary.h": ("unary_ops.h",),
}
"""Headers that MLX's JIT puts before one that does not include all that it uses."""


def unreachable(name: str) -> bool:
    """Whether a header needs the tensor operations of newer GPUs (Metal Performance Primitives): not offered."""
    return "nax" in name


def including(*names: str) -> str:
    """Header text that includes these headers of mlx/backend/metal/kernels, after what each needs."""
    wanted = dict.fromkeys(n for name in names for n in (*PREREQUISITES.get(name, ()), name))
    return "".join(f'#include "{(KERNELS / name).as_posix()}"\n' for name in wanted)


class HeadersMissing(RuntimeError):
    """The installed MLX has no kernel headers."""


@cache
def root() -> Path:
    """The include folder of the installed MLX. HeadersMissing: it ships none."""
    spec = importlib.util.find_spec("mlx")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (found := Path(place) / "include" / KERNELS / "utils.h").is_file():
            return Path(found.parents[len(KERNELS.parts)])
    raise HeadersMissing("the installed MLX ships no kernel headers: install mlx 0.29 or newer from PyPI")


@cache
def names() -> tuple[str, ...]:
    """Every header below mlx/backend/metal/kernels, by its path there."""
    folder = root() / KERNELS
    return tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.h")))


def _with_site(call: str, name: str) -> str:
    """A call's arguments with the caller's line."""
    if "shuffle_and_fill" in name and call.count(",") == 2:
        call += ", 32"
    return f"{call}, int(site)"


def _hand_on_sites(text: str) -> str:
    """Functions `simd_*` that call others take the caller's line as their last argument and hand it on."""

    def patched(match: re.Match[str]) -> str:
        body, out, at = match[3], [], 0
        for call in _SIMD_CALL.finditer(body):
            end = rewriting.closing(body, call.end(), "(", ")") - 1
            inner = body[call.end() : end]
            out += [body[at : call.end()], _with_site(inner, call[1])]
            at = end
        # Lines before the body stay as they are: only the parameter list grows.
        head = match[0][: match.start(3) - match.start()]
        head = head.replace(f"({match[2]})", f"({match[2]}, assay::Site site = assay::Site(__builtin_LINE()))")
        return f"{head}{''.join(out)}{body[at:]}}}"

    return _SIMD_FUNCTION.sub(patched, text)


def _without_simd(text: str) -> str:
    return _BFLOAT_SIMD.sub(lambda m: "\n" * m[0].count("\n"), text)


# Where address spaces take part, clang has no operator for a step of a pointer by one of MLX's integral constants, and
# no function for a template's argument that points to one. And it deduces nothing from an alias of an alias.
_STEP = re.compile(r"\b(src|dst) ([+-]=) ([^;]*\bstr_[xy]\b[^;]*);")
_DEDUCED = re.compile(r"(?<== )typename metal::vec<(?=U,)")
_FUNCTION_ARGUMENT = re.compile(r"\bRadixFunc<T> (?=\w+\s*>)")

_CHANGES: dict[str, Callable[[str], str]] = {
    "bf16_math.h": _without_simd,
    "utils.h": _hand_on_sites,
    "complex.h": lambda text: _COMPLEX.sub(_COMPLEX_COPY, text),
    "fft.h": lambda text: _FUNCTION_ARGUMENT.sub("auto ", text),
    # The branch that is not taken gives a bfloat to an integer, which here is said explicitly.
    "sort.h": lambda text: text.replace("if (ARG_SORT)", "if constexpr (ARG_SORT)"),
    "steel/attn/mma.h": lambda text: _DEDUCED.sub("assay::native<", _STEP.sub(r"\1 \2 assay::step(\3);", text)),
}


@cache
def translated(name: str) -> str:
    """The text of one header below mlx/backend/metal/kernels as C++ for OpenCL, line for line.

    Its threadgroup variables are numbered by _NUMBER, to be replaced where it is included.
    """
    text = (root() / KERNELS / name).read_text()
    return rewriting.rewrite(_CHANGES.get(name, str)(text), repeat(_NUMBER), classes=True)


def line(file: str, number: int = 1) -> str:
    """What makes the compiler speak of a text's own lines."""
    return f'#line {number} "{file}"\n'


def expand(text: str, numbers: Iterator[int], seen: set[str], file: str = "") -> str:
    """A translated text with MLX's headers, translated, in the place of its `#include`s, each once.

    `numbers` tells threadgroup variables apart, `seen` holds the headers that are there already. `file` is the name of
    the text, whose lines go on after a header.
    """
    out, at = [], 0
    for match in _INCLUDE.finditer(text):
        name = match[1]
        if name not in names():
            continue
        out.append(text[at : match.start()])
        at = match.end()
        if name in seen:
            continue
        seen.add(name)
        place = (KERNELS / name).as_posix()
        inner = _NUMBERED.sub(lambda _: str(next(numbers)), translated(name))
        out += [line(place), expand(inner, numbers, seen, place), "\n"]
        if file:
            out.append(line(file, text.count("\n", 0, at) + 2).rstrip("\n"))
    return "".join(out) + text[at:]
