"""The command line: one parser, and a call for each verb."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.commands import (
    adapters,
    bench,
    capturing,
    cases,
    checking,
    comparing,
    gating,
    judging,
    machinery,
    mutating,
    references,
    releases,
    rendering,
    sums,
    sweeping,
    tensors,
)
from mlx_assay.conformance.commands.grammar import EXITS
from mlx_assay.conformance.reporting.outlet import patient
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

COMMANDS = (
    judging,
    adapters,
    rendering,
    comparing,
    gating,
    checking,
    cases,
    references,
    sums,
    tensors,
    releases,
    capturing,
    machinery,
    mutating,
    sweeping,
    bench,
)


def parser() -> argparse.ArgumentParser:
    """All verbs with their options."""
    top = argparse.ArgumentParser(
        prog="mlx-assay",
        description="Judges kernels case by case and bit by bit against independent references.",
        epilog=f"{EXITS}\nmlx-assay VERB --help shows examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="this suite's version, and MLX's")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for module in COMMANDS:
        module.add(verbs)
    return top


class _Version(argparse.Action):
    """Asks the installed distributions only where it is wanted."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        told = []
        for name in ("mlx-assay", "mlx"):
            try:
                told.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                told.append(f"{name} is not installed")
        print(", ".join(told))
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb and returns its exit code; every refusal is one message on stderr."""
    _open_closed_streams()
    given, behind = checking.split(sys.argv[1:] if argv is None else list(argv))
    top = parser()
    arguments, unknown = top.parse_known_args(given)
    if unknown:
        target = getattr(arguments, "target", None) if given[:1] == ["check"] else None
        hint = f": the program's own stand behind --, mlx-assay check {target} -- {' '.join(unknown)}" if target else ""
        top.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if behind:
        arguments.arguments = behind
    try:
        with patient() as lost, stopwatch.command(stopwatch.LOADED if argv is None else time.monotonic()):
            code = int(arguments.call(arguments))
    except Refusal as refusal:
        from mlx_assay.conformance.quotation import passage

        print(f"mlx-assay: {passage(str(refusal))}", file=sys.stderr)
        return refusal.code
    except KeyboardInterrupt:
        print("mlx-assay: interrupted", file=sys.stderr)
        return EXIT_INCOMPLETE
    except Exception as error:
        if isinstance(error, ImportError) and str(error.name).partition(".")[0] == "mlx":
            from mlx_assay.conformance.verbs.doctor import backend_mend

            print(f"mlx-assay: MLX cannot be imported ({error}): {backend_mend(str(error))}", file=sys.stderr)
            return EXIT_INCOMPLETE
        # Python would end with 1, which says that a case differs.
        traceback.print_exc()
        return EXIT_INCOMPLETE
    if lost:
        print(f"mlx-assay: standard output cannot be written: {lost[0]}", file=sys.stderr)
        return EXIT_INCOMPLETE
    return code


def _open_closed_streams() -> None:
    """What a shell closed (`>&-`) goes nowhere, lest the next pipe that is opened take its number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process


if __name__ == "__main__":
    sys.exit(main())
