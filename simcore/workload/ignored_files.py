"""Files of a directory that are left aside: how many, and what those are that a format knows by name."""

from __future__ import annotations

from collections.abc import Container

from simcore.diagnostics import printable
from simcore.units import plural
from simcore.workload.formats import format_of
from simcore.workload.formats.format import Format

# Of more the kind is not asked, of fewer kinds it is said.
_MOST_SNIFFED, _MOST_LISTED = 256, 5


class IgnoredFiles:
    """count: how many files; known: those of a format that is known and not opened, by its name."""

    def __init__(self) -> None:
        self.count = 0
        self.by_format: dict[str, tuple[Format, list[str]]] = {}

    def add(self, name: str, head: bytes) -> None:
        """Leaves a file aside that begins with `head`."""
        self.count += 1
        if head and self.count <= _MOST_SNIFFED:
            file_format = format_of(head)
            if file_format is not None and file_format.kind == "workload" and file_format.read is None:
                self.by_format.setdefault(file_format.name, (file_format, []))[1].append(name)

    def add_all(self, other: IgnoredFiles) -> None:
        """Leaves aside what `other` does."""
        self.count += other.count
        for kind, (file_format, names) in other.by_format.items():
            self.by_format.setdefault(kind, (file_format, []))[1].extend(names)

    def message(self, why: str) -> str:
        """Says of how many files of the directory what they are not, and what some of them are."""
        parts = [f"{plural(self.count, 'other file')} of the directory left aside{why}"]
        parts += [
            _describe_files(names, file_format)
            for file_format, names in [*self.by_format.values()][:_MOST_LISTED]
        ]
        more = len(self.by_format) - _MOST_LISTED
        if more > 0:
            parts.append(f"{plural(more, 'more format')} not opened")
        return "; ".join(parts)

    def suggestions(self, reported: Container[str] = ()) -> list[str]:
        """What can be done with those that are known, a line each of some kinds. told: files of which it is
        said already.
        """
        lines = []
        for file_format, names in self.by_format.values():
            left = [name for name in names if name not in reported]
            if left and file_format.instead:
                lines.append(f"{_describe_files(left, file_format)}: {file_format.instead}")
        return lines[:_MOST_LISTED]


def _describe_files(names: list[str], file_format: Format) -> str:
    """What one or more files are."""
    first, more = printable(names[0], 40), len(names) - 1
    if not more:
        return f"{first} is {file_format.name}"
    return f"{first} and {plural(more, 'other')} are each {file_format.name}"
