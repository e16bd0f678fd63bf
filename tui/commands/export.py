"""`wltui export`: the workload as parameters make it, in a file of another or the same format."""

from __future__ import annotations

import sys

from simcore.diagnostics import UsageError, printable
from simcore.export import FORMATS, save
from simcore.units import byte_size
from simcore.workload import Workload
from tui.commands.arguments import Parser, add_parameters, parameters_from
from tui.commands.inputs import open_input

_STANDARD_OUTPUT = "-"


def main(words: list[str]) -> int:
    """Write a workload. Exit status 0; errors raise."""
    names = ", ".join(f"{known.name} ({known.help})" for known in FORMATS)
    parser = Parser(
        prog="wltui export",
        description="Write a workload back as the parameters make it: degrees, micro-batches and scales of "
        "compute become part of the file; what a file has no words for is said.",
    )
    parser.add_argument("file", metavar="FILE", help="a workload file, or - for standard input")
    parser.add_argument("--format", metavar="FORMAT", required=True, help=names)
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="the file to write, or - for standard output"
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it is there")
    add_parameters(parser)
    arguments = parser.parse_args(words)
    chosen = next((known for known in FORMATS if known.name == arguments.format), None)
    if chosen is None:
        names = ", ".join(known.name for known in FORMATS)
        raise UsageError(f"--format {printable(arguments.format, 60)}: one of {names} is expected")
    parameters = parameters_from(arguments)
    workload = open_input(arguments.file)
    if not isinstance(workload, Workload):
        raise UsageError(f"FILE {printable(arguments.file, 60)}: found a measured run, expected a workload")
    export = chosen.export(workload, parameters)
    for found in (*workload.diagnostics, *export.diagnostics):
        print(found.text(), file=sys.stderr)
    if arguments.output == _STANDARD_OUTPUT:
        for piece in export.pieces:
            sys.stdout.buffer.write(piece)
        return 0
    size = save(arguments.output, export.pieces, arguments.force)
    print(f"{printable(arguments.output)}: {export.what}, {byte_size(size)}")
    return 0
