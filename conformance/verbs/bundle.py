"""The verb `replay` on bundles: one is made of a case, or judged again."""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mlx_assay.conformance.bundling.archive import NoBundle, load
from mlx_assay.conformance.bundling.document import Bundle
from mlx_assay.conformance.bundling.packing import pack
from mlx_assay.conformance.bundling.rejudging import Rejudging, worst
from mlx_assay.conformance.bundling.rerun import MEMORY
from mlx_assay.conformance.capture.adoption import adopt
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.options import Options, output
from mlx_assay.conformance.process.implementation import Implementation, ImplementationError
from mlx_assay.conformance.process.seal import digests
from mlx_assay.conformance.quotation import passage, printable
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import EXIT_CODES
from mlx_assay.conformance.selection import replayed
from mlx_assay.conformance.verbs.refusal import Refusal, refusing
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE, INCOMPLETE
from mlx_assay.fixtures.case import Case
from mlx_assay.impl.executors import fidelity

SUFFIX = ".bundle"
MOST = 20
"""Bundles of one run: those of its first failing cases."""

SECONDS = 300.0
"""That bundles of one run may take together, beside the last."""

MOST_LINES = 8
"""Lines that are shown of why a case failed when it was bundled."""

Say = Callable[[str], object]


def place(name: str) -> Path:
    """Where a bundle is to be written; Refusal where that cannot be."""
    try:
        return output(name)
    except ValueError as error:
        raise Refusal(str(error)) from error


def make(
    path: Path, text: str, target: str | None, executor: str | None, limit: float, profile: str | None, say: Say = print
) -> None:
    """Writes the bundle of a case, judged once more for its record."""
    with refusing():
        case = replayed(text)
    try:
        with adopted(profile):
            with Implementation(target, executor, limit) as implementation:
                record = judge(case, implementation)
            content = pack(case, record, target, executor, limit)
        write(path, content)
    except ImplementationError as error:
        raise Refusal(str(error)) from error
    say(f"bundle: {path}")


@contextmanager
def adopted(profile: str | None) -> Iterator[None]:
    """The switches of a capture hold on the host executor, where one is named."""
    if profile is None:
        yield
        return
    before = adopt(profile)
    try:
        yield
    finally:
        fidelity.prefer(before)


def write(path: Path, content: bytes) -> None:
    """Whole, or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"{path} cannot be written: {error.strerror}", EXIT_INCOMPLETE) from error


def filename(case_id: str) -> str:
    """Of the bundle of a case: what can be read of its id, and a digest of all of it."""
    path = case_id.partition("?")[0]
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in path)[:80]
    return f"{readable}-{hashlib.sha256(case_id.encode()).hexdigest()[:12]}{SUFFIX}"


def folder(name: str) -> Path:
    """A folder for bundles, made where it is not there; Refusal where it cannot be."""
    path = Path(name).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"Expected a folder for bundles but got {name!r}: {error.strerror}") from error
    return path


def make_all(records: Sequence[Record], options: Options, path: Path, say: Say) -> None:
    """Bundles of the first failing cases of a run, as many as MOST and SECONDS allow."""
    failing = [record for record in records if not record.conforms and record.verdict not in INCOMPLETE]
    until, made = time.monotonic() + SECONDS, 0
    for record in failing[:MOST]:
        if time.monotonic() > until:
            break
        case = Case.parse(record.id)
        try:
            with adopted(options.profile):
                content = pack(case, record, options.implementation, options.executor, options.limit)
        except (Refusal, ImplementationError) as error:
            say(f"no bundle of {printable(record.id)}: {printable(str(error))}")
            continue
        write(path / filename(record.id), content)
        made += 1
    if failing:
        say(f"bundles: {made} of {len(failing)} failing cases in {path}")


def judge_again(name: str, launching: bool, limit: float, say: Say = print) -> int:
    """Judges a bundle again and tells which answers agree; the exit code. Kernels are run with `launching` alone."""
    try:
        bundle, pool = load(Path(name))
    except NoBundle as error:
        raise Refusal(printable(str(error))) from error

    def told(text: str) -> None:
        say(passage(text))

    for line in portrait(bundle):
        told(line)
    rejudging = Rejudging(bundle, pool, limit if launching else 0.0, told)
    with bounded():
        outcome = rejudging.run()
    launched = any(each.launches for subcase in bundle.subcases for each in subcase.rounds)
    if launching and not launched:
        told("no kernel was run again: the bundle tells of no launch")
    if not launching and launched:
        told(
            "kernels were not run: --run-kernels runs them, in a process of its own; their text is code from the bundle"
        )
    told("; ".join([outcome, *(f"{what}: {worst(found)}" for what, found in rejudging.found.items())]))
    return EXIT_CODES[outcome]


@contextmanager
def bounded() -> Iterator[None]:
    """On Linux this process gets no more memory than MEMORY: a bundle's numbers may ask an oracle for any size."""
    if sys.platform != "linux":
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MEMORY if soft == resource.RLIM_INFINITY else min(soft, MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def portrait(bundle: Bundle) -> list[str]:
    """What a bundle says of itself."""
    environment, suite = bundle.environment, bundle.suite
    same = (suite.fixtures, suite.judge) == digests()
    kernels = ", ".join(dict.fromkeys(kernel.name for kernel in bundle.kernels)) or "none"
    left_out = [f"  left out for want of room: {', '.join(bundle.left_out)}"] if bundle.left_out else []
    return [
        bundle.case,
        f"  {bundle.why}",
        f"  bundled {bundle.made}: {bundle.verdict.value}; {bundle.implementation.name} on {bundle.executor.name}, "
        f"{environment.device_class or environment.device}, mlx {environment.packages.get('mlx', 'unknown')}",
        f"  by mlx-assay {suite.version}, {'this suite, file by file' if same else 'a suite with other files'}",
        f"  kernels: {kernels}",
        *left_out,
        *(f"  {line.strip()}" for line in bundle.message.splitlines()[:MOST_LINES]),
    ]
