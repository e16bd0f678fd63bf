"""Why what was asked for cannot be: a value, a draft, or a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from simcore.parameters import Parameters
from tui.frame import cells
from tui.parameters.fields import FormField
from tui.session import Session

_LONGEST = 400
_NAME = re.compile(r"[a-z-]+")
# What a field is called where its value does not fit another.
_LABELS = {"micro-batches": "microbatches", "ranks": "world"}


class Refusal:
    """touched: the label of the field that was changed last; None when a file or a key changed several.

    What was said of a value is over with the draft that it was refused for: another one is simulated,
    and whether that can be is what the session says.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._value = self._file = ""
        self._draft: Parameters = session.draft
        self.touched: str | None = None

    def clear(self) -> None:
        """What was said is over; a draft that cannot be simulated still says so."""
        self._value = self._file = ""

    def of_value(self, reason: str) -> None:
        """The last value is none of its field."""
        self._value, self._draft = reason, self._session.draft

    def of_file(self, reason: str) -> None:
        """A file could not be read or written."""
        self._file = reason

    @property
    def value(self) -> str:
        """Why the last value is none of its field, as it was said."""
        return self._value if self._draft is self._session.draft else ""

    @property
    def words(self) -> str:
        """Why the last value or the draft cannot be, in one line; empty when they can."""
        return cells((self.value or self._session.error).replace("\n", "; "), _LONGEST)

    def place(self, fields: Sequence[FormField], changed: Mapping[str, str]) -> int:
        """Of which of the fields the value cannot be: -1 for none, or for what is of none of them.

        changed: label and value of the fields that are not as opened. What names a flag or a file is of
        the field that has it, whichever was touched since; what names several degrees, of the one that was
        touched, or changed.
        """
        words = self.words
        if not words or self.touched is None:
            return -1
        named = [index for index, field in enumerate(fields) if field.is_named_by(words)]
        if not named:
            said = {_LABELS.get(word, word) for word in _NAME.findall(words)}
            named = [
                index
                for index, field in enumerate(fields)
                if (field.label in said and field.label in (self.touched, *changed))
                or _is_of_file(words, changed.get(field.label, ""))
            ]
        labels = [field.label for field in fields]
        touched = labels.index(self.touched) if self.touched in labels else -1
        return touched if touched in named or not named else named[-1]

    @property
    def file(self) -> str:
        """Why a file could not be read or written."""
        return cells(self._file, _LONGEST)


def _is_of_file(refusal: str, value: str) -> bool:
    """Whether a refusal is of a file that a value names, alone or behind a model: `busbw:FILE`."""
    return any(name and refusal.startswith(f"{name}:") for name in (value, value.partition(":")[2]))
