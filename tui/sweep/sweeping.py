"""The sweep of an app: run behind the picture, its points taken in as they come; or the points of a file."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from simcore.diagnostics import Cancelled, InputError, UsageError

if TYPE_CHECKING:
    from simcore.sweeping.point import Point
    from simcore.sweeping.results_file import ResultsReader
    from simcore.sweeping.running import AskedSweep, Sweep
    from tui.host import Host
    from tui.sweep.found import ShownSweep

# The picture is made anew so often while points come in, s; a file is looked at so often.
_DRAWN_EVERY, _READ_EVERY = 0.25, 1.0


class Sweeping:
    """found: the sweep on the screen, None before there is one."""

    def __init__(self, app: Host) -> None:
        self._app = app
        self.found: ShownSweep | None = None
        self.reader: ResultsReader | None = None
        self._first: tuple[str, Callable[[], AskedSweep]] | None = None
        self._coming: deque[Point] = deque()
        self._stopped = threading.Event()

    # -- a sweep ---------------------------------------------------------------------

    def begin(self, title: str, make: Callable[[], AskedSweep]) -> None:
        """Run a sweep. make: prepares it, in the worker."""
        # Not at the top, here and below: most sessions have no sweep.
        from simcore.sweeping.front import Rule
        from tui.sweep.found import ShownSweep

        self.stop()
        shown_sweep = self.found = ShownSweep(title, Rule())
        self.reader = None
        self._coming, self._stopped = deque(), threading.Event()
        coming, stopped = self._coming, self._stopped
        self._app.run_worker(
            lambda: self._work(shown_sweep, make, coming, stopped), thread=True, exclusive=True, group="sweep"
        )
        self._app.set_timer(_DRAWN_EVERY, lambda: self._look(shown_sweep))

    def stop(self) -> bool:
        """End the sweep that runs; what has come stays. False if there is none."""
        if self.found is None or not self.found.goes_on:
            return False
        self._stopped.set()
        return True

    def _work(
        self,
        shown_sweep: ShownSweep,
        make: Callable[[], AskedSweep],
        coming: deque[Point],
        stopped: threading.Event,
    ) -> None:
        from simcore.sweeping.results_file import opened_words
        from simcore.sweeping.running import opened_sweep
        from tui.sweep.found import DONE, FAILED, STOPPED

        worker = get_current_worker()

        def is_stopped() -> bool:
            return stopped.is_set() or worker.is_cancelled or not self._app.is_running

        state, error = DONE, ""
        sweep: Sweep | None = None
        try:
            asked = make()
            _ready_for_processes()
            # A process of its own, also of one job: this one draws.
            sweep = opened_sweep(asked, is_stopped, apart=True)
            if words := opened_words(sweep.file, asked.resume):
                self._tell(self._app.say, words)
            shown_sweep.opened, shown_sweep.output = asked.evaluator.definition.opened, asked.output or ""
            shown_sweep.begin(asked.rule, sweep.progress, asked.prunes)
            for point in sweep.points():
                coming.append(point)
                if sweep.is_stopped():
                    raise Cancelled
        except Cancelled:
            state = STOPPED
        except (UsageError, InputError) as failed:
            state, error = FAILED, str(failed)
        except OSError as failed:
            state, error = FAILED, f"no processes can be started: {failed.strerror or failed}"
        finally:
            if sweep is not None:
                sweep.close()
        self._tell(self._ended, shown_sweep, coming, state, error)

    def _tell(self, callback: Callable[..., object], *arguments: object) -> None:
        if self._app.is_running:
            self._app.call_from_thread(callback, *arguments)

    def _look(self, shown_sweep: ShownSweep) -> None:
        """What has come since the last picture, while the sweep goes on."""
        if shown_sweep is self.found and shown_sweep.goes_on:
            self._take(shown_sweep, self._coming)
            self._app.redraw_sweep()
            self._app.set_timer(_DRAWN_EVERY, lambda: self._look(shown_sweep))

    def _ended(self, shown_sweep: ShownSweep, coming: deque[Point], state: str, error: str) -> None:
        self._take(shown_sweep, coming)
        shown_sweep.end(state, error)
        if shown_sweep is self.found:
            if error:
                self._app.say(" ".join(error.split()))
            self._app.redraw_sweep()

    @staticmethod
    def _take(shown_sweep: ShownSweep, coming: deque[Point]) -> None:
        shown_sweep.take(coming.popleft() for _ in range(len(coming)))

    # -- a file ----------------------------------------------------------------------

    def follow(self, shown_sweep: ShownSweep, reader: ResultsReader) -> None:
        """The points of a file, also those that somebody else still writes to it."""
        self.found, self.reader = shown_sweep, reader

    def first(self, title: str, make: Callable[[], AskedSweep]) -> None:
        """As `begin`, as soon as the app runs."""
        self._first = title, make

    def start(self) -> None:
        """The app runs now."""
        if self._first is not None:
            self.begin(*self._first)
        if self.reader is not None:
            self._app.set_timer(_READ_EVERY, self._read)

    def _read(self) -> None:
        from tui.sweep.found import FAILED, FILE

        shown_sweep, reader = self.found, self.reader
        if shown_sweep is None or reader is None or shown_sweep.state != FILE:
            return
        try:
            new = reader.new()
        except (UsageError, InputError) as error:
            shown_sweep.end(FAILED, str(error))
            self._app.redraw_sweep()
            return
        if new:
            shown_sweep.take(new)
            self._app.redraw_sweep()
        self._app.set_timer(_READ_EVERY, self._read)


def _ready_for_processes() -> None:
    """Starts multiprocessing's tracker of resources, which is given the number of `sys.stderr`: Textual's own
    has none, and no process could be started.
    """
    from multiprocessing import resource_tracker

    with redirect_stderr(sys.__stderr__):
        resource_tracker.ensure_running()
