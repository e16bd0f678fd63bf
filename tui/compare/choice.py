"""Which two runs are compared: those that were kept, the one on the screen, and the one opened with it."""

from __future__ import annotations

from simcore.records import NamedTuple
from simcore.trace.run import as_read
from tui.frame import cells
from tui.session import HistoryRun, Run, Session


class RunChoice(NamedTuple):
    """A run that can be chosen."""

    name: str
    """`run 2`, `draft`; "" for the only one of its file."""
    results: Run


class Choice:
    """The choice of A and B among the available runs; a run of another file or directory is the first A."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # The chosen runs; None: the first run that is not B, and the run on the screen.
        self._a: Run | None = None
        self._b: Run | None = None
        # The pair that was shown last: `x` leaves both in their places.
        self._last: tuple[Run, Run] | None = None

    def _candidates(self) -> list[RunChoice]:
        """Returns the run opened with it, the runs of the history that are simulated, the chosen ones, and
        the one that `x` shows.
        """
        session = self._session
        run_choices = [] if session.against is None else [RunChoice("against", session.against)]
        run_choices += [
            _history_choice(session, run, run.results) for run in session.history if run.results is not None
        ]
        # A chosen run stays, even if others have replaced it in the history.
        for selected in (self._a, self._b):
            if selected is not None and all(
                not _is_same_run(selected, run_choice.results) for run_choice in run_choices
            ):
                run_choices.append(RunChoice("chosen", selected))
        # The run that `x` shows may be a change that was not kept.
        if session.other is not None and all(
            not _is_same_run(session.other, run_choice.results) for run_choice in run_choices
        ):
            is_draft = session.find_in_history(session.current) is None
            run_choices.append(RunChoice("before" if is_draft else "draft", session.other))
        return run_choices

    def _current(self) -> RunChoice:
        """Returns the run on the screen."""
        session = self._session
        history_run = session.find_in_history(session.current)
        if history_run is None:
            return RunChoice("draft", session.current)
        return _history_choice(session, history_run, session.current)

    @property
    def pair(self) -> tuple[RunChoice, RunChoice] | None:
        """A and B; None where there is only one run."""
        session = self._session
        if session.compared_run is not None:
            # Chosen in the list of runs, for comparison with the one on the screen.
            self._a, self._b, session.compared_run = session.compared_run, None, None
            self._last = None
        candidates, current = self._candidates(), self._current()
        pair = self._previous_pair(candidates, current) or self._select_pair(candidates, current)
        self._last = None if pair is None else (pair[0].results, pair[1].results)
        return pair

    def _previous_pair(
        self, candidates: list[RunChoice], current: RunChoice
    ) -> tuple[RunChoice, RunChoice] | None:
        """Returns the pair that was shown last, where the run on the screen is its A now."""
        if self._last is None or self._b is not None or not _is_same_run(self._last[0], current.results):
            return None
        b = next((candidate for candidate in candidates if candidate.results is self._last[1]), None)
        return None if b is None else (current, b)

    def _select_pair(
        self, candidates: list[RunChoice], current: RunChoice
    ) -> tuple[RunChoice, RunChoice] | None:
        """Returns the chosen pair; else the run on the screen and another, the earlier one of them A."""
        b = next((candidate for candidate in candidates if candidate.results is self._b), current)
        others = [candidate for candidate in candidates if not _is_same_run(candidate.results, b.results)]
        if not others:
            return None
        # Where none was chosen: the run opened with it, else another run of the same files.
        source, against = b.results.setup.source, self._session.against
        same_source = [
            run_choice
            for run_choice in others
            if run_choice.results is against or run_choice.results.setup.source is source
        ]
        a = next((run_choice for run_choice in others if run_choice.results is self._a), None)
        if a is None:
            a = (same_source or others)[0]
            if self._b is None and self._sort_index(b.results) < self._sort_index(a.results):
                a, b = b, a
        return a, b

    def _sort_index(self, run: Run) -> int:
        """Returns the sort key for A: the run opened with it first, then measured ones, then those kept."""
        session = self._session
        if run is session.against:
            return -2
        if run is as_read(session.opened) and run is not session.opened:
            return -1
        history_run = session.find_in_history(run)
        return len(session.history) if history_run is None else session.history.index(history_run)

    def next_a(self) -> bool:
        """Takes another run as A; returns False where there is no other."""
        pair = self.pair
        if pair is None:
            return False
        others = [
            candidate.results
            for candidate in self._candidates()
            if not _is_same_run(candidate.results, pair[1].results)
        ]
        index = [_is_same_run(run, pair[0].results) for run in others].index(True)
        self._a = others[(index + 1) % len(others)]
        if not _is_same_run(pair[1].results, self._current().results):
            self._b = pair[1].results
        return len(others) > 1

    def next_b(self) -> bool:
        """Takes another run as B, at last the one on the screen again; returns False where there is
        no other.
        """
        pair = self.pair
        if pair is None:
            return False
        current = self._current().results
        others = [
            candidate.results
            for candidate in self._candidates()
            if not _is_same_run(candidate.results, current)
        ]
        options: list[Run | None] = [None, *others]
        is_current_b = [option is not None and _is_same_run(option, pair[1].results) for option in options]
        index = is_current_b.index(True) if True in is_current_b else 0
        self._b = options[(index + 1) % len(options)]
        self._a = self._a or pair[0].results
        return self.pair is not None


def _history_choice(session: Session, run: HistoryRun, results: Run) -> RunChoice:
    """Returns a run of the history, by the user's name where it has one."""
    # Beside other steps the one that was opened first is one of them too.
    is_one_of_several = run.recorded_step and session.opened.setup.others
    title = f"step {run.recorded_step}" if is_one_of_several else session.title_of(run)
    return RunChoice(cells(run.name, 20) if run.name else title, results)


def _is_same_run(a: Run, b: Run) -> bool:
    """Returns whether two runs are of one input with the same parameters."""
    return a is b or (a.setup.source is b.setup.source and a.parameters == b.parameters)
