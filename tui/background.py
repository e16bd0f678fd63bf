"""Results that a screen needs and that take long: computed once in a worker, with progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from textual.worker import get_current_worker

from simcore.diagnostics import Cancelled

if TYPE_CHECKING:
    from simcore.recovery.recovered_model import RecoveredModel
    from simcore.trace.run import Run
    from simcore.workload import Workload
    from tui.host import Host

# Seconds between drawings of the progress.
_PROGRESS_INTERVAL_S = 0.2

Progress = Callable[[int, int], None]
IsCancelled = Callable[[], bool]


class CancelWatch:
    """Says a simulation whether its worker is cancelled. It calls `tell` with the seconds since the start,
    now and then.
    """

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._worker = get_current_worker()
        self._tell = tell
        self._begin_s = self._last = time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._last > _PROGRESS_INTERVAL_S and not self._worker.is_cancelled:
            self._last = now
            self._tell(now - self._begin_s)
        return self._worker.is_cancelled


def give_back_memory() -> None:
    """Called by a worker when it is done, or was stopped: see `free_grown_memory`."""
    # Imported here: the first picture needs none of it.
    from tui.memory import free_grown_memory

    free_grown_memory()


class Background:
    """Computes one kind of result, what-if tables or comparisons, of one subject at a time.

    A request for another subject cancels the running computation.
    """

    def __init__(self, app: Host, name: str) -> None:
        self._app = app
        self._name = name
        self._subject: object = None
        self._outcome: Any = None
        self._is_found = False
        self._then: Callable[[Any], None] | None = None
        self.finished = self.total = 0

    def request(self, subject: object, find: Callable[[Progress, IsCancelled], Any]) -> Any:
        """Returns what `find` gives for a subject; None while it is computed.

        The screens are drawn again when it is there. Subjects are compared by identity.
        """
        if self._subject is not subject:
            self._subject, self._outcome, self._is_found = subject, None, False
            self._then = None
            self.finished = self.total = 0
            # Not before the picture that requests it is on the terminal.
            self._app.call_after_refresh(self._start, subject, find)
        return self._outcome if self._is_found else None

    def then(self, do: Callable[[Any], None]) -> None:
        """Calls `do` with the requested result, once it is there; not if another subject is
        requested before.
        """
        self._then = do

    def result_of(self, subject: object) -> Any:
        """Returns the result of a subject; None if there is none. It starts no computation."""
        return self._outcome if self._is_found and self._subject is subject else None

    def stop(self) -> None:
        """Stops a running computation; the next request starts it anew."""
        if not self._is_found and self._subject is not None:
            self._subject = None
            self._app.workers.cancel_group(self._app, self._name)

    def forget(self) -> None:
        """Stops a running computation and drops the result, with the run that it is of."""
        self.stop()
        self._subject, self._outcome, self._is_found, self._then = None, None, False, None

    @property
    def progress(self) -> str:
        """How far it is."""
        doing = self._app.session.doing
        return f"{doing} {self.finished} of {self.total}" if self.total else doing

    def _start(self, subject: object, find: Callable[[Progress, IsCancelled], Any]) -> None:
        if self._subject is subject:
            self._app.run_worker(
                lambda: self._work(subject, find), thread=True, exclusive=True, group=self._name
            )

    def _work(self, subject: object, find: Callable[[Progress, IsCancelled], Any]) -> None:
        worker = get_current_worker()
        last = time.monotonic()

        def progress(finished: int, total: int) -> None:
            nonlocal last
            self.finished, self.total = finished, total
            if time.monotonic() - last > _PROGRESS_INTERVAL_S and not worker.is_cancelled:
                last = time.monotonic()
                self._tell(self._app.redraw_current)

        try:
            outcome = find(progress, lambda: worker.is_cancelled)
        except Cancelled:
            return
        finally:
            give_back_memory()
        if not worker.is_cancelled:
            self._tell(self._take, subject, outcome)

    def _tell(self, callback: Callable[..., Any], *arguments: Any) -> None:
        if self._app.is_running:
            self._app.call_from_thread(callback, *arguments)

    def _take(self, subject: object, outcome: Any) -> None:
        if self._subject is subject:
            self._outcome, self._is_found = outcome, True
            # Also those that are not open: one of them may have requested it.
            for view in self._app.views.values():
                view.redraw()
            do, self._then = self._then, None
            if do is not None:
                do(outcome)


class RecoveredModels(Background):
    """What made the rows of AICB's files."""

    def recovered(self, run: Run) -> RecoveredModel | None:
        """Returns what made the rows of a run; None until it is known, and for rows that are not
        like AICB's.
        """
        if run.shape.simulated is None:
            return None
        # Imported here: for other runs nothing is computed.
        from simcore.recovery.rescale import recover_cached
        from simcore.workload.traffic import is_like_aicb

        workload = cast("Workload", run.setup.source)
        if not is_like_aicb(workload):
            return None
        recovered: RecoveredModel | None = self.request(workload, lambda _, __: recover_cached(workload))
        return recovered
