"""`wltui FILE`: the screen; without a terminal, the text report."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simcore.diagnostics import InputError, UsageError, did_you_mean, is_unicode, printable
from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.records import replace
from tui.cli import INPUT_HAS_ERRORS, print_version
from tui.commands.arguments import (
    Parser,
    add_launch,
    add_model,
    add_parameters,
    add_run,
    opened_name,
    opening_options,
    parse_parameters,
    states_parameters,
)
from tui.commands.on_screen import FILES_OF_SNAPSHOT, check_open_files, is_terminal, read_user_keymap, show
from tui.commands.opened import STANDARD_INPUT, is_results, open_from_arguments, open_input
from tui.screens import SCREENS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from tui.app import WltuiApp
    from tui.session import Run, Session
    from tui.state.keeper import SessionFile


_DESCRIPTION = (
    "See where the step time of a distributed-training workload goes, and what it would be with other "
    "parameters. Without FILE a bundled example opens; without a terminal, or with one whose TERM is dumb or "
    "not set, the text report is printed."
)
_EXAMPLES = (
    ("wltui workload.txt", "where does the step go? q ends it, ? has the keys"),
    ("wltui traces/", "a measured run: a directory of rank traces"),
    (
        "wltui config.json --gpu h100 --world 64 --tp 4 --pp 2",
        "a model on a layout: its step, and does it fit",
    ),
)
# Each of these has its own --help.
_COMMANDS = (
    ("wltui report FILE", "the same as a page of text; --json for programs"),
    ('wltui compare FILE --with "--schedule zb-h1"', "two runs: what changes and why"),
    ("wltui calibrate FILE DIR", "parameters that fit a measured run"),
    ("wltui check FILE...", "what is wrong or assumed in files"),
    ("wltui export FILE --format chrome -o OUT", "a run for Perfetto and other programs"),
    ("wltui collective all-reduce --size 64MiB", "one collective alone"),
    ("wltui op product --m 8192 --n 8192 --k 8192", "one operation alone on a GPU"),
    ("wltui schedule 1f1b --stages 4 --microbatches 8", "a pipeline schedule alone"),
    ("wltui sweep --model NAME --world 256 --layouts", "many layouts, the best first"),
    ("wltui models", "the models that are known by name"),
    ("wltui keys", "every action with its keys"),
)


def _show_followed(run_input: RunInput, arguments: argparse.Namespace, first: str | None) -> int:
    """Shows what a running job writes, and what comes of it. run_input: the path with the parameters."""
    from simcore.sources.following import Follower
    from tui.following import Following, wait_for_first

    path = run_input.opened
    follower = Follower(path, opening_options(arguments))
    first_input = RunInput(wait_for_first(follower), run_input.parameters)
    session = _open_session(path, first_input, opening_options(arguments))
    gc.disable()

    def begin(app: WltuiApp) -> None:
        app.following = Following(app, follower)

    keeper = None if arguments.no_session else _keeper(path, arguments, session)
    return show(session, first, keeper, ascii_only=arguments.ascii, mouse=not arguments.no_mouse, begin=begin)


def _open_session(path: str, run_input: RunInput, options: OpeningOptions) -> Session:
    """Returns the session over a workload, simulated, or over a measured run, replayed if requested."""
    from simcore.runs import open_run
    from tui.session import Session

    def read(label: str) -> Run:
        return open_run(RunInput(open_input(path, replace(options, run=label, step=None)), Parameters()))

    return Session(open_run(run_input), read)


def _open_with_second(run_input: RunInput, arguments: argparse.Namespace) -> Session:
    """Returns the session, with the run of `--against` as the second one. run_input: the path with the
    parameters.
    """
    path, parameters = run_input.opened, run_input.parameters
    if arguments.against is None:
        return _open_session(
            path, RunInput(open_from_arguments(arguments), parameters), opening_options(arguments)
        )
    from simcore.comparison import Comparison
    from simcore.runs import open_run
    from tui.commands.opened import select_parameters

    first_input, other = open_from_arguments(arguments), open_input(arguments.against)
    session = _open_session(
        path, select_parameters(RunInput(first_input, parameters), other), opening_options(arguments)
    )
    against = open_run(select_parameters(RunInput(other, parameters), first_input))
    # Runs that cannot be compared are a line on the terminal, not a screen without a comparison.
    Comparison(against, session.current)
    session.against = against
    return session


def _print_comparison(run_input: RunInput, arguments: argparse.Namespace) -> None:
    """Prints the page of `wltui compare`, where there is no terminal."""
    from simcore.comparison import Comparison
    from simcore.render.report.comparison import comparison_page
    from simcore.runs import open_run
    from tui.commands.opened import print_warnings, select_parameters

    first_input, other = open_from_arguments(arguments), open_input(arguments.against)
    a = open_run(select_parameters(RunInput(other, run_input.parameters), first_input))
    b = open_run(select_parameters(RunInput(first_input, run_input.parameters), other))
    comparison = Comparison(a, b)
    print_warnings(other, first_input)
    print(comparison_page(comparison, False), end="")


def build_parser() -> Parser:
    """Returns the parser of `wltui` without a command."""
    parser = Parser(prog="wltui", description=_DESCRIPTION, commands=_COMMANDS, examples=_EXAMPLES)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="a workload file, a trace, a directory of traces, or a model's config.json or name",
    )
    add_model(parser)
    add_launch(parser)
    add_run(parser)
    parser.add_argument(
        "--against", metavar="FILE2",
        help="compare FILE (B) with this workload, trace or directory of traces (A): screen 6 opens first; "
        "parameters are those of workloads, or, of two traces, of both replays",
    )  # fmt: skip
    parser.add_argument(
        "--follow", action="store_true",
        help="FILE is a trainer's log, or a directory of traces, that a job is writing: look every second "
        "for new steps, files and lines; W stops and resumes it",
    )  # fmt: skip
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters alone")
    parser.add_argument(
        "--screen", metavar="NAME", help=f"open this screen first: {', '.join(SCREENS)} (default: the first)"
    )
    parser.add_argument(
        "--snapshot",
        metavar="KEYS",
        help="print the screen as it is after these keys, without a terminal: characters and names of keys "
        'with blanks between them, like "j Space ww /mlp Enter"; "" prints the first screen',
    )
    parser.add_argument("--size", metavar="COLUMNSxROWS", help="of the snapshot (default 120x36)")
    parser.add_argument("--svg", action="store_true", help="the snapshot as SVG, in colours (default: text)")
    parser.add_argument(
        "--no-mouse", action="store_true",
        help="leave the mouse to the terminal, which then selects text (so does Shift and drag)",
    )  # fmt: skip
    parser.add_argument(
        "--no-session", action="store_true",
        help="begin anew: restore nothing of the last session on FILE, and keep nothing",
    )  # fmt: skip
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Opens the screen on a workload file. Exit status 0; errors raise."""
    parser = build_parser()
    arguments, unparsed = parser.parse_known_args(words)
    if arguments.version:
        return print_version(words)
    parser.refuse_rest(arguments.file, unparsed)
    first = _first_screen(arguments)
    parameters = parse_parameters(arguments)
    if arguments.follow:
        _check_follow(arguments)
    if opened_name(arguments) is None and arguments.aicb_args is None and arguments.from_args is None:
        arguments.file = example_path()
    path = opened_name(arguments) or "AICB arguments"
    if is_results(path):
        return _show_results(path, arguments)
    if arguments.snapshot is not None:
        _print_snapshot(RunInput(path, parameters), arguments)
        return 0
    for flag, value in (("--size", arguments.size), ("--svg", arguments.svg)):
        if value:
            raise UsageError(f"{flag} is of --snapshot KEYS")
    if not is_terminal():
        if arguments.against is not None:
            _print_comparison(RunInput(path, parameters), arguments)
            return 0
        from tui.commands.report import print_report

        print_report(RunInput(open_from_arguments(arguments), parameters), ascii_only=arguments.ascii)
        return 0

    if arguments.follow:
        check_open_files("the screen")
        return _show_followed(RunInput(path, parameters), arguments, first)
    if path == STANDARD_INPUT:
        raise UsageError(
            "FILE -: the screen needs standard input for its keys; wltui report - and wltui check - read it"
        )
    check_open_files("the screen")
    # The file first: an error in it is a line on the terminal, not on a screen that closes at once.
    session = _open_with_second(RunInput(path, parameters), arguments)
    # Until the app is there: what is loaded for it stays, and one collection that goes through it takes 16 ms
    # of the 0.4 s before the first picture.
    gc.disable()

    keeper = None if arguments.no_session else _keeper(path, arguments, session)
    return show(session, first, keeper, ascii_only=arguments.ascii, mouse=not arguments.no_mouse)


