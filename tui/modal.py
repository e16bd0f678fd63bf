"""What lies over the screen until it is answered: prompts, panels, the help, the palette."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Modal(ModalScreen[ScreenResultType]):
    """A screen over another that gives one answer and is gone."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Answer with `result`. A second Enter or Esc may come before the first is done with: it is nothing.

        Textual would take the screen below away for it, and end with an error where there is none.
        """
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)
