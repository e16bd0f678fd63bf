"""`wltui export`: writes a workload as parameters make it, or its timeline, to a file for other programs."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from simcore.diagnostics import UsageError, printable
from simcore.parameters import RunInput
from simcore.records import replace
from simcore.render.export import FORMATS, Export, Progress, Request, check_output, find_format, write
from simcore.runs import open_run
from tui.commands.arguments import (
    Parser,
    add_launch,
    add_model,
    add_model_map,
    add_parameters,
    add_run,
    parse_parameters,
)
from tui.commands.opened import is_results, open_from_arguments, open_input, select_parameters
from tui.printing import Controls

if TYPE_CHECKING:
    import argparse

    from simcore.render.export import ExportFormat
    from simcore.sources.inputs import Opened

# A shorter export is over before the line could be read.
_FIRST_DELAY_S = 0.3
_INTERVAL_S = 0.1
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """A line of progress on stderr if that is a terminal, else nothing."""

    def __init__(self, what: str, progress: Progress | None, stream: TextIO | None = None) -> None:
        self.what = what
        self.progress = progress
        self.stream = sys.stderr if stream is None else stream
        self.is_visible = False
        self.next_at = time.monotonic() + _FIRST_DELAY_S
        self.is_active = progress is not None and self.stream is not None and self.stream.isatty()

    def watch(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yields the same chunks, and updates the line as they are taken."""
        if not self.is_active:
            yield from chunks
            return
        for chunk in chunks:
            yield chunk
            if time.monotonic() >= self.next_at:
                self._show()

    def _show(self) -> None:
        progress = self.progress
        if progress is None:
            return
        share = 100 * progress.written_count // progress.total if progress.total else 0
        self.stream.write(Controls(f"{_CLEAR}{self.what}  {min(share, 100)} %"))
        self.stream.flush()
        self.is_visible = True
        self.next_at = time.monotonic() + _INTERVAL_S

    def clear(self) -> None:
        """Erases the line."""
        if self.is_visible:
            self.stream.write(Controls(_CLEAR))
            self.stream.flush()
            self.is_visible = False


_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STANDARD_OUTPUT = "-"
_ALL = "all"


def build_parser() -> Parser:
    """Returns the parser of `wltui export`."""
    names = ", ".join(f"{export_format.name} ({export_format.help})" for export_format in FORMATS)
    parser = Parser(
        prog="wltui export",
        description="Write a run for other programs or for people without wltui: its timeline (chrome, csv), "
        "a page for a browser (html), execution traces (chakra), its schedule (schedule), or the workload "
        "with the parameters in it (simai): degrees, micro-batches and compute scales become part of that "
        "file, and what it cannot hold is said. A measured run is written as it was measured, or replayed.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?",
        help="a workload file, a trace, a directory of traces, a model, or - for standard input",
    )  # fmt: skip
    add_model(parser)
    add_model_map(parser)
    add_launch(parser)
    add_run(parser, ranks=False)
    parser.add_argument("--format", metavar="FORMAT", required=True, help=names)
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True,
        help="the file to write, gzip if its name ends in .gz, or - for standard output",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it is there")
    parser.add_argument(
        "--ranks", metavar="RANKS",
        help="whose timelines, for example 0-7,64, or all (default: of chrome one rank of each class of "
        "equal ranks; of csv all, equal ones in one line)",
    )  # fmt: skip
    parser.add_argument(
        "--per-rank", action="store_true",
        help="make OUT a folder with a file for each rank; those of chrome are like PyTorch profiler traces, "
        "which HolisticTraceAnalysis reads",
    )  # fmt: skip
    parser.add_argument(
        "--against", metavar="FILE2",
        help="with html: two runs on one axis, A from FILE2 and B from FILE, like compare FILE2 FILE",
    )  # fmt: skip
    parser.add_argument(
        "--with", dest="with_words", metavar='"PARAMETERS"',
        help="with html: two runs on one axis, B with these parameters besides those of A: "
        '"--schedule zb-h1"',
    )  # fmt: skip
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Writes a workload or a timeline. Exit status 0; errors raise."""
    if "--with" in words:
        # Loaded here: most exports are of one run.
        from tui.commands.compare import attach_with_words

        words = attach_with_words(words)
    arguments = build_parser().parse_args(words)
    export_format = find_format(arguments.format, "--format")
    _check_output(arguments.output, arguments.per_rank or export_format.is_folder, arguments.force)
    every_rank = arguments.ranks == _ALL
    # Imported here: --help needs no ranks.
    from simcore.ranks import parse_ranks

    ranks = None if every_rank or arguments.ranks is None else parse_ranks("--ranks", arguments.ranks)
    parameters = parse_parameters(arguments)
    if arguments.file is not None and is_results(arguments.file):
        _write(_export_sweep(export_format, arguments), arguments.output, arguments.force)
        return 0
    if export_format.has_two:
        opened, request = _request_with_second(arguments)
        request = replace(request, ranks=ranks, every_rank=every_rank)
    else:
        _refuse_second(arguments)
        opened = open_from_arguments(arguments)
        request = Request(opened, parameters, ranks, every_rank, arguments.per_rank)
    export = export_format.build_export(request)
    _write(export, arguments.output, arguments.force)
    # After the file: an error in writing it is the only message.
    for diagnostic in (*opened.diagnostics, *export.diagnostics):
        print(diagnostic.text(), file=sys.stderr)
    return 0


def _export_sweep(export_format: ExportFormat, arguments: argparse.Namespace) -> Export:
    """Returns the page of a sweep's results. Raises `UsageError` for options that only runs have."""
    if not export_format.has_two:
        refused = f"FILE {printable(arguments.file, 60)}: found results of a sweep"
        raise UsageError(f"{refused}: --format html makes a page of them, wltui sweep --csv a table")
    _refuse_second(arguments)
    # Loaded here: runs have other pages.
    from simcore.sweeping.html_page import sweep_document
    from tui.commands.sweep import read_outcome

    outcome = read_outcome(arguments.file)
    page = sweep_document(outcome, arguments.file).encode("utf-8", "backslashreplace")
    return Export([page], "page of a sweep", ())


