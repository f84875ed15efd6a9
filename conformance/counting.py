"""Counting: a number and its noun, in one way everywhere."""

from __future__ import annotations


def counted(count: int, word: str, many: str = "") -> str:
    """`1 case`, `1,024 cases`; `many` is the plural where it is not the word with an s."""
    return f"{count:,} {word if count == 1 else many or word + 's'}"
