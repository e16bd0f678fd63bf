"""The sweep of an app: run in the background, its points added as they arrive; or the points of a file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.processes import start_tracker

if TYPE_CHECKING:
    from simcore.sweeping.outcome import Outcome
    from simcore.sweeping.point import Point
    from simcore.sweeping.results_file import ResultsReader
    from simcore.sweeping.running import Sweep, SweepOptions
    from tui.host import Host
    from tui.sweep.sweep_result import SweepResult

# Seconds between drawings while points arrive, and between two looks at a file.
_REDRAW_S, _READ_S = 0.25, 1.0


class Sweeping:
    """Runs the sweep of the screen, or follows a file; `result` is None before there is one."""

    def __init__(self, app: Host) -> None:
        self._app = app
        self.result: SweepResult | None = None
        self.reader: ResultsReader | None = None
        self._first: tuple[str, Callable[[], SweepOptions]] | None = None
        self._pending_points: deque[Point] = deque()
        self._stopped = threading.Event()

    # -- a sweep ---------------------------------------------------------------------

    def begin(self, title: str, make: Callable[[], SweepOptions]) -> None:
        """Runs a sweep. make: prepares it, in the worker."""
        # Not at the top, here and below: most sessions have no sweep.
        from simcore.sweeping.pareto_front import Rule
        from tui.sweep.sweep_result import SweepResult

        self.stop()
        shown_sweep = self.result = SweepResult(title, Rule())
        self.reader = None
        self._pending_points, self._stopped = deque(), threading.Event()
        coming, stopped = self._pending_points, self._stopped
        self._app.run_worker(
            lambda: self._work(shown_sweep, make, coming, stopped), thread=True, exclusive=True, group="sweep"
        )
        self._app.set_timer(_REDRAW_S, lambda: self._poll_points(shown_sweep))

    def stop(self) -> bool:
        """Stops the running sweep; its points stay. Returns False if none runs."""
        if self.result is None or not self.result.is_running:
            return False
        self._stopped.set()
        return True

    def _work(
        self,
        shown_sweep: SweepResult,
        make: Callable[[], SweepOptions],
        pending_points: deque[Point],
        stopped: threading.Event,
    ) -> None:
        from simcore.sweeping.results_file import opened_words
        from simcore.sweeping.running import open_sweep
        from tui.sweep.sweep_result import FAILED, FINISHED, STOPPED

        worker = get_current_worker()

        def is_stopped() -> bool:
            return stopped.is_set() or worker.is_cancelled or not self._app.is_running

        state, error = FINISHED, ""
        sweep: Sweep | None = None
        try:
            options = make()
            start_tracker()
            # A process of its own, also for one job: this one draws.
            sweep = open_sweep(options, is_stopped, own_process=True)
            if words := opened_words(sweep.file, options.resume):
                self._tell(self._app.say, words)
            shown_sweep.opened, shown_sweep.output = options.evaluator.definition.opened, options.output or ""
            shown_sweep.begin(options.rule, sweep.progress, options.prunes)
            for point in sweep.points():
                pending_points.append(point)
                if sweep.is_stopped():
                    raise Cancelled
            if options.prunes:
                self._tell(self._take_pending, shown_sweep, pending_points)
                self._test_best(shown_sweep.outcome, options)
        except Cancelled:
            state = STOPPED
        except (UsageError, InputError) as failed:
            state, error = FAILED, str(failed)
        except OSError as failed:
            state, error = FAILED, f"no processes can be started: {failed.strerror or failed}"
        finally:
            if sweep is not None:
                sweep.close()
        if state == FINISHED and shown_sweep.output and options.prunes and options.shard.count == 1:
            from simcore.sweeping.results_file import append_best

            try:
                append_best(shown_sweep.output, options.evaluator.definition.sweep, shown_sweep.outcome)
            except (UsageError, InputError) as failed:
                state, error = FAILED, str(failed)
        self._tell(self._finish_sweep, shown_sweep, pending_points, state, error)

    @staticmethod
    def _test_best(outcome: Outcome, options: SweepOptions) -> None:
        """Simulates the best points again under other conditions, when all have arrived."""
        from simcore.sweeping.robustness import find_robustness, find_spread

        outcome.spread = find_spread(options.evaluator, outcome)
        outcome.robustness = find_robustness(options.evaluator, outcome)

    def _tell(self, callback: Callable[..., object], *arguments: object) -> None:
        if self._app.is_running:
            self._app.call_from_thread(callback, *arguments)

    def _poll_points(self, shown_sweep: SweepResult) -> None:
        """Adds what has arrived since the last drawing, while the sweep goes on."""
        if shown_sweep is self.result and shown_sweep.is_running:
            self._take_pending(shown_sweep, self._pending_points)
            self._app.redraw_sweep()
            self._app.set_timer(_REDRAW_S, lambda: self._poll_points(shown_sweep))

    def _finish_sweep(
        self, shown_sweep: SweepResult, pending_points: deque[Point], state: str, error: str
    ) -> None:
        self._take_pending(shown_sweep, pending_points)
        shown_sweep.end(state, error)
        if shown_sweep is self.result:
            if error:
                self._app.say(" ".join(error.split()))
            self._app.redraw_sweep()

    @staticmethod
    def _take_pending(shown_sweep: SweepResult, pending_points: deque[Point]) -> None:
        shown_sweep.add_points(pending_points.popleft() for _ in range(len(pending_points)))

    # -- a file ----------------------------------------------------------------------

    def follow(self, shown_sweep: SweepResult, reader: ResultsReader) -> None:
        """Shows the points of a file, also those that another program still writes to it."""
        self.result, self.reader = shown_sweep, reader

    def first(self, title: str, make: Callable[[], SweepOptions]) -> None:
        """Begins as `begin` does, as soon as the app runs."""
        self._first = title, make

    def start(self) -> None:
        """Starts what was waiting for the app to run."""
        if self._first is not None:
            self.begin(*self._first)
        if self.reader is not None:
            self._app.set_timer(_READ_S, self._read)

    def _read(self) -> None:
        from tui.sweep.sweep_result import FAILED, FILE

        shown_sweep, reader = self.result, self.reader
        if shown_sweep is None or reader is None or shown_sweep.state != FILE:
            return
        try:
            new = reader.read_new()
        except (UsageError, InputError) as error:
            shown_sweep.end(FAILED, str(error))
            self._app.redraw_sweep()
            return
        if new or (reader.best is not None and shown_sweep.outcome.robustness is None):
            shown_sweep.add_points(new)
            shown_sweep.take_best(reader.best)
            self._app.redraw_sweep()
        self._app.set_timer(_READ_S, self._read)
