"""The history as lines: what each run is, how long its step takes, and against the first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from simcore.parameters import Parameters, as_flags
from simcore.units import duration
from tui.chrome import difference
from tui.frame import Line, cells, end_cut, fitted, width_of
from tui.session import KeptRun, Session

_NAME = 22
_STEP = 12
_DIFFERENCE = 24
# Narrower than that, the flags stand in a line of their own.
_WIDE = 100
# Of two runs the difference says which one is faster.
_LEAST_RUNS = 3


def heading(width: int) -> Line:
    """What stands over the columns."""
    line = f"     run  {'name':<{_NAME}} {'step':>{_STEP}}  {'to run 1':<{_DIFFERENCE - 1}}"
    return [(line + ("parameters" if width >= _WIDE else ""), "dim")]


def run_lines(session: Session, chosen: int, marked: list[KeptRun], width: int) -> list[list[Line]]:
    """The lines of each run. chosen: the one with the cursor. marked: those to compare, A first."""
    found = []
    first = session.history[0]
    here = session.kept(session.current)
    words = _extremes(session.history)
    for place, run in enumerate(session.history):
        sign = ">" if place == chosen else " "
        letter = "AB"[marked.index(run)] if run in marked else " "
        shown = "*" if run is here else " "
        name = cells(run.name or words.get(place, "as opened" if run is first else ""), _NAME)
        role = "accent" if place == chosen else ""
        head: Line = [(f"{sign} {letter}", "key"), (f"{shown}{place + 1:>3}  ", role)]
        head += [(f"{name:<{_NAME}} ", role or "bright" if run.name else role or "dim"), *_step(run, first)]
        flags = _flags(run, session.read is not None and bool(session.opened.others))
        if width >= _WIDE:
            found.append([[*head, (_cut(flags, width - width_of(head)), "dim")]])
        else:
            found.append([head, [(" " * 8, ""), (_cut(flags, width - 8), "dim")]])
    return found


def _flags(run: KeptRun, of_several: bool) -> str:
    """What asks for the run on a command line. of_several: whether it is one of a directory's runs."""
    words = as_flags(run.parameters)
    if of_several and run.label is not None:
        words = ["--run", run.label, *words]
    return " ".join(map(shlex.quote, words)) or "(as in the file)"


def _extremes(history: Sequence[KeptRun]) -> dict[int, str]:
    """Which of a directory's runs are the fastest and the slowest, once the step times of all are known."""
    steps = [
        (run.step_ns, place)
        for place, run in enumerate(history)
        if run.label and run.parameters == Parameters()
    ]
    if len(steps) < _LEAST_RUNS or any(step is None for step, _ in steps):
        return {}
    return {min(steps)[1]: "fastest of them", max(steps)[1]: "slowest of them"}


def _cut(flags: str, room: int) -> str:
    """As many whole words as there is room for: half a figure reads as another one."""
    words = cells(flags, 400)
    if len(words) > room:
        words = words[: max(room - 3, 0)].rpartition(" ")[0]
        return f"{words} ..." if words else end_cut(flags, room)
    return words


def _step(run: KeptRun, first: KeptRun) -> Line:
    """The step time and the difference to the first run's. Bright once it is simulated in this session."""
    if run.step_ns is None:
        words = "not run yet" if run.results is None else "not timed"
        return [(f"{words:>{_STEP}}  {'':{_DIFFERENCE - 1}}", "dim")]
    line: Line = [(f"{duration(run.step_ns):>{_STEP}}  ", "bright" if run.results is not None else "")]
    beside: Line = []
    if run is not first and first.step_ns is not None:
        beside = difference(first.step_ns, run.step_ns)
    return [*line, *fitted(beside, _DIFFERENCE - 2), (" ", "")]
