"""What a session edits, and how to take a change back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Drafted(Generic[T]):
    """draft: what is being edited. running, error: of the run of it."""

    draft: T = field(init=False)
    error: str = ""
    running: bool = False
    _undo: list[T] = field(default_factory=list)
    _redo: list[T] = field(default_factory=list)

    def edit(self, draft: T) -> None:
        """Take a change as the draft; the one before can be had back."""
        self._undo.append(self.draft)
        self._redo.clear()
        self.draft = draft

    def undo(self) -> bool:
        """The draft before the last edit; False if there is none."""
        if not self._undo:
            return False
        self._redo.append(self.draft)
        self.draft = self._undo.pop()
        return True

    def redo(self) -> bool:
        """The draft that `undo` took away; False if there is none."""
        if not self._redo:
            return False
        self._undo.append(self.draft)
        self.draft = self._redo.pop()
        return True
