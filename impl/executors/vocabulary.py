"""What of Metal's language kernels may use here, read off the runtime's own headers."""

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from mlx_assay.impl.executors.toolchain import KERNEL_FLAGS, RUNTIME, toolchain

_TOKEN = re.compile(r"namespace (?P<space>\w+) \{|[{}]|(?<![\w.:>])(?P<name>[a-z]\w*)\s*(?=\()")
# Words that stand before a parenthesis at the depth of functions and are none, and functions that no kernel calls.
_NOT_FUNCTIONS = frozenset(
    {"static_assert", "sizeof", "operator", "constexpr", "diagnose_if", "declval", "os_log_default"}
)


def _preprocessed() -> str:
    compiler = toolchain()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "language.clcpp"
        source.write_text('#include "metal.h"\n')
        flags = (*compiler.clang, *compiler.target, *KERNEL_FLAGS, "-I", str(RUNTIME), "-E", "-P", str(source))
        return subprocess.run(flags, capture_output=True, text=True, check=True).stdout


@cache
def functions() -> dict[str, frozenset[str]]:
    """Names of the functions of metal, metal::precise and metal::fast. ToolchainError: no compiler to read with.

    The compiler's preprocessor reads, so that names which macros make are there.
    """
    found: dict[str, set[str]] = {}
    spaces: list[str] = []
    opened: list[int] = []
    depth = 0
    for token in _TOKEN.finditer(_preprocessed()):
        if token["space"]:
            spaces.append(token["space"])
            opened.append(depth)
        elif token["name"]:
            outside = depth == len(spaces) and spaces[:1] == ["metal"]
            if outside and token["name"] not in _NOT_FUNCTIONS and not token["name"].startswith("make_"):
                found.setdefault("::".join(spaces), set()).add(token["name"])
        depth += token[0].endswith("{")
        if token[0] == "}":
            depth -= 1
            if opened and opened[-1] == depth:
                opened.pop()
                spaces.pop()
    return {space: frozenset(names) for space, names in found.items()}
