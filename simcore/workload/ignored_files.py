"""Files of a directory that are ignored: how many, and which of them are of a known format."""

from __future__ import annotations

from collections.abc import Container

from simcore.diagnostics import printable
from simcore.units import plural
from simcore.workload.formats import format_of
from simcore.workload.formats.format import Format

# The format is found of the first files only, and so many formats are listed.
_MOST_SNIFFED, _MOST_LISTED = 256, 5


class IgnoredFiles:
    """The ignored files of a directory.

    count: how many there are. by_format: those of a format that is known and not opened, by its name.
    """

    def __init__(self) -> None:
        self.count = 0
        self.by_format: dict[str, tuple[Format, list[str]]] = {}

    def add(self, name: str, head: bytes) -> None:
        """Counts a file that begins with `head`."""
        self.count += 1
        if head and self.count <= _MOST_SNIFFED:
            file_format = format_of(head)
            if file_format is not None and file_format.kind == "workload" and file_format.read is None:
                self.by_format.setdefault(file_format.name, (file_format, []))[1].append(name)

    def add_all(self, other: IgnoredFiles) -> None:
        """Counts the files of `other`."""
        self.count += other.count
        for kind, (file_format, names) in other.by_format.items():
            self.by_format.setdefault(kind, (file_format, []))[1].extend(names)

    def message(self, why: str) -> str:
        """Returns how many files of the directory were ignored and why, and the format of some of them."""
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
        """Returns what can be done with files of known formats, a line for each of some formats.

        reported: names of files that were reported already.
        """
        lines = []
        for file_format, names in self.by_format.values():
            left = [name for name in names if name not in reported]
            if left and file_format.instead:
                lines.append(f"{_describe_files(left, file_format)}: {file_format.instead}")
        return lines[:_MOST_LISTED]


def _describe_files(names: list[str], file_format: Format) -> str:
    """Returns what one or more files are, in words."""
    first, more = printable(names[0], 40), len(names) - 1
    if not more:
        return f"{first} is {file_format.name}"
    return f"{first} and {plural(more, 'other')} are each {file_format.name}"
