"""`E`: the run on the screen as a file for another program, or the screen as a picture, SVG or text."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from textual.app import App
from textual.worker import get_current_worker

from simcore.diagnostics import Cancelled, InputError, UsageError, printable
from tui.frame import cells

if TYPE_CHECKING:
    from simcore.render.export import Request
    from tui.host import Host


WRITE_OVER = "write over it? yes or no"


class FileQuestion:
    """The prompts of writing a file.

    write: gets the path and whether an existing file is to be replaced, and returns the message, "" for none;
    it raises `UsageError` and `InputError`. refuse: gets the line that says why a path cannot be written.
    """

    def __init__(self, app: Host, write: Callable[[str, bool], str], refuse: Callable[[str], None]) -> None:
        self._app = app
        self._write = write
        self._refuse = refuse

    def ask(self, question: str, path: str, form: str = "") -> None:
        """Asks for the path; `path` is offered. form: how the file is written."""
        from tui.prompt import Prompt

        self._app.push_screen(Prompt(question, path, form=form), self._check_path)

    def _check_path(self, typed: str | None) -> None:
        from simcore.render.export.saving import check_file
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
            self._write_file(path, False)
            return
        prompt = Prompt(WRITE_OVER, "no", form=f"{cells(path, 200)} is there already")
        self._app.push_screen(prompt, lambda answer: self._answered(path, answer))

    def _answered(self, path: str, answer: str | None) -> None:
        if (answer or "").strip().lower() in ("y", "yes"):
            self._write_file(path, True)
        else:
            self._app.say(f"not saved: {cells(path, 100)} is as it was")

    def _write_file(self, path: str, force: bool) -> None:
        try:
            message = self._write(path, force)
        except (UsageError, InputError) as error:
            self._refuse(str(error))
        else:
            if message:
                self._app.say(message)


# The ending of a name -> the format; a picture of the screen has none.
_FORMATS = {".html": "html", ".json": "chrome", ".json.gz": "chrome", ".csv": "csv", ".csv.gz": "csv"}
_PICTURE = ".svg"
_NAMES = ".html to hand on, .json.gz for Perfetto, .csv, .svg of this screen"


class Exporting:
    """Exports the run that is shown, as it is: changed, replayed, or as opened."""

    def __init__(self, app: Host) -> None:
        self._app = app
        self._path = os.path.basename(os.path.normpath(app.session.opened.path)).split(".")[0] + ".json.gz"

    def ask(self) -> None:
        """Asks for the name of the file; its ending says what is written."""
        FileQuestion(self._app, self._begin, self._app.say).ask("export to", self._path, _NAMES)

    def _begin(self, path: str, force: bool) -> str:
        ending = next((suffix for suffix in (*_FORMATS, _PICTURE) if path.lower().endswith(suffix)), None)
        if ending is None:
            names = ", ".join(_FORMATS)
            raise UsageError(f"a name that ends in {names} or {_PICTURE} is expected: {cells(path, 80)}")
        self._path = path
        if ending == _PICTURE:
            # After the prompt, which is still there, has closed.
            self._app.call_after_refresh(self._save_picture, path, force)
            return ""
        name = _FORMATS[ending]
        request = self._request(name)
        self._app.run_worker(
            lambda: self._work(path, name, request, force), thread=True, exclusive=True, group="export"
        )
        return f"exporting to {cells(path, 100)}"

    def _save_picture(self, path: str, force: bool) -> None:
        from simcore.render.export import save

        try:
            save(path, [as_svg(self._app).encode()], force)
        except (UsageError, InputError) as error:
            self._app.say(str(error))
        else:
            self._app.say(f"saved: {cells(path, 200)}")

    def _work(self, path: str, name: str, request: Request, force: bool) -> None:
        from simcore.render.export import find_format, write

        worker = get_current_worker()

        def watched(chunks: Iterable[bytes]) -> Iterator[bytes]:
            for chunk in chunks:
                if worker.is_cancelled:
                    raise Cancelled
                yield chunk

        try:
            export = find_format(name, "format").build_export(request)
            summary = write(export, path, force, watched)
        except Cancelled:
            return
        except (UsageError, InputError) as error:
            self._app.call_from_thread(self._app.say, str(error))
        else:
            self._app.call_from_thread(self._app.say, f"{printable(path, 100)}: {summary}")

    def _request(self, name: str) -> Request:
        from simcore.render.export import Request

        current = self._app.session.current
        if name != "html":
            return Request(current.setup.source, current.parameters)
        # A page made on the compare screen has both of its runs.
        a, b = self._app.current_view.compared_runs or (None, current)
        return Request(b.setup.source, b.parameters, run=b, against=a)


# The picture must work without a network: local fonts are enough.
_FONT_FACES = re.compile(r"\s*@font-face \{[^}]*\}")


def as_svg(app: App[None]) -> str:
    """Returns the screen in colours as SVG; it names no address."""
    return _FONT_FACES.sub("", app.export_screenshot(title="wltui"))


def as_text(app: App[None]) -> str:
    """Returns the rows of the screen without trailing blanks."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True, record=True, color_system=None
    )
    # As in `export_screenshot`, which can only write SVG: what lies under a prompt is visible, too.
    picture = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    console.print(picture)
    rows = console.export_text().split("\n")[:height]
    return "\n".join(row.rstrip() for row in rows) + "\n"
