"""`y`: the command line that opens what is on the screen, and what it leaves out."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from simcore.analysis import Results
from simcore.parameters import Parameters, as_flags
from tui.frame import Glyphs, Line, cells, wrapped
from tui.panel import Panel
from tui.session import AnySession, Session

if TYPE_CHECKING:
    from simcore.replay import MeasuredResults
    from simcore.replay.scales import Scales


class Reproduced(NamedTuple):
    """command: the words of the shell. left_out: what they do not say, "" where they say all."""

    command: str
    left_out: str = ""


def reproduced(session: AnySession, against: Results | MeasuredResults | None) -> Reproduced | None:
    """The command line of the run on the screen, with the run beside it; None where no flags say the run.

    The flags of a command line are for both runs of a kind: where A has others than B, A is left out.
    """
    command = session.command()
    if command is None or against is None:
        return None if command is None else Reproduced(command)
    if _has_flags_of(session, against):
        words = ["--against", against.path]
        if session.measured and isinstance(against, Results):
            # A trace beside a workload is as measured: the flags are the workload's.
            words += as_flags(against.simulation.parameters)
        return Reproduced(f"{command} {' '.join(map(shlex.quote, words))}")
    return Reproduced(command, "--against is left out, A has other parameters")


def command_panel(found: Reproduced, glyphs: Glyphs) -> Panel:
    """A panel with all of the command line, in lines that a shell takes as one."""

    def lines(width: int) -> list[Line]:
        said: list[Line] = (
            [[(line, "warn")] for line in wrapped(found.left_out, width)] if found.left_out else []
        )
        return [*said, *([(line, "")] for line in shell_lines(found.command, width))]

    return Panel("The command line of this run", lines, glyphs)


def shell_lines(command: str, width: int) -> list[str]:
    r"""A command line in lines of at most `width` cells, each but the last continued with `\`.

    A word that is longer than a line is continued without a space, which a shell joins again.
    """
    room = max(width - 2, 10)
    lines = [""]
    for word in shlex.split(command):
        quoted = shlex.quote(word)
        if lines[-1] and len(lines[-1]) + 1 + len(quoted) > room:
            lines[-1] += " \\"
            lines.append("")
        elif lines[-1]:
            lines[-1] += " "
        while len(quoted) > room:
            # Quoted apart: a quote is not open over the end of a line.
            size = next(size for size in range(room, 0, -1) if len(shlex.quote(word[:size])) <= room)
            lines[-1] += shlex.quote(word[:size]) + "\\"
            lines.append("")
            word = word[size:]
            quoted = shlex.quote(word)
        lines[-1] += quoted
    return [cells(line, width) for line in lines]


def _has_flags_of(session: AnySession, against: Results | MeasuredResults) -> bool:
    """Whether one command line gives both runs."""
    if isinstance(session, Session):
        # A trace takes none of a workload's flags.
        return not isinstance(against, Results) or _parameters(against) == _parameters(session.current)
    from tui.measured.session import MeasuredSession

    assert isinstance(session, MeasuredSession)
    scales = session.current.scales
    # A replay that changes nothing is of --replay, which is for the opened run alone.
    return _changes(scales) == (None if isinstance(against, Results) else _changes(against.scales))


def _parameters(results: Results) -> Parameters:
    return results.simulation.parameters


def _changes(scales: Scales | None) -> Scales | None:
    from simcore.replay.scales import Scales

    return None if scales == Scales() else scales
