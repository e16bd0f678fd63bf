"""The command line: finds the command, runs it, and turns errors into one line.

Nothing is imported before it is needed: `--help` and `report` must not pay for the screen.
"""

# An interrupt is silent from `main` on, and a traceback before it: so nothing is loaded here, not even
# `__future__` (hence the quotes). These two modules are loaded already.
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

# Command -> module with `main(arguments) -> exit status` and `build_parser()`, its words (for the completion
# and the man page). Any other first word is a file to open.
COMMANDS = {
    "report": "tui.commands.report",
    "check": "tui.commands.check",
    "compare": "tui.commands.compare",
    "calibrate": "tui.commands.calibrate",
    "export": "tui.commands.export",
    "sweep": "tui.commands.sweep",
    "schedule": "tui.commands.schedule",
    "collective": "tui.commands.collective",
    "op": "tui.commands.op",
    "models": "tui.commands.models",
    "keys": "tui.commands.keys",
}
_VIEW = "tui.commands.view"

SUCCESS, INPUT_HAS_ERRORS, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Runs `wltui` with these words. Exit status: 0 success, 1 input has errors, 2 wrong usage."""
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:
        # Here, around everything: before a command runs, most of the time is spent loading modules.
        return INTERRUPTED


def _main(words: list[str]) -> int:
    import gc
    from importlib import import_module

    # A run is many objects that live to its end: collecting after every 700 new ones costs 9 ms of 300.
    gc.set_threshold(50_000, 20, 20)
    if words[:1] == ["--version"]:
        return guarded(print_version, words)
    module = COMMANDS.get(words[0]) if words else None
    if module is not None:
        return guarded(import_module(module).main, words[1:])
    if words and _is_no_file(words[0]) and not _is_model(words[0]):
        return guarded(_refuse, words)
    return guarded(import_module(_VIEW).main, words)


def _is_no_file(word: str) -> bool:
    """Returns whether a first word can only be meant as a command: no existing file, no flag, and not like a
    file.
    """
    return word.replace("-", "").isalnum() and word[:1] != "-" and not os.path.lexists(word)


def _is_model(word: str) -> bool:
    """Returns whether a word is the name of a model."""
    from simcore.model.known_models import named_model

    return named_model(word) is not None


def _refuse(words: list[str]) -> int:
    """Raises `UsageError` for a first word that is neither a command nor a file."""
    from simcore.diagnostics import UsageError, did_you_mean, printable

    raise UsageError(
        f"found '{printable(words[0], 40)}', expected a file or one of the commands "
        f"{', '.join(COMMANDS)}{did_you_mean(words[0], COMMANDS)}"
    )


def print_version(words: list[str]) -> int:
    """Prints name and version."""
    from simcore import __version__

    print(f"wltui {__version__}")
    return SUCCESS


def guarded(command: "Callable[[list[str]], int]", words: list[str]) -> int:
    """Runs a command; an error that the user can correct is a message on stderr, never a traceback."""
    from tui.printing import PrintedStream

    if sys.stderr is None:
        # It was closed. `print` would use standard output instead, and a file could get its descriptor.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end
    streams = sys.stdout, sys.stderr
    sys.stderr = PrintedStream(sys.stderr)
    if sys.stdout is not None:
        sys.stdout = PrintedStream(sys.stdout)
    try:
        return _run_guarded(command, words)
    finally:
        sys.stdout, sys.stderr = streams


def _run_guarded(command: "Callable[[list[str]], int]", words: list[str]) -> int:
    """Runs a command, and prints its errors."""
    from simcore.diagnostics import InputError, UsageError

    if sys.stdout is None:
        _complain("wltui: standard output is closed")
        return INPUT_HAS_ERRORS
    if hasattr(sys.stdout, "reconfigure"):
        # A name from a file may have characters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            status = command(words)
        except SystemExit as leaving:
            # argparse exits after --help; its output must still be flushed below.
            status = int(leaving.code or SUCCESS)
        sys.stdout.flush()
    except InputError as error:
        _complain(str(error))
        return INPUT_HAS_ERRORS
    except UsageError as error:
        _complain(f"wltui: {error}")
        return WRONG_USAGE
    except MemoryError:
        _complain("wltui: there is not enough memory")
        return INPUT_HAS_ERRORS
    except BrokenPipeError:
        _forget(sys.stdout)
        return SUCCESS
    except OSError as error:
        _forget(sys.stdout)
        _complain(f"wltui: standard output cannot be written: {error.strerror or error}")
        return INPUT_HAS_ERRORS
    return status


def _complain(text: str) -> None:
    """Writes a message on standard error, if that can be written."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)


def _forget(stream: "TextIO") -> None:
    """Redirects a stream whose reader has gone or whose disk is full: exit must not flush into it
    once more.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
