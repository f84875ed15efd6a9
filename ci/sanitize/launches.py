"""What runs under compute-sanitizer: the kernels named on the command line, each between two lines that say so.

python ci/sanitize/launches.py faulty|sound|built-in NAME...
"""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "selftest"))

import mlx.core as mx
from checker.corpus import rows
from checker.launching import launched

from mlx_assay import impl
from mlx_assay.fixtures.kind import kinds
from mlx_assay.fixtures.tensor import Tensor, viewed
from mlx_assay.impl.executors import use

SUBCASES = 4
"""Of the first quick case of a kind, how many subcases run."""


def built_in(name: str) -> None:
    """The first subcases of a kind `operation/kind` of case."""
    operation, _, kind = name.partition("/")
    found = kinds()[operation, kind]
    case = next(iter(found.cases("quick")))
    for subcase in itertools.islice(found.subcases(case), SUBCASES):
        given = [_handed(value) if isinstance(value, Tensor) else value for value in subcase.arguments.values()]
        try:
            mx.eval(getattr(impl, operation)(*given))
        except (TypeError, ValueError):
            continue


def _handed(tensor: Tensor) -> mx.array:
    base = tensor.base
    plain = mx.array(base.view("uint16")).view(mx.bfloat16) if base.dtype.name == "bfloat16" else mx.array(base)
    return viewed(plain, tensor.steps, mx)


def sides() -> dict[str, dict[str, Callable[[], object]]]:
    """What can be run, by the first argument, by name."""
    corpus = list(rows())
    operations = [key for key in sorted(kinds()) if hasattr(impl, key[0]) and "softcap" not in key[0]]
    return {
        "faulty": {row.name: lambda row=row: launched(row.faulty) for row in corpus if row.faulty},
        "sound": {row.name: lambda row=row: launched(row.twin) for row in corpus},
        "built-in": {"/".join(key): lambda key=key: built_in("/".join(key)) for key in operations},
    }


def main(side: str, names: list[str]) -> None:
    """Runs them and tells what each came to. An error of the GPU ends the process: nothing after it would run."""
    launches = sides()[side]
    with use("cuda"):
        for name in names or launches:
            print(f"BEGIN {name}", flush=True)
            try:
                launches[name]()
            except (RuntimeError, ValueError) as error:
                told = str(error).strip().splitlines() or [""]
                print(f"RAISED {name} {told[0][:200]}", flush=True)
                if "cuda" in told[0].lower() and "failed" in told[0].lower():
                    return
            print(f"END {name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
