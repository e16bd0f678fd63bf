"""The command line: finds the command, runs it, and turns what goes wrong into one line.

Nothing is imported before it is needed: `--help` and `report` must not pay for the screen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

# Command -> module with `main(arguments) -> exit status`. Anything else is a file to look at.
COMMANDS = {"report": "tui.commands.report"}
_VIEW = "tui.commands.view"

DONE, INPUT_HAS_ERRORS, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `wltui` with these words. Exit status: 0 done, 1 input has errors, 2 wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--version"]:
        from simcore import __version__

        print(f"wltui {__version__}")
        return DONE
    module = COMMANDS.get(words[0]) if words else None
    if module is not None:
        return guarded(import_module(module).main, words[1:])
    return guarded(import_module(_VIEW).main, words)


def guarded(command: Callable[[list[str]], int], words: list[str]) -> int:
    """Run a command; an error the user can mend is a message on stderr, never a traceback."""
    from simcore.diagnostics import InputError, UsageError

    try:
        status = command(words)
        sys.stdout.flush()
    except InputError as error:
        print(error, file=sys.stderr)
        return INPUT_HAS_ERRORS
    except UsageError as error:
        print(f"wltui: {error}", file=sys.stderr)
        return WRONG_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`): point stdout elsewhere so that exit does not flush into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return status


if __name__ == "__main__":
    sys.exit(main())
