"""`wltui schedule`: pipeline schedules drawn without a workload, at unit times, as text, SVG or JSON."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, printable
from simcore.program.schedules import SCHEDULES
from tui.commands.parser import Parser
from tui.printing import Controls

if TYPE_CHECKING:
    from simcore.render.report.schedule_picture import Picture, PictureOptions, UnitTimes

SCHEMA = "wltui.schedule/1"
_NAMES = ", ".join(name for name, schedule in SCHEDULES.items() if schedule.pipelined)
_DESCRIPTION = (
    "Draw pipeline schedules alone: what each stage does when, its bubble, and how many micro-batches it "
    "holds. Micro-batches are equal and communication is free. One unit of time is one pass of a micro-batch "
    "through a whole stage; a chunk of half a stage takes half. docs/schedules.md says what each is for."
)
_MOST_STAGES, _MOST_COUNT, _MOST_TIME = 256, 10_000, 1000.0
_LEAST_WIDTH, _MOST_WIDTH, _USUAL_WIDTH = 40, 2000, 80


def build_parser() -> Parser:
    """Returns the parser of `wltui schedule`."""
    parser = Parser(prog="wltui schedule", description=_DESCRIPTION)
    parser.add_argument(
        "schedules", metavar="NAME|FILE", nargs="*",
        help=f"{_NAMES}, or a schedule file (PyTorch's CSV, or `0: F0 B0 ...` a line a stage)",
    )  # fmt: skip
    parser.add_argument(
        "--compare", metavar="NAMES",
        help="draw these too, on one axis: names and files, separated by commas",
    )  # fmt: skip
    parser.add_argument("--stages", metavar="P", help="pipeline stages (default 4, or the file's)")
    parser.add_argument("--microbatches", metavar="M", help="micro-batches (default 2 P, or the file's)")
    parser.add_argument(
        "--virtual-stages", metavar="V", help="chunks of a stage, for interleaved and its like (default 2)"
    )
    parser.add_argument(
        "--times", metavar="F,B,W",
        help="units that forward, input gradient and weight gradient of a micro-batch take (default 1,1,1); "
        "a backward that is not split takes both",
    )  # fmt: skip
    parser.add_argument(
        "--steps", metavar="N", help="steps, none of which waits for the end of the one before"
    )
    parser.add_argument(
        "--overlap-fwd-bwd", action="store_true", help="pairs of forward and backward begin and end together"
    )
    parser.add_argument(
        "--equal-memory", action="store_true",
        help="the same batch in the largest micro-batches with which none holds more than the first schedule",
    )  # fmt: skip
    parser.add_argument("--svg", metavar="OUT", help="write an SVG file, or - for standard output")
    parser.add_argument("--force", action="store_true", help="overwrite OUT if it is there")
    parser.add_argument("--json", action="store_true", help=f"the figures as JSON (schema {SCHEMA})")
    parser.add_argument(
        "--width", metavar="N", help="columns of the text (default: those of the terminal, else 80)"
    )
    return parser


def main(words: list[str]) -> int:
    """Draws schedules. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    # Not before: --help must answer at once.
    from simcore.render.report.schedule_picture import PictureOptions, picture_of

    names = [*arguments.schedules, *filter(None, (arguments.compare or "").split(","))]
    if not names:
        raise UsageError(f"NAME|FILE: one of {_NAMES} is expected, or a schedule file")
    if arguments.json and arguments.svg:
        raise UsageError("--json and --svg: one of them is expected")
    times = _parse_times(arguments.times)
    picture_options = [
        PictureOptions(
            name,
            _parse_count("--stages", arguments.stages, _MOST_STAGES),
            _parse_count("--microbatches", arguments.microbatches, _MOST_COUNT),
            _parse_count("--virtual-stages", arguments.virtual_stages, _MOST_STAGES),
            times,
            _parse_count("--steps", arguments.steps, 100) or 1,
            arguments.overlap_fwd_bwd,
        )
        for name in dict.fromkeys(names)
    ]
    width = _parse_width(arguments.width)
    pictures = [picture_of(picture_options[0])]
    pictures += (
        _pictures_at_equal_memory(picture_options, pictures[0])
        if arguments.equal_memory
        else map(picture_of, picture_options[1:])
    )
    if arguments.json:
        from simcore.render.report.json_text import json_text
        from simcore.render.report.schedule_picture import pictures_json

        print(json_text({"schema": SCHEMA, "schedules": pictures_json(pictures)}))
    elif arguments.svg:
        _write_svg(pictures, arguments.svg, arguments.force)
    else:
        from simcore.render.report.schedule import pictures_text

        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        sys.stdout.write(Controls(pictures_text(pictures, width, colour)))
    return 0


def _pictures_at_equal_memory(picture_options: list[PictureOptions], first: Picture) -> list[Picture]:
    """Returns the other schedules with the memory of the first."""
    from simcore.render.report.schedule_picture import find_equal_memory, picture_of

    pictures = []
    for options in picture_options[1:]:
        fitting = find_equal_memory(options, first.in_flight, first.microbatches)
        if fitting is None:
            raise UsageError(
                f"--equal-memory: {printable(options.schedule, 60)} holds more than the {first.in_flight:g} "
                f"micro-batches of {printable(first.name, 60)}, however small its own are: without the "
                "flag it would fit"
            )
        pictures.append(picture_of(fitting))
    return pictures


def _write_svg(pictures: list[Picture], output: str, force: bool) -> None:
    from simcore.render.export import save
    from simcore.render.report.schedule import pictures_svg

    data = pictures_svg(pictures).encode()
    if output == "-":
        sys.stdout.buffer.write(data)
        return
    size = save(output, [data], force)
    print(f"{printable(output, 60)}: {size} bytes", file=sys.stderr)


def _parse_count(option: str, text: str | None, most: int) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or not 1 <= int(text) <= most:
        raise UsageError(f"{option} {printable(text, 40)}: a whole number from 1 to {most} is expected")
    return int(text)


def _parse_times(text: str | None) -> UnitTimes:
    from simcore.render.report.schedule_picture import UnitTimes
    from simcore.units import plain_number

    if text is None:
        return UnitTimes()
    values = [plain_number(figure) for figure in text.split(",")]
    if len(values) != 3 or any(value is None or value > _MOST_TIME for value in values) or not any(values):
        raise UsageError(
            f"--times {printable(text, 40)}: three numbers are expected, of 0 or more, up to 1000: F,B,W"
        )
    return UnitTimes(*(float(value or 0) for value in values))


def _parse_width(text: str | None) -> int:
    if text is not None:
        if not (text.isascii() and text.isdecimal()) or not _LEAST_WIDTH <= int(text[:9]) <= _MOST_WIDTH:
            raise UsageError(
                f"--width {printable(text, 40)}: a whole number from {_LEAST_WIDTH} to {_MOST_WIDTH} "
                "is expected"
            )
        return int(text)
    return max(shutil.get_terminal_size((_USUAL_WIDTH, 24)).columns, _LEAST_WIDTH)
