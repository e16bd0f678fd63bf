"""`--follow`: looks every second for what is new in a log or a directory, and shows it where one is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError
from simcore.parameters import RunInput
from simcore.sources.following import Follower
from simcore.sources.inputs import Opened
from simcore.units import plural
from tui.session import Run

if TYPE_CHECKING:
    from tui.host import Host

_EVERY_S = 1.0
# Of a directory that takes long to look through no more than a tenth of the time goes into looks.
_SHARE = 0.1


class Following:
    """The following of an app. hint: what its key does now."""

    def __init__(self, app: Host, follower: Follower) -> None:
        self._app, self._follower = app, follower
        self._is_on, self._is_looking = True, False
        self._first_label = app.session.opened.setup.label
        self._next_look = 0.0
        self._came = ""
        self._set_words()

    @property
    def hint(self) -> str:
        """What its key does now."""
        return "stop following" if self._is_on else "follow"

    def start(self) -> None:
        """Begins to look."""
        self._app.set_interval(_EVERY_S, self._tick)

    def toggle(self) -> None:
        """Stops looking, or looks again."""
        self._is_on = not self._is_on
        self._next_look = 0.0
        self._set_words()
        self._app.redraw_chrome()
        self._tick()

    def _set_words(self) -> None:
        state = "following" if self._is_on else "not followed"
        self._app.session.following = f"{state}: {self._came}" if self._came else state

    def _tick(self) -> None:
        app = self._app
        is_busy = self._is_looking or app.session.running or len(app.screen_stack) > 1
        if self._is_on and not is_busy and time.monotonic() >= self._next_look:
            self._is_looking = True
            app.run_worker(self._look, thread=True, exclusive=True, group="follow")

    def _look(self) -> None:
        """Looks, in a worker, and makes the runs of what is new."""
        session = self._app.session
        before, current = session.opened, session.current
        begin = time.monotonic()
        # The step that is opened by default moves on; one that was chosen stays.
        label = before.setup.label
        try:
            opened = self._follower.look(None if label == self._first_label else label)
        except UsageError:
            # It is no longer there.
            self._follower.forget()
            opened = self._follower.look()
        self._next_look = begin + (time.monotonic() - begin) / _SHARE
        runs = None if opened is None else _make_runs(opened, before, current)
        if self._app.is_running:
            self._app.call_from_thread(self._take, before, current, runs)

    def _take(self, before: Run, current: Run, runs: tuple[Run, Run] | None) -> None:
        """Shows what is new, unless another run is shown meanwhile: then the next look finds it again."""
        app, session = self._app, self._app.session
        self._is_looking = False
        if runs is None:
            return
        if session.running or session.opened is not before or session.current is not current:
            self._follower.forget()
            return
        is_default = before.setup.label == self._first_label
        session.reload(*runs)
        if is_default:
            self._first_label = session.opened.setup.label
        self._came = describe_news(before, session.opened)
        self._set_words()
        app.show_everywhere(session.current)


def _make_runs(opened: Opened, before: Run, current: Run) -> tuple[Run, Run]:
    """Returns (the run as opened, the run on the screen) of what is there now, with the parameters that they
    had.
    """
    from simcore.runs import open_run

    run = open_run(RunInput(opened, before.parameters))
    run.compute_accounts(lambda: False)
    if current is before:
        return run, run
    try:
        shown_run = run.with_parameters(current.parameters, lambda: False)
    except UsageError:
        # A rank that it slows down is no longer there.
        return run, run
    shown_run.compute_accounts(lambda: False)
    return run, shown_run


def describe_news(before: Run, now: Run) -> str:
    """Returns what came: `2 new steps, 14 now`; of what has no steps its ranks."""
    for noun, was, is_now in zip(("step", "run", "rank"), _count(before), _count(now), strict=True):
        if is_now > was:
            return f"{plural(is_now - was, f'new {noun}')}, {is_now} now"
    steps = _count(now)[0]
    return f"read anew, {plural(steps, 'step')}" if steps else "read anew"


def _count(run: Run) -> tuple[int, int, int]:
    """Returns the number of steps, of runs of its directory, and of ranks."""
    recorded = getattr(run.setup.source, "recorded", None)
    steps = 0 if recorded is None else len(recorded.steps)
    return steps, len(run.setup.others), sum(len(track.ranks) for track in run.tracks)


def wait_for_first(follower: Follower) -> Opened:
    """Returns what is followed once there is something to show; says on the terminal what it waits for."""
    reason = ""
    while True:
        opened = follower.look()
        if opened is not None:
            return opened
        if follower.waiting != reason:
            reason = follower.waiting
            print(f"wltui: waiting, Ctrl+C ends: {reason}", file=sys.stderr)
        time.sleep(_EVERY_S)
