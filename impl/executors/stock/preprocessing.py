"""Metal text through the preprocessor, to be read: MLX's headers put in, macros expanded."""

import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from mlx_assay.impl.executors import headers
from mlx_assay.impl.executors.objects import CompilationError
from mlx_assay.impl.executors.toolchain import RUNTIME, toolchain

_METAL = ("-D__METAL__=1", "-D__METAL_VERSION__=320")


@lru_cache(maxsize=64)
def preprocess(text: str) -> str:
    """The text with its includes and macros expanded. CompilationError: what the preprocessor said.

    `<metal_...>` headers are the runtime's own and expand to nothing here.
    """
    with tempfile.TemporaryDirectory() as work:
        for path in RUNTIME.glob("metal_*"):
            (Path(work) / path.name).touch()
        command = (*toolchain().clang, "-E", "-x", "c++", "-nostdinc", "-undef", *_METAL)
        command += ("-I", work, "-I", str(headers.root()), "-")
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompilationError(done.stderr.strip())
    return done.stdout
