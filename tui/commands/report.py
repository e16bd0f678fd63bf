"""`wltui report`: the run as text or JSON."""

from __future__ import annotations

import sys

from simcore.analysis import Results
from simcore.parameters import Parameters
from simcore.simulation import simulate
from tui.commands.arguments import Parser, add_parameters, parameters_from
from tui.commands.inputs import open_input


def main(words: list[str]) -> int:
    """Print the report of a workload file. Exit status 0; errors raise."""
    parser = Parser(prog="wltui report", description="Simulate one step of a workload and say where it goes.")
    parser.add_argument("file", metavar="FILE", help="a workload file, or - for standard input")
    parser.add_argument("--json", action="store_true", help="the figures as JSON (schema wltui.report/1)")
    add_parameters(parser)
    arguments = parser.parse_args(words)
    print_report(arguments.file, parameters_from(arguments), arguments.json)
    return 0


def print_report(path: str, parameters: Parameters, as_json: bool = False, ascii_only: bool = False) -> None:
    """Simulate and print."""
    results = Results(simulate(open_input(path), parameters))
    if as_json:
        import json

        from simcore.report.as_json import json_report

        print(json.dumps(json_report(results), indent=1, allow_nan=False))
        return
    from simcore.report.as_text import text_report

    print(text_report(results, ascii_only or not is_unicode(sys.stdout.encoding)), end="")


def is_unicode(encoding: str | None) -> bool:
    """Whether text of this encoding can hold the block glyphs."""
    return (encoding or "").lower().replace("-", "").startswith("utf")
