"""A section of a page: one subject, as lines of text and as keys of a JSON, of any run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

Subject = TypeVar("Subject", contravariant=True)


class Asked(NamedTuple):
    """What a page is asked for beside what all have. what_if: what would help; every_layer: all rows, or
    operations, in their table. everything: of a comparison, as long as it is; rows: how many of a table that
    gives way to others, None for all.
    """

    ascii_only: bool = False
    what_if: bool = False
    every_layer: bool = False
    everything: bool = False
    rows: int | None = None


class Section(Protocol[Subject]):
    """A module of this room: `lines` of nothing are no part of the page."""

    def lines(self, of: Subject, asked: Asked, /) -> Sequence[str]:
        """The lines of text, the first its title."""
        ...

    def values(self, of: Subject, asked: Asked, /) -> dict[str, Any]:
        """The keys of the JSON."""
        ...


def page(
    sections: Iterable[Section[Subject]], of: Subject, asked: Asked, rows: Mapping[Any, int] | None = None
) -> str:
    """The text of the sections that say something, a blank line between two. rows: of `asked`, of sections
    that give way.
    """
    parts = []
    for section in sections:
        limited = asked._replace(rows=rows[section]) if rows and section in rows else asked
        parts.append("\n".join(section.lines(of, limited)))
    return "\n\n".join(part for part in parts if part) + "\n"


def values(
    sections: Iterable[Section[Subject]], of: Subject, asked: Asked, first: Sequence[str]
) -> dict[str, Any]:
    """The keys of all sections. first: those that come first, in this order, whatever the order of the page;
    the others are in it.
    """
    found: dict[str, Any] = {}
    for section in sections:
        found |= section.values(of, asked)
    return {key: found[key] for key in dict.fromkeys((*first, *found)) if key in found}
