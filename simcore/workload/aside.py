"""Files of a directory that are left aside: how many, and what those are that a format knows by name."""

from __future__ import annotations

from collections.abc import Container

from simcore.diagnostics import printable
from simcore.units import plural
from simcore.workload.formats import format_of
from simcore.workload.formats.format import Format

# Of more the kind is not asked, of fewer it is said.
_MOST_ASKED, _MOST_NAMED = 64, 3


class Aside:
    """count: how many files; known: those of a format that is known and not opened, with their names."""

    def __init__(self) -> None:
        self.count = 0
        self.known: list[tuple[str, Format]] = []

    def add(self, name: str, head: bytes) -> None:
        """Leaves a file aside that begins with `head`."""
        self.count += 1
        if head and self.count <= _MOST_ASKED:
            known = format_of(head)
            if known is not None and known.kind == "workload" and known.read is None:
                self.known.append((name, known))

    def add_all(self, other: Aside) -> None:
        """Leaves aside what `other` does."""
        self.count += other.count
        self.known += other.known

    def message(self, why: str) -> str:
        """Says of how many files of the directory what they are not, and what some of them are."""
        files = plural(self.count, "other file")
        named = [f"{printable(name, 40)} is {known.name}" for name, known in self.known[:_MOST_NAMED]]
        more = len(self.known) - len(named)
        if more > 0:
            named.append(f"{more} more of formats that are not opened")
        return "; ".join([f"{files} of the directory left aside{why}", *named])

    def instead(self, told: Container[str] = ()) -> list[str]:
        """What can be done with those that are known, a line each of some of them. told: files of which it is
        said already.
        """
        return [
            f"{printable(name, 40)} is {known.name}: {known.instead}"
            for name, known in self.known
            if name not in told and known.instead
        ][:_MOST_NAMED]
