"""The program that asks one release of MLX: `python -I probe.py FOLDER ORACLES`, in that release's environment.

Reads FOLDER/inputs.json and inputs.bin, writes outputs.bin and, last, outputs.json (see exchange.py). It stands alone:
of this project it imports the oracle of stock MLX, by the folder that it is given, and nothing of conformance.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

MESSAGE_LIMIT = 300
PRINTED_DIGITS = 7
"""Digits of a constant in the text of a compiled graph, to MLX 0.32.2."""


def provide(oracles: str) -> Any:
    """The oracle of stock MLX out of its folder, whatever is installed in this environment."""
    for name, path in (("mlx_assay", []), ("mlx_assay.oracles", [oracles])):
        package = ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package
    return importlib.import_module("mlx_assay.oracles.stock_mlx")


def operations(stock: Any) -> dict[str, Callable[..., dict[str, Any]]]:
    """Each operation as a function of named arrays and numbers that gives named arrays; "result" is compared."""
    import mlx.core as mx

    @cache
    def compiled(cap: float) -> Any:
        return mx.compile(lambda x: mx.tanh(x / cap) * cap, shapeless=True)

    def plain(function: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
        return lambda **given: {"result": stock.to_numpy(function(*(stock.to_mlx(array) for array in given.values())))}

    def oracle(name: str) -> Callable[..., dict[str, Any]]:
        return lambda **given: {"result": getattr(stock, name)(**given)}

    def normalized(logits: Any) -> dict[str, Any]:
        return {"result": stock.normalized_argmax(logits), "lse": stock.logsumexp(logits)}

    def softcap(x: Any, cap: float) -> dict[str, Any]:
        printed = float(f"{cap:.{PRINTED_DIGITS}g}")
        given = {"result": stock.to_numpy(compiled(cap)(stock.to_mlx(x)))}
        return given | {"exact": stock.logit_softcap(x, cap), "printed": stock.logit_softcap(x, printed)}

    return {
        **{name: oracle(name) for name in ("logsumexp", "argmax_given", "logit_softcap", "apply_token_bitmask")},
        "normalized_argmax": normalized,
        "compiled_logit_softcap": softcap,
        "argmax": plain(lambda x: mx.argmax(x, axis=-1)),
        "sum_rows": plain(lambda x: mx.sum(x, axis=-1)),
        "sum_columns": plain(lambda x: mx.sum(x, axis=0)),
        "sum_all": plain(mx.sum),
        "tanh": plain(mx.tanh),
        "exp": plain(mx.exp),
        "divide": plain(mx.divide),
    }


def arguments(described: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Arrays out of the file's bytes, and numbers."""
    import numpy as np
    from ml_dtypes import bfloat16

    # Hexadecimal, since JSON knows neither NaN nor infinities.
    given: dict[str, Any] = {}
    for name, (dtype, shape, offset) in described["arrays"].items():
        kind = np.dtype(bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        given[name] = np.frombuffer(content, kind, count, offset).reshape(shape).copy()
    return given | {name: float.fromhex(number) for name, number in described["numbers"].items()}


def answer(function: Callable[..., dict[str, Any]], given: dict[str, Any], out: Any) -> dict[str, Any]:
    """What one call gives, its bytes written to `out`, or the exception that it raises."""
    try:
        results = function(**given)
    except Exception as error:
        return {"fault": f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT]}
    arrays = {}
    for name, result in results.items():
        arrays[name] = (str(result.dtype), result.shape, out.tell())
        out.write(result.tobytes())
    return {"arrays": arrays}


def main(folder: Path, oracles: str) -> None:
    """Answers every input in order; the file that says so appears whole, or not at all."""
    stock = provide(oracles)
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    known = operations(stock)
    asked = json.loads((folder / "inputs.json").read_text())
    content = (folder / "inputs.bin").read_bytes()
    answers = []
    with (folder / "outputs.bin").open("wb") as out:
        for described in asked["inputs"]:
            # The last line of a process that crashed names what it was asked.
            print(described["operation"], described["name"], file=sys.stderr, flush=True)
            answers.append(answer(known[described["operation"]], arguments(described, content), out))
    told = {"release": version("mlx"), "device": mx.default_device().type.name, "answers": answers}
    part = folder / "outputs.part"
    part.write_text(json.dumps(told))
    os.replace(part, folder / "outputs.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