def _check_follow(arguments: argparse.Namespace) -> None:
    """Raises `UsageError` where `--follow` has no screen, or nothing that grows."""
    if arguments.file is None or arguments.model is not None or arguments.file == STANDARD_INPUT:
        raise UsageError("--follow: FILE, a trainer's log or a directory of traces, is expected")
    for option, is_given in (
        ("--snapshot", arguments.snapshot is not None),
        ("--against", arguments.against is not None),
    ):
        if is_given:
            raise UsageError(f"--follow and {option}: give one of the two")
    if not is_terminal():
        raise UsageError(
            "--follow is of the screen: without a terminal wltui report FILE reads what is there"
        )


def _show_results(path: str, arguments: argparse.Namespace) -> int:
    """Shows a file of results on screen 7; without a terminal, prints its page."""
    from tui.commands.sweep import print_results, read_results

    for option, is_given in (("--against", arguments.against is not None),
                          ("parameters", states_parameters(arguments))):  # fmt: skip
        if is_given:
            raise UsageError(f"{option}: found results of a sweep, {printable(path)}, which have their own")
    if arguments.snapshot is None and not is_terminal():
        print_results(path)
        return 0
    if arguments.snapshot is None:
        check_open_files("the screen")
    else:
        _begin_snapshot()
    from tui.session import Session
    from tui.sweep.opening import open_fastest

    shown_sweep, reader = read_results(path)
    try:
        session = Session(open_fastest(shown_sweep, path))
    except (InputError, UsageError) as error:
        # The table without its timelines is better than nothing.
        print_results(path)
        print(f"wltui: {error}; so this is its page, not its screen", file=sys.stderr)
        return INPUT_HAS_ERRORS

    def begin(app: WltuiApp) -> None:
        app.sweeping.follow(shown_sweep, reader)

    first = _first_screen(arguments)
    if arguments.snapshot is not None:
        _print_screen(session, arguments, first or "sweep", begin)
        return 0
    keeper = None
    if not arguments.no_session:
        from tui.state.keeper import open_keeper

        keeper = open_keeper(path, "", session, False)
    first = first or (keeper.screen if keeper is not None and keeper.screen in SCREENS else None) or "sweep"
    return show(session, first, keeper, ascii_only=arguments.ascii, mouse=not arguments.no_mouse, begin=begin)


