"""Kernels that count as compute though their names contain a collective, and the option that changes it."""

from __future__ import annotations

import re
from collections import Counter

from simcore.diagnostics import Diagnostic, printable
from simcore.kernel_names import short_name
from simcore.kineto.libraries import collective_in_name, identifier_of
from simcore.shell_words import quote_word

# At most so many names are listed one by one.
_MOST_LISTED = 4
# Characters of a name that the suggested pattern has.
_MOST_CHARACTERS = 100


class AmbiguousKernels:
    """The names of such kernels, and how many kernels have each."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        """Counts a kernel."""
        self._counts[name] += 1

    def make_diagnostics(self, path: str) -> list[Diagnostic]:
        """Returns the note on them; none where there are none. It has no count, so that ranks with the same
        kernels share one note.
        """
        counts: Counter[str] = Counter()
        names: dict[str, str] = {}
        for name, count in self._counts.items():
            pattern = _pattern_of(name)
            counts[pattern] += count
            names.setdefault(pattern, short_name(identifier_of(name), 60))
        if not counts:
            return []
        most = sorted(pattern for pattern, _ in counts.most_common(_MOST_LISTED))
        left = len(counts) - len(most)
        listed = ", ".join(names[pattern] for pattern in most) + (f" and {left} more" if left else "")
        message = (
            f"counted as compute, though the names say a collective: {listed}; "
            f"--comm-names {quote_word('|'.join(most))} counts {'those named' if left else 'them'} as "
            "communication"
        )
        return [Diagnostic("note", "collective-by-name", message, path)]


def _pattern_of(name: str) -> str:
    """Returns a regular expression that finds a kernel by its name, without its namespaces where that is
    enough.
    """
    identifier = identifier_of(name).replace("(anonymous namespace)::", "")
    last = identifier.rpartition("::")[2]
    return printable(
        re.escape((last if collective_in_name(last) else identifier)[:_MOST_CHARACTERS]), 4 * _MOST_CHARACTERS
    )
