"""`y`: the command line that opens what is on the screen, and what it leaves out."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from simcore.analysis import Results
from simcore.parameters import Parameters, as_flags
from tui.session import AnySession, Session

if TYPE_CHECKING:
    from simcore.measured.replay import MeasuredResults
    from simcore.measured.replay.scales import Scales


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
    from simcore.measured.replay.scales import Scales

    return None if scales == Scales() else scales