def _keeper(path: str, arguments: argparse.Namespace, session: Session) -> SessionFile | None:
    """Returns the keeper of what is open, with its session restored."""
    from tui.state.keeper import open_keeper

    return open_keeper(path, session.opened.setup.stamp or "", session, states_parameters(arguments))


def _begin_snapshot() -> None:
    # There is nothing to clean up yet, and Python swallows a KeyboardInterrupt in a callback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    check_open_files("--snapshot", FILES_OF_SNAPSHOT)
    # Textual reads it when it is imported: a picture must not depend on the terminal.
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "256"


def _print_snapshot(run_input: RunInput, arguments: argparse.Namespace) -> None:
    """Prints the screen as it is after the keys of `--snapshot`."""
    _begin_snapshot()
    from tui.snapshot import parse_keys, parse_size

    # Invalid keys are reported before anything is opened.
    parse_keys(arguments.snapshot)
    if arguments.size:
        parse_size(arguments.size)
    _print_screen(_open_with_second(run_input, arguments), arguments, _first_screen(arguments))


def _print_screen(
    session: Session,
    arguments: argparse.Namespace,
    first: str | None,
    begin: Callable[[WltuiApp], None] | None = None,
) -> None:
    from tui.app import WltuiApp
    from tui.snapshot import DEFAULT_SIZE, parse_keys, parse_size, take_snapshot

    keys = parse_keys(arguments.snapshot)
    size = parse_size(arguments.size) if arguments.size else DEFAULT_SIZE
    ascii_only = arguments.ascii or not is_unicode(sys.stdout.encoding)
    app = WltuiApp(session, ascii_only=ascii_only, keymap=read_user_keymap(), first=first)
    if begin is not None:
        begin(app)
    print(take_snapshot(app, keys, size, arguments.svg), end="" if not arguments.svg else "\n")


def _first_screen(arguments: argparse.Namespace) -> str | None:
    """Returns the screen to begin with. Raises `UsageError` for an unknown one."""
    if arguments.screen is not None and arguments.screen not in SCREENS:
        raise UsageError(
            f"--screen: found {printable(arguments.screen, 40)}, expected {', '.join(SCREENS)}"
            f"{did_you_mean(arguments.screen, SCREENS)}"
        )
    first: str | None = arguments.screen
    return "compare" if first is None and arguments.against is not None else first


_NAME = "002_gpt_1024npu.txt"


def example_path() -> str:
    """Returns the example's path: inside the installed package, or `fixtures/` of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "example" / _NAME
    return str(installed if installed.exists() else package.parent / "fixtures" / _NAME)
