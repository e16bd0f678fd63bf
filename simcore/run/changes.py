"""A change that somebody can make to a run, and which of many are worth it."""

from __future__ import annotations

from typing import Any

from simcore.parameters import Parameters, as_flags, flag_of
from simcore.records import Struct

# A gain below this share of the step, or of one change over another, is no reason to change anything.
WORTH = 0.001


class Change(Struct, frozen=True):
    """Other values of some fields of `Parameters`. words: what they are, "" where the flags say it."""

    fields: dict[str, Any]
    words: str = ""

    @property
    def flags(self) -> str:
        """The words of the command line that ask for it, a default too, which is said to be the change."""
        words = as_flags(Parameters(**self.fields))
        for field, value in self.fields.items():
            flag = flag_of(field)
            if value == flag.default and value not in (None, (), False):
                words += [flag.option, str(value)]
        return " ".join(words)

    def with_other(self, other: Change) -> Change:
        """Both at once."""
        words = ""
        if self.words or other.words:
            words = " and ".join(change.words or change.flags for change in (self, other))
        return Change(self.fields | other.fields, words)
