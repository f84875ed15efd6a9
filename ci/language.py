"""Writes docs/language.md: what kernels may use on the host executor, read off the runtime's own headers.

python ci/language.py [--check]: writes the page; with --check, exits 1 where it is not what would be written.
"""

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from mlx_assay.impl.executors import headers
from mlx_assay.impl.executors.signature import ATTRIBUTES
from mlx_assay.impl.executors.vocabulary import functions

PAGE = Path(__file__).parents[1] / "docs" / "language.md"
TEXT = Path(__file__).with_suffix(".md")
"""The page, with the names of lists in braces where they go."""

_GROUPS = (
    ("Lanes of a simdgroup", ("simd_", "simdgroup_")),
    ("Lanes of a quad", ("quad_",)),
    ("Atomics", ("atomic_",)),
    ("Barriers", ("threadgroup_barrier",)),
    ("Packing", ("pack_", "unpack_")),
)


def _listed(names: Iterable[str]) -> str:
    joined = ", ".join(f"`{name}`" for name in sorted(names))
    return textwrap.fill(joined, 120, break_long_words=False, break_on_hyphens=False)


def _grouped(names: frozenset[str]) -> str:
    left, parts = set(names), []
    for title, prefixes in _GROUPS:
        group = {name for name in left if name.startswith(prefixes)}
        left -= group
        parts.append((title, group))
    parts.insert(0, ("Numbers and vectors", left))
    return "\n\n".join(f"### {title}\n\n{_listed(group)}" for title, group in parts)


def page() -> str:
    """The page's text."""
    known = functions()
    if known["metal::precise"] != known["metal::fast"]:
        raise SystemExit(f"precise and fast differ by {sorted(known['metal::precise'] ^ known['metal::fast'])}")
    reached = [name for name in headers.names() if not headers.unreachable(name)]
    text = TEXT.read_text()
    lists = {
        "functions": _grouped(known["metal"]),
        "precise": _listed(known["metal::precise"]),
        "attributes": _listed(ATTRIBUTES),
        "reachable": _listed(reached),
        "unreachable": _listed(name for name in headers.names() if headers.unreachable(name)),
    }
    for name, listed in lists.items():
        text = text.replace(f"{{{name}}}", listed)
    return text


def main() -> int:
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text() != page())
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
