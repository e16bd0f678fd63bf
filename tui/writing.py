"""Asking where a file is to go, and before one is written over."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.diagnostics import InputError, UsageError
from tui.frame import cells

if TYPE_CHECKING:
    from tui.app import WltuiApp


class FileQuestion:
    """The prompts of writing a file. write: gets the path and whether a file there is to be replaced.

    refuse: gets the line that says why a path cannot be written.
    """

    def __init__(
        self, app: WltuiApp, write: Callable[[str, bool], None], refuse: Callable[[str], None]
    ) -> None:
        self._app = app
        self._write = write
        self._refuse = refuse

    def ask(self, question: str, path: str, form: str = "") -> None:
        """Ask for the path; `path` is offered. form: what there is to say of how it is written."""
        from tui.prompt import Prompt

        self._app.push_screen(Prompt(question, path, form=form), self._typed)

    def _typed(self, typed: str | None) -> None:
        from simcore.export.saving import check_file
        from tui.prompt import Prompt

        if not typed or not typed.strip():
            return
        path = os.path.expanduser(typed.strip())
        try:
            _, mode = check_file(path, force=True)
        except (UsageError, InputError) as error:
            self._refuse(str(error))
            return
        if mode is None:
            self._write(path, False)
            return
        prompt = Prompt("write over it? yes or no", "no", form=f"{cells(path, 200)} is there already")
        self._app.push_screen(prompt, lambda answer: self._answered(path, answer))

    def _answered(self, path: str, answer: str | None) -> None:
        if (answer or "").strip().lower() in ("y", "yes"):
            self._write(path, True)
        else:
            self._app.say(f"not saved: {cells(path, 100)} is as it was")
