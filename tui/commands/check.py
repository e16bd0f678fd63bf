"""`wltui check`: the errors in files, in the form of compilers or as JSON."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import UsageError
from tui.commands.parser import Parser

if TYPE_CHECKING:
    from simcore.sources.checking import FileCheck

SCHEMA = "wltui.check/1"
_INPUT_HAS_ERRORS = 1
_DESCRIPTION = (
    "Read files and print all that is wrong or assumed in them, one line each: "
    "file:line:column: severity code message. A file without a finding prints nothing. "
    "The exit status is 1 if a finding is an error. docs/diagnostics.md explains every code."
)


def build_parser() -> Parser:
    """Returns the parser of `wltui check`."""
    parser = Parser(prog="wltui check", description=_DESCRIPTION)
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="workloads, traces, directories of them, models, pipeline schedules, or - for standard input",
    )
    parser.add_argument(
        "--save-map",
        metavar="MAP",
        help="write rules for the spans of a Chrome trace, to be edited and given as --trace-map MAP",
    )
    parser.add_argument("--force", action="store_true", help="overwrite MAP if it is there")
    parser.add_argument("--json", action="store_true", help=f"the findings as JSON (schema {SCHEMA})")
    return parser


def main(words: list[str]) -> int:
    """Checks files. Exit status 0, or 1 when one has an error; wrong usage raises."""
    arguments = build_parser().parse_args(words)
    # Not before: --help must answer at once.
    from simcore.sources.checking import check_file_of, check_schedule
    from simcore.sources.inputs import is_schedule_file
    from tui.commands.opened import STANDARD_INPUT, open_input

    paths: list[str] = arguments.files
    if paths.count(STANDARD_INPUT) > 1:
        raise UsageError("FILE -: standard input can be read once")
    if arguments.save_map is not None:
        _save_map(paths, arguments.save_map, arguments.force)
    file_values = []
    errors = 0
    for path in paths:
        if path != STANDARD_INPUT and is_schedule_file(path):
            checked = check_schedule(path)
        else:
            checked = check_file_of(partial(open_input, path))
        errors += checked.errors
        if arguments.json:
            file_values.append(_file_values(path, checked))
            continue
        for diagnostic in checked.diagnostics:
            print(diagnostic.text())
    if arguments.json:
        from simcore.render.report.json_text import json_text

        print(json_text({"schema": SCHEMA, "errors": errors, "files": file_values}))
    return _INPUT_HAS_ERRORS if errors else 0


def _save_map(paths: list[str], target: str, force: bool) -> None:
    """Writes a trace map to begin with."""
    from simcore.render.export import save
    from simcore.sources.trace_maps import make_trace_map

    if len(paths) != 1:
        raise UsageError(f"--save-map: found {len(paths)} files, expected the one that it is of")
    save(target, [make_trace_map(paths[0]).encode()], force)


def _file_values(path: str, checked: FileCheck) -> dict[str, Any]:
    opened = checked.opened
    return {
        "file": path,
        "format": opened.format if opened is not None else None,
        "rows": checked.rows,
        "errors": checked.errors,
        "diagnostics": [diagnostic.values() for diagnostic in checked.diagnostics],
    }
