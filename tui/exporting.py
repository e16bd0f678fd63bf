"""`E`: the run on the screen as a file for another program, or the screen as a picture."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from simcore.diagnostics import Cancelled, InputError, UsageError, printable
from tui.frame import cells
from tui.writing import FileQuestion

if TYPE_CHECKING:
    from simcore.export import Request
    from tui.app import WltuiApp

# What a name ends in -> the format; a picture of the screen has none.
_FORMATS = {".json": "chrome", ".json.gz": "chrome", ".csv": "csv", ".csv.gz": "csv"}
_PICTURE = ".svg"
_NAMES = ".json.gz for Perfetto, .csv, or .svg of this screen"


class Exporting:
    """Of the run that is shown, as it is: changed, replayed, or as opened."""

    def __init__(self, app: WltuiApp) -> None:
        self._app = app
        self._path = os.path.basename(os.path.normpath(app.session.opened.path)).split(".")[0] + ".json.gz"

    def ask(self) -> None:
        """Ask for the name of the file; what it ends in says what is written."""
        FileQuestion(self._app, self._begin, self._app.say).ask("export to", self._path, _NAMES)

    def _begin(self, path: str, force: bool) -> None:
        ending = next((one for one in (*_FORMATS, _PICTURE) if path.lower().endswith(one)), None)
        if ending is None:
            names = ", ".join(_FORMATS)
            self._app.say(f"a name that ends in {names} or {_PICTURE} is expected: {cells(path, 80)}")
            return
        self._path = path
        if ending == _PICTURE:
            # Behind the prompt, which is still there.
            self._app.call_after_refresh(self._save_picture, path, force)
            return
        self._app.say(f"exporting to {cells(path, 100)}")
        self._app.run_worker(
            lambda: self._work(path, _FORMATS[ending], force), thread=True, exclusive=True, group="export"
        )

    def _save_picture(self, path: str, force: bool) -> None:
        from simcore.export import save
        from tui.pictures import as_svg

        try:
            save(path, [as_svg(self._app).encode()], force)
        except (UsageError, InputError) as error:
            self._app.say(str(error))
        else:
            self._app.say(f"saved: {cells(path, 200)}")

    def _work(self, path: str, name: str, force: bool) -> None:
        from simcore.export import FORMATS, compressed, save
        from simcore.units import byte_size

        worker = get_current_worker()

        def watched(pieces: Iterable[bytes]) -> Iterator[bytes]:
            for piece in pieces:
                if worker.is_cancelled:
                    raise Cancelled
                yield piece

        try:
            chosen = next(one for one in FORMATS if one.name == name)
            export = chosen.requested(self._request())
            pieces = watched(export.pieces)
            size = save(path, compressed(pieces) if path.lower().endswith(".gz") else pieces, force)
        except Cancelled:
            return
        except (UsageError, InputError) as error:
            self._app.call_from_thread(self._app.say, str(error))
        else:
            self._app.call_from_thread(
                self._app.say, f"{printable(path, 100)}: {export.what}, {byte_size(size)}"
            )

    def _request(self) -> Request:
        from simcore.export import Request

        current = self._app.session.current
        return Request(current.source, current.parameters)
