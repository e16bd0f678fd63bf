"""Links in words."""

from __future__ import annotations


def link_words(source: int, target: int) -> str:
    """`rank 3 to rank 4`, `rank 3 to its switch`; a switch is a negative number."""
    if source < 0:
        return f"its switch to rank {target}"
    return f"rank {source} to its switch" if target < 0 else f"rank {source} to rank {target}"
