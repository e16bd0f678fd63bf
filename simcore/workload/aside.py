"""Files of a directory that are left aside: how many, and what those are that a format knows by name."""

from __future__ import annotations

from collections.abc import Container

from simcore.diagnostics import printable
from simcore.units import plural
from simcore.workload.formats import format_of
from simcore.workload.formats.format import Format

# Of more the kind is not asked, of fewer kinds it is said.
_MOST_ASKED, _MOST_NAMED = 256, 5


class Aside:
    """count: how many files; known: those of a format that is known and not opened, by its name."""

    def __init__(self) -> None:
        self.count = 0
        self.known: dict[str, tuple[Format, list[str]]] = {}

    def add(self, name: str, head: bytes) -> None:
        """Leaves a file aside that begins with `head`."""
        self.count += 1
        if head and self.count <= _MOST_ASKED:
            known = format_of(head)
            if known is not None and known.kind == "workload" and known.read is None:
                self.known.setdefault(known.name, (known, []))[1].append(name)

    def add_all(self, other: Aside) -> None:
        """Leaves aside what `other` does."""
        self.count += other.count
        for kind, (known, names) in other.known.items():
            self.known.setdefault(kind, (known, []))[1].extend(names)

    def message(self, why: str) -> str:
        """Says of how many files of the directory what they are not, and what some of them are."""
        said = [f"{plural(self.count, 'other file')} of the directory left aside{why}"]
        said += [_told(names, known) for known, names in [*self.known.values()][:_MOST_NAMED]]
        more = len(self.known) - _MOST_NAMED
        if more > 0:
            said.append(f"{plural(more, 'more format')} not opened")
        return "; ".join(said)

    def instead(self, told: Container[str] = ()) -> list[str]:
        """What can be done with those that are known, a line each of some kinds. told: files of which it is
        said already.
        """
        lines = []
        for known, names in self.known.values():
            left = [name for name in names if name not in told]
            if left and known.instead:
                lines.append(f"{_told(left, known)}: {known.instead}")
        return lines[:_MOST_NAMED]


def _told(names: list[str], known: Format) -> str:
    """What one or more files are."""
    first, more = printable(names[0], 40), len(names) - 1
    if not more:
        return f"{first} is {known.name}"
    return f"{first} and {plural(more, 'other')} are each {known.name}"
