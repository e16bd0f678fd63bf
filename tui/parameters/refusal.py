"""Why what was asked for cannot be: a value, a draft, or a file."""

from __future__ import annotations

from simcore.parameters import Parameters
from tui.frame import cells
from tui.session import Session

_LONGEST = 400


class Refusal:
    """field: the label of the field that was changed last; None when a file or a key changed several.

    What was said of a value is over with the draft that it was refused for: another one is simulated,
    and whether that can be is what the session says.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._value = self._file = ""
        self._draft: Parameters = session.draft
        self.field: str | None = None

    def clear(self) -> None:
        """What was said is over; a draft that cannot be simulated still says so."""
        self._value = self._file = ""

    def of_value(self, words: str) -> None:
        """The last value is none of its field."""
        self._value, self._draft = words, self._session.draft

    def of_file(self, words: str) -> None:
        """A file could not be read or written."""
        self._file = words

    @property
    def value(self) -> str:
        """Why the last value is none of its field, as it was said."""
        return self._value if self._draft is self._session.draft else ""

    @property
    def words(self) -> str:
        """Why the last value or the draft cannot be, in one line; empty when they can."""
        return cells((self.value or self._session.error).replace("\n", "; "), _LONGEST)

    @property
    def file(self) -> str:
        """Why a file could not be read or written."""
        return cells(self._file, _LONGEST)
