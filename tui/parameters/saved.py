"""Parameters as files: saving the draft for `--params`, and loading such a file as a draft."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from tui.exporting import FileQuestion
from tui.frame import cells

if TYPE_CHECKING:
    from tui.app import WltuiApp
    from tui.parameters.view import ParametersView

_HEAD = "# Parameters of wltui: wltui FILE --params THIS_FILE\n"
_FIRST_NAME = "parameters.toml"


class SavedParameters:
    """The prompts of saving and loading. The path that was used last is offered again."""

    def __init__(self, view: ParametersView) -> None:
        self._view = view
        self._path = _FIRST_NAME

    @property
    def _app(self) -> WltuiApp:
        return cast("WltuiApp", self._view.app)

    def save(self) -> None:
        """Ask where to, and before anything is written over."""
        FileQuestion(self._app, self._write, self._view.say_of_file).ask("save the parameters as", self._path)

    def _write(self, path: str, force: bool) -> None:
        from simcore.export.saving import save
        from simcore.parameters_file import parameters_toml

        text = _HEAD + parameters_toml(self._view.session.draft)
        try:
            save(path, [text.encode()], force)
        except (UsageError, InputError) as error:
            self._view.say_of_file(str(error))
            return
        self._path = path
        refused = cells(self._view.session.error.replace("\n", "; "), 200)
        more = f" as shown, which cannot be simulated: {refused}" if refused else ""
        self._app.say(f"saved: {cells(path, 200)}{more}")

    def load(self) -> None:
        """Ask which file, and make it the draft."""
        from tui.prompt import Prompt

        self._app.push_screen(Prompt("load parameters from", self._path), self._load_from)

    def _load_from(self, typed: str | None) -> None:
        from simcore.choices import choices
        from simcore.parameters_file import read_parameters

        if not typed or not typed.strip():
            return
        path = os.path.expanduser(typed.strip())

        def read() -> Parameters:
            # What the file does not name is at its default, as it is with --params alone.
            found = Parameters(**read_parameters(path, choices))
            self._path = path
            if found == self._view.session.draft:
                self._app.say("the parameters are those of the file already")
            return found

        self._view.take(read)