def _request_with_second(
    arguments: argparse.Namespace,
) -> tuple[Opened, Request]:
    """Returns (what was opened, the request for a page of its run, compared with that of --against or
    --with).
    """
    # Loaded here: the other formats have no second run.
    from simcore.comparison import Comparison
    from tui.commands.compare import override_parameters

    if arguments.per_rank:
        raise UsageError("--per-rank: a page has all its ranks; --ranks says whose lanes it has")
    run_input = RunInput(open_from_arguments(arguments), parse_parameters(arguments))
    if arguments.against is None:
        run = open_run(override_parameters(run_input, arguments.with_words))
        against = None if arguments.with_words is None else open_run(run_input)
    else:
        other = open_input(arguments.against)
        run = open_run(override_parameters(select_parameters(run_input, other), arguments.with_words))
        against = open_run(select_parameters(RunInput(other, run_input.parameters), run_input.opened))
    if against is not None:
        # Checks before anything is written whether they can be compared.
        Comparison(against, run)
    return run_input.opened, Request(run_input.opened, run_input.parameters, run=run, against=against)


def _refuse_second(arguments: argparse.Namespace) -> None:
    for flag, value in (("--against", arguments.against), ("--with", arguments.with_words)):
        if value is not None:
            raise UsageError(f"{flag}: found no place for a second run: --format html has one, of runs")


def _check_output(output: str, is_folder: bool, force: bool) -> None:
    """Raises for an obstacle to the output, before anything long begins."""
    if is_folder and output == _STANDARD_OUTPUT:
        raise UsageError("--per-rank and --format chakra make a folder: name it instead of -o -")
    if output != _STANDARD_OUTPUT:
        check_output(output, is_folder, force)


def _write(export: Export, output: str, force: bool) -> None:
    line = ProgressLine(f"export to {printable(output, 60)}", export.progress)
    # An interrupted export must not leave half of its output behind.
    for ending in _ENDING_SIGNALS:
        signal.signal(ending, _exit_on_signal)
    try:
        if output == _STANDARD_OUTPUT:
            chunks = export.chunks
            if export.as_read and sys.stdout.isatty():
                # All of them first: a terminal gets what is safe, or nothing.
                chunks = list(chunks)
                _check_safe(b"".join(chunks).decode("utf-8", "surrogateescape"))
            for chunk in line.watch(chunks):
                sys.stdout.buffer.write(chunk)
            return
        summary = write(export, output, force, line.watch)
    finally:
        line.clear()
    print(f"{printable(output)}: {summary}")


def _check_safe(text: str) -> None:
    """Raises `UsageError` for the first cell of a text that a terminal would not just show."""
    for line_number, line in enumerate(text.split("\n"), 1):
        for cell in line.split("\t"):
            if printable(cell, len(cell)) != cell:
                raise UsageError(
                    f"--output -: line {line_number} would have '{printable(cell, 60)}' as it is, which "
                    "must not "
                    "reach a terminal: name a file to write"
                )


def _exit_on_signal(signal_number: int, _: FrameType | None) -> None:
    """Ends the command as the signal would have, but after all clean-up."""
    # A second signal must not interrupt the clean-up. Not SIG_IGN: Python complains of a signal that came
    # before it.
    for ending in _ENDING_SIGNALS:
        signal.signal(ending, lambda *_: None)
    raise SystemExit(128 + signal_number)
