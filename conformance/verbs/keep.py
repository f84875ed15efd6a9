"""Keeping a find: from a candidate file that exploration wrote to a case that is replayed for ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.record import replay_command
from mlx_assay.fixtures import found
from mlx_assay.fixtures.found import Find

FOLDER = Path(found.__file__).parent / found.FOLDER


def keep(path: str | Path, why: str, issue: str = "", folder: Path = FOLDER) -> str:
    """Copies a candidate among the finds of mlx_assay.fixtures, under its digest, with the reason and an issue's link.

    Returns a text for a person: where it was kept, and how its case is replayed. Raises ValueError for a file that is
    no find of a known operation, for an empty reason, and for an input that is kept already.
    """
    find = read(Path(path))
    check(find, why, folder)
    return put(find, why, issue, folder)


def check(find: Find, why: str, folder: Path = FOLDER) -> None:
    """ValueError where a find has no reason to be kept, or is kept already."""
    if not why.strip():
        raise ValueError("Expected why this find is worth keeping, in one sentence, but got an empty text")
    if (target := folder / find.filename).exists():
        raise ValueError(f"Expected a find that is not kept yet but {target} holds the same input")


def put(find: Find, why: str, issue: str = "", folder: Path = FOLDER) -> str:
    """Writes a checked find and returns the text for a person."""
    kept = replace(find, why=why.strip(), issue=issue.strip())
    folder.mkdir(exist_ok=True)
    target = folder / find.filename
    target.write_bytes(kept.encoded())
    (case,) = kept.kind().cases("quick")
    return f"Kept as {target}\n{replay_command(case.id)}"


def read(path: Path) -> Find:
    """A candidate, held against the contract of its operation; ValueError names the file and what is wrong with it."""
    try:
        find = Find.decoded(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: Expected a file to read but: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    contract = contracts().get(find.operation)
    if contract is None:
        raise ValueError(f"{path}: Expected an operation of {', '.join(contracts())} but got {find.operation!r}")
    if find.dtype not in contract.dtypes:
        raise ValueError(f"{path}: Expected a dtype of {', '.join(contract.dtypes)} but got {find.dtype!r}")
    if tuple(find.arguments) != contract.parameters:
        raise ValueError(f"{path}: Expected the arguments {contract.parameters} but got {tuple(find.arguments)}")
    return find
