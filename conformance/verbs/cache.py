"""The verb `cache`: where compiled kernels are kept, how much room they take, and how to remove them."""

from __future__ import annotations

import json

from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE

MIB = 1 << 20


def cache(clear: bool, as_json: bool) -> int:
    """Prints the cache's state, after removing its entries if asked to. Returns 0, or 3 where it cannot be used."""
    try:
        from mlx_assay.conformance.versions import environment
        from mlx_assay.impl.executors import cache as kept
    except (ImportError, OSError) as error:
        raise Refusal(
            f"The executors cannot be imported ({error}): mlx-assay doctor names what is broken", EXIT_INCOMPLETE
        ) from error
    problem = kept.problem()
    try:
        path, limit = kept.cache_directory(), kept.limit()
        folder = kept.shared()
    except (OSError, RuntimeError) as error:
        raise Refusal(str(problem or error), EXIT_INCOMPLETE) from error
    removed = folder.clear() if clear else 0
    entries = folder.entries()
    size = sum(entry.bytes for entry in entries)
    fetched = sorted((path / "metallib").glob("*.metallib"))
    made = {place: environment.size(place) for place in environment.kept()}
    if as_json:
        told = {"path": str(folder.path), "entries": len(entries), "bytes": size, "limit": limit, "removed": removed}
        told["fetched"] = {str(file): file.stat().st_size for file in fetched}
        told["environments"] = {str(place): taken for place, taken in made.items()}
        print(json.dumps(told | {"problem": problem and str(problem)}, indent=2))
    else:
        if clear:
            print(f"removed {removed} entries")
        print(f"{folder.path}: {len(entries)} entries, {size / MIB:.1f} of {limit / MIB:.0f} MiB")
        for file in fetched:
            print(f"{file}: fetched, {file.stat().st_size / MIB:.0f} MiB; not counted, delete it if it is not needed")
        for place, taken in made.items():
            print(f"{place}: environment, {taken / MIB:.0f} MiB; not counted, delete it if it is not needed")
        if problem:
            print(f"cannot be used: {problem}")
    return EXIT_INCOMPLETE if problem else EXIT_CONFORMS
