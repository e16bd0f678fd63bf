"""What a screen needs and takes long to find: found once a run in a worker, with progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.worker import get_current_worker

from simcore.diagnostics import Cancelled

if TYPE_CHECKING:
    from simcore.analysis import Results
    from simcore.analysis.what_if import WhatIf
    from tui.app import WltuiApp

# Progress is worth a picture this often, s.
_PROGRESS_EVERY = 0.2


class WhatIfs:
    """The what-if tables of runs. A new run's table cancels that of the run before."""

    def __init__(self, app: WltuiApp) -> None:
        self._app = app
        self._found: dict[int, tuple[Results, list[WhatIf]]] = {}
        self._running: Results | None = None
        self.done = self.total = 0

    def of(self, results: Results) -> list[WhatIf] | None:
        """The table of a run; None while it is being made: the screen is drawn again when it is there."""
        found = self._found.get(id(results))
        if found is not None and found[0] is results:
            return found[1]
        if self._running is not results:
            self._running = results
            self.done = self.total = 0
            # Not before the picture that asks for it is on the terminal.
            self._app.call_after_refresh(self._start, results)
        return None

    @property
    def progress(self) -> str:
        """How far the table is that is being made."""
        return f"simulating {self.done} of {self.total}" if self.total else "simulating"

    def _start(self, results: Results) -> None:
        if self._running is results:
            self._app.run_worker(lambda: self._work(results), thread=True, exclusive=True, group="what-if")

    def _work(self, results: Results) -> None:
        worker = get_current_worker()
        last = time.monotonic()

        def progress(done: int, total: int) -> None:
            nonlocal last
            self.done, self.total = done, total
            if time.monotonic() - last > _PROGRESS_EVERY and not worker.is_cancelled:
                last = time.monotonic()
                self._tell(self._app.redraw_current)

        try:
            found = results.what_if(progress, lambda: worker.is_cancelled)
        except Cancelled:
            return
        if not worker.is_cancelled:
            self._tell(self._take, results, found)

    def _tell(self, callback: Callable[..., Any], *arguments: Any) -> None:
        if self._app.is_running:
            self._app.call_from_thread(callback, *arguments)

    def _take(self, results: Results, found: list[WhatIf]) -> None:
        self._found[id(results)] = (results, found)
        if self._running is results:
            self._running = None
        self._app.redraw_current()
