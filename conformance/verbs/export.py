"""The action `fixtures export`: a release tarball and an npm package of the recorded vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlx_assay.conformance.regeneration.holding import hold_folder
from mlx_assay.conformance.regeneration.release import release
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_DIFFERS
from mlx_assay.fixtures.goldens.store import FOLDER

Say = Callable[[str], object]


def export(out: str, say: Say = print, root: Path = FOLDER) -> int:
    """Writes both files and says their digests; Refusal where a golden is damaged, orphaned or waits for review."""
    held = hold_folder(root)
    if held.state != "holds":
        raise Refusal("\n  ".join(("Nothing is exported:", *held.lines)), EXIT_DIFFERS)
    for path, digest in release(Path(out), root).items():
        say(f"{path}: sha256 {digest}")
    return 0
