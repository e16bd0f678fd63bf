"""The why screen of a measured run: the keys of the simulated one, over its own model."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from tui.measured.why_model import MeasuredWhyModel
from tui.session import Session
from tui.why.view import PathView, path_bindings


class MeasuredWhyView(PathView):
    """The critical path and the what-if table of a measured run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *path_bindings("measured-why", "kind, operation, stage or rank", "replay")
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model: MeasuredWhyModel = MeasuredWhyModel(session.current)
