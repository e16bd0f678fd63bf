"""`y`: the command line that opens what is on the screen, and what it leaves out."""

from __future__ import annotations

from simcore.parameters import RunInput
from simcore.records import NamedTuple
from simcore.shell_words import quote_word, split_words
from tui.commands.opened import select_parameters
from tui.frame import Glyphs, Line, cells, wrapped
from tui.panel import Panel
from tui.session import Run, Session

TITLE = "The command line of this run"
LEFT_OUT = "--against is left out, A and B have different parameters"


class CommandLine(NamedTuple):
    """A command line of the shell."""

    command: str
    left_out: str = ""
    """What the command does not reproduce, "" for nothing."""


def build_command_line(session: Session) -> CommandLine:
    """Returns the command line of the run on the screen, with the run that it is compared with.

    The flags of a command line are for both runs of a kind: where A has others than B, A is left out.
    """
    command, against = session.command(), session.against
    if against is None:
        return CommandLine(command)
    flags = _shared_flags(session, against)
    if flags is None:
        return CommandLine(command, LEFT_OUT)
    return CommandLine(f"{command} {' '.join(map(quote_word, ['--against', against.path, *flags]))}")


def command_panel(reproduction: CommandLine, glyphs: Glyphs) -> Panel:
    """Returns a panel with all of the command line, in lines that a shell takes as one."""

    def lines(width: int) -> list[Line]:
        warning_lines: list[Line] = (
            [[(line, "warn")] for line in wrapped(reproduction.left_out, width)]
            if reproduction.left_out
            else []
        )
        return [*warning_lines, *([(line, "")] for line in shell_lines(reproduction.command, width))]

    return Panel(TITLE, lines, glyphs)


def shell_lines(command: str, width: int) -> list[str]:
    """Returns a command line in lines of at most `width` cells, each but the last continued with a backslash.

    A word that is longer than a line is continued without a space, which a shell joins again.
    """
    room = max(width - 2, 10)
    lines = [""]
    for word in split_words(command):
        quoted = quote_word(word)
        if lines[-1] and len(lines[-1]) + 1 + len(quoted) > room:
            lines[-1] += " \\"
            lines.append("")
        elif lines[-1]:
            lines[-1] += " "
        while len(quoted) > room:
            # Quoted separately: no quote is open over the end of a line.
            size = next((size for size in range(room, 1, -1) if len(quote_word(word[:size])) <= room), 1)
            lines[-1] += quote_word(word[:size]) + "\\"
            lines.append("")
            word = word[size:]
            quoted = quote_word(word)
        lines[-1] += quoted
    return [cells(line, width) for line in lines]


def _shared_flags(session: Session, against: Run) -> list[str] | None:
    """Returns the flags that give A together with those of B; None where one command line cannot
    give both.
    """
    current = session.current
    expected = current.parameters.as_flags(), against.parameters.as_flags()
    for parameters in (current.parameters, against.parameters):
        flags_of_b = select_parameters(
            RunInput(current.setup.source, parameters), against.setup.source
        ).parameters
        flags_of_a = select_parameters(
            RunInput(against.setup.source, parameters), current.setup.source
        ).parameters
        if (flags_of_b.as_flags(), flags_of_a.as_flags()) == expected:
            return [] if parameters is current.parameters else parameters.as_flags()
    return None
