"""The two doors to a release: its CPU back end in a process of its own, and Apple's bitcode of its kernels in this."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mlx_assay.oracles
from mlx_assay.conformance.versions import environment, exchange
from mlx_assay.conformance.versions.exchange import Answer, Garbled
from mlx_assay.conformance.versions.inputs import Input

PROBE = Path(__file__).with_name("probe.py")
SECONDS = 600.0
"""What a release may take to answer everything."""

TICK_SECONDS = 0.2
"""How often a process is asked whether it should end."""

_KEPT = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OMP_NUM_THREADS")


class Shut(RuntimeError):
    """A release that cannot be asked through a door; the message says why."""


class Watch:
    """Who is told of each step, from any thread, and whether the comparison has been given up."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self._over = threading.Event()

    def give_up(self) -> None:
        """Has every door end soon."""
        self._over.set()

    def check(self) -> None:
        """Shut where the comparison has been given up."""
        if self._over.is_set():
            raise Shut("interrupted")


def cpu(release: str, inputs: Sequence[Input], watch: Watch) -> list[Answer]:
    """The answers of a release's CPU back end; Shut where its environment cannot be had, or fails twice."""
    try:
        place, done = environment.ready(release)
    except (environment.EnvironmentFault, OSError, RuntimeError) as error:
        raise Shut(str(error)) from error
    watch.tell(f"{release} cpu: environment {done}")
    try:
        return asked(environment.interpreter(place), release, inputs, environment.graphs(place), watch)
    except Shut as error:
        watch.check()
        if done != "kept":
            raise
        watch.tell(f"{release} cpu: {error}; its environment is made anew")
    try:
        place = environment.remake(release)
        return asked(environment.interpreter(place), release, inputs, environment.graphs(place), watch)
    except environment.EnvironmentFault as error:
        raise Shut(str(error)) from error


def asked(
    python: Path,
    release: str,
    inputs: Sequence[Input],
    graphs: Path | None = None,
    watch: Watch | None = None,
    seconds: float = SECONDS,
) -> list[Answer]:
    """What a Python that has a release of MLX answers; Shut where it fails, takes too long or answers nonsense.

    `graphs` is where its compiled graphs stay; by default they go with the process.
    """
    with tempfile.TemporaryDirectory(prefix="mlx-assay-versions-") as work:
        exchange.write(Path(work), inputs)
        # MLX keeps compiled graphs in TMPDIR by their names alone, which another build of a release may share.
        around = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"TMPDIR": str(graphs or work)}
        oracles = next(iter(mlx_assay.oracles.__path__))
        process = subprocess.Popen(
            [str(python), "-I", str(PROBE), work, oracles],
            env=around,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            said = _said(process, release, watch, seconds)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        if process.returncode:
            last = said.splitlines()[-1][-300:] if said else "nothing"
            raise Shut(f"MLX {release} ended with code {process.returncode}, and said last: {last}")
        try:
            return exchange.read(Path(work), len(inputs), release)
        except Garbled as error:
            raise Shut(f"MLX {release}: {error}") from error


def _said(process: subprocess.Popen[bytes], release: str, watch: Watch | None, seconds: float) -> str:
    """What a process says on standard error until it ends."""
    until = time.monotonic() + seconds
    while True:
        try:
            return process.communicate(timeout=TICK_SECONDS)[1].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            if watch:
                watch.check()
            if time.monotonic() > until:
                raise Shut(f"MLX {release} was not done in {seconds:.1f} s") from None


def metal(release: str, inputs: Sequence[Input], watch: Watch) -> list[Answer | None]:
    """What Apple's kernels of a release give here; None for operations that are not launched here.

    Shut: the kernels cannot be had.
    """
    from mlx_assay.oracles import stock_metal

    try:
        stock_metal.library(release)
    except ModuleNotFoundError as error:
        raise Shut(f"{error}: {stock_metal.REQUIRES[1]}, or ask by --door cpu alone") from error
    except ImportError as error:
        raise Shut(str(error)) from error
    watch.tell(f"{release} metal: kernels at hand")
    known = _kernels(release)
    answers = []
    for given in inputs:
        watch.check()
        answers.append(_answer(known[given.operation], given) if given.operation in known else None)
    return answers


def _answer(function: Callable[..., dict[str, np.ndarray]], given: Input) -> Answer:
    try:
        return Answer(function(**given.arrays, **given.numbers))
    except Exception as error:
        return Answer({}, f"{type(error).__name__}: {error}"[:300])


def _kernels(release: str) -> dict[str, Callable[..., dict[str, np.ndarray]]]:
    from mlx_assay.impl.executors.stock import dispatch, reduction
    from mlx_assay.oracles import stock_metal

    library = stock_metal.library(release)

    def oracle(name: str) -> Callable[..., dict[str, np.ndarray]]:
        return lambda **given: {"result": getattr(stock_metal, name)(**given, release=release)}

    def normalized(logits: np.ndarray) -> dict[str, np.ndarray]:
        lse = stock_metal.logsumexp(_floats(logits), release)
        return {"result": stock_metal.argmax_given(logits, lse, release), "lse": lse}

    def unary(name: str) -> Callable[..., dict[str, np.ndarray]]:
        return lambda x: {"result": dispatch.unary(library, name, x)}

    def columns(x: np.ndarray) -> dict[str, np.ndarray]:
        total: Any = reduction.reduce_columns(library, x[None])[0]
        return {"result": total}

    return {
        **{name: oracle(name) for name in ("argmax_given", "logit_softcap", "apply_token_bitmask")},
        "logsumexp": lambda logits: {"result": stock_metal.logsumexp(_floats(logits), release)},
        "normalized_argmax": normalized,
        "argmax": lambda x: {"result": dispatch.argmax(library, x)},
        "sum_rows": lambda x: {"result": reduction.reduce_rows(library, x.reshape(-1, x.shape[-1]))},
        "sum_columns": columns,
        "tanh": unary("Tanh"),
        "exp": unary("Exp"),
        "divide": lambda x, y: {"result": dispatch.binary(library, "Divide", x, y)},
    }


def _floats(logits: np.ndarray) -> np.ndarray:
    """Integer logits as MLX converts them before its logsumexp."""
    return logits.astype(np.float32) if logits.dtype.kind in "iu" else logits
