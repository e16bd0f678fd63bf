"""`wltui sweep`: many runs of a model or a workload, and the few of them worth running."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from simcore.diagnostics import Cancelled, UsageError, printable
from simcore.records import replace
from simcore.units import plain_number, plural
from tui.commands.arguments import (
    Parser,
    add_launch,
    add_model,
    add_parameters,
    launch_of,
    opened_name,
    parse_parameters,
)
from tui.commands.opened import STANDARD_INPUT
from tui.printing import Controls

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from simcore.parameters import Parameters
    from simcore.sweeping.evaluating import Evaluator
    from simcore.sweeping.outcome import Outcome
    from simcore.sweeping.pareto_front import Rule
    from simcore.sweeping.point import Point
    from simcore.sweeping.results_file import ResultsReader
    from simcore.sweeping.running import Shard, SweepOptions, SweepProgress
    from simcore.sweeping.space import Space, SweptParameter
    from tui.sweep.sweep_result import SweepResult

_DESCRIPTION = (
    "Simulate many runs, each with other parameters, and say which are worth running: the fastest, those "
    "that no other beats in time, memory, GPUs and cost, what the best have in common, and what a simpler "
    "layout costs. --vary names values; --layouts takes every layout of a model that fits the GPUs and "
    "the batch (on 256 GPUs about 100,000, of which some 400 need be simulated: half a minute of a core)."
)
_EXAMPLES = (
    ("wltui sweep config.json --world 256 --gpu h100 --memory-limit 80GB --global-batch 1024 --layouts",
     "256 H100 with 80 GB each, as fast as possible: the page says which layouts are"),
    ("wltui sweep --model llama-3-70b --world 256 --global-batch 1024 --layouts --jobs 2 --time-limit 2m",
     "the same of a model by its name, in two processes, for two minutes at most"),
    ("wltui sweep --model llama-3-8b --world 64 --global-batch 256 --vary tp=1,2,4,8 --vary pp=1..8*2",
     "every combination of some values"),
    ("wltui sweep --model llama-3-70b --world 16,32,64,128 --global-batch 128 --layouts --by world --top 1",
     "the fewest GPUs on which it fits, and the fastest layout of each number"),
    ("wltui sweep --model llama-3-8b --world 64 --global-batch 256 --layouts --gpu h100,b200 --prices FILE",
     "which GPU does this step for the least money: FILE has lines like h100 = 2.5, $ for an hour"),
    ("wltui sweep --model llama-3-8b --world 64 --global-batch 64 --layouts --vary seq=8192..524288*2",
     "the longest sequence that fits"),
    ("wltui sweep --model llama-3-8b --world 8 --zero 3 --global-batch 64 --vary microbatch-size=1..8*2",
     "the largest micro-batch that fits"),
    ("wltui sweep workload.txt --vary microbatches=8..64*2 --vary schedule=1f1b,gpipe,zb-h1",
     "the same of a workload file"),
)  # fmt: skip
_DOCUMENT = """\
NAME=VALUES: a,b,c; FIRST..LAST (each whole number), FIRST..LAST+STEP, FIRST..LAST*FACTOR; values that have
commas have ; between them; `none` is as if nobody had given the parameter. NAME is any parameter below, or
dp. CONDITION: comparisons of names, numbers and words, joined by and, or, not, like tp*pp <= 64 and
schedule != gpipe. Of --layouts points are left out that need more memory than a GPU has, and those of which
it is certain that they are not among the best; --exhaustive simulates all. Every point is a line of -o
(schema wltui.sweep/1) with the command that runs it; a sweep that was stopped goes on with --resume, and
`wltui FILE` says again what came out."""
# Seconds between two messages of progress.
_UPDATE_INTERVAL_S = 0.5
# The same in a log, where messages do not overwrite each other.
_LOG_INTERVAL_S = 10.0
# Parameters that may have several values without --vary.
LISTED = ("world", "gpu", "cluster")
# What launch arguments state for their own layout, beside what --layouts varies.
_OF_ONE_LAYOUT = (
    "microbatches", "stage_layers", "pipeline_layout", "account_for_embedding", "account_for_loss",
    "recompute_layers", "recompute_rows", "etp", "shard_size", "reshard_after_forward", "pp_scatter",
)  # fmt: skip


def build_parser() -> Parser:
    """Returns the parser of `wltui sweep`."""
    parser = Parser(prog="wltui sweep", description=_DESCRIPTION, epilog=_DOCUMENT, examples=_EXAMPLES)
    parser.add_argument("file", metavar="FILE", nargs="?", help="a workload file, or a model's config.json")
    add_model(parser)
    add_launch(parser)
    group = parser.add_argument_group("points")
    group.add_argument(
        "--vary",
        metavar="NAME=VALUES",
        action="append",
        default=[],
        help="a parameter and its values (repeatable): every combination is a point",
    )
    group.add_argument(
        "--layouts",
        action="store_true",
        help="every tp, pp, cp, ep, dp, micro-batch size, schedule, virtual stages, recompute "
        "and zero of the trainer of --engine-preset (default megatron) that fit --world and "
        "--global-batch, with the overlaps of its recipes and sequence parallel where tp is above 1",
    )
    group.add_argument(
        "--where",
        metavar="CONDITION",
        action="append",
        default=[],
        help="only points for which this holds, like tp*pp<=16 (repeatable)",
    )
    group.add_argument(
        "--prune",
        action="store_true",
        help="leave out what does not fit in memory and what cannot be among the best (--layouts does so)",
    )
    group.add_argument("--exhaustive", action="store_true", help="simulate every point of --layouts")
    group = parser.add_argument_group("what is sought")
    group.add_argument(
        "--front",
        metavar="LIST",
        help="some of time,memory,gpus,cost: a point is on the front "
        "if no other is better in one of them and worse in none (default time,memory,gpus; "
        "with --price also cost)",
    )
    group.add_argument("--top", metavar="K", help="list the fastest K (default 10)")
    group.add_argument(
        "--by", metavar="NAME", help="list the fastest for each value of NAME: tp, schedule, gpus, ..."
    )
    group.add_argument(
        "--price", metavar="DOLLARS", help="price of a GPU for an hour: adds the cost of a step"
    )
    group.add_argument(
        "--prices",
        metavar="FILE",
        help="prices of GPUs for an hour, a TOML file like h100 = 2.5: which of --gpu h100,b200 costs least",
    )
    group = parser.add_argument_group("results")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write each point to FILE as soon as it is there, one line each",
    )
    group.add_argument("--resume", action="store_true", help="go on with FILE where it was stopped")
    group.add_argument(
        "--emit",
        metavar="PROJECT",
        help="print only the launch arguments of the fastest point: megatron (a command), torchtitan (TOML) "
        "or deepspeed (JSON); what they cannot state is a warning",
    )
    group.add_argument("--json", action="store_true", help="counts, best points and front as JSON")
    group.add_argument("--csv", action="store_true", help="all points as CSV")
    group.add_argument(
        "--merge",
        metavar="FILE",
        nargs="+",
        default=[],
        help="run nothing: join the parts of a sweep (into -o)",
    )
    group.add_argument(
        "--force", action="store_true", help="with --merge: overwrite the FILE of -o if it is there"
    )
    group.add_argument(
        "--screen",
        action="store_true",
        help="show the points on screen 7 while they come in: table, plot, timelines",
    )
    group = parser.add_argument_group("where points are run")
    group.add_argument("--jobs", metavar="N", help="processes on this machine (default: half of the cores)")
    group.add_argument(
        "--engine",
        metavar="dask://HOST:PORT|slurm:FILE",
        help="run on the workers of a Dask scheduler, or in Slurm jobs that a TOML file describes",
    )
    group.add_argument(
        "--time-limit",
        metavar="TIME",
        help="stop after so long, like 90s, 2m or 1h, and report what is known by then",
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        help="run only part I of N (the first is 1), for job arrays; --merge joins the parts",
    )
    add_parameters(parser)
    return parser


def main(words: list[str]) -> int:
    """Runs a sweep and prints its results. Exit status 0; 130 when it was interrupted; errors raise."""
    arguments = build_parser().parse_args(words)
    if arguments.json and arguments.csv:
        raise UsageError("--json beside --csv: give one of the two")
    if arguments.emit is not None:
        _check_emit(arguments)
    if arguments.merge:
        return _merge(arguments)
    if arguments.force:
        raise UsageError("--force is of --merge; a sweep that was stopped goes on with --resume")
    if arguments.resume and arguments.output is None:
        raise UsageError("--resume: -o FILE names the results to go on with")
    if arguments.screen:
        return _run_on_screen(arguments)
    return _run_sweep(arguments, _build_sweep(arguments))


def build_sweep(words: list[str]) -> SweepOptions:
    """Returns the sweep of these words. Raises `UsageError` where they give no points."""
    arguments = build_parser().parse_args(words)
    for option, value in (
        ("--merge", arguments.merge), ("--json", arguments.json), ("--csv", arguments.csv),
        ("--emit", arguments.emit),
    ):  # fmt: skip
        if value:
            raise UsageError(f"{option} is of the command line: wltui sweep {option} ...")
    return _build_sweep(arguments)


def _build_sweep(arguments: argparse.Namespace) -> SweepOptions:
    from simcore.sweeping.running import SweepOptions

    list_axes = [_take_list_axis(arguments, field) for field in LISTED]
    parameters = parse_parameters(arguments, _free_fields(arguments, list_axes))
    space = _build_space(arguments, parameters, [axis for axis in list_axes if axis is not None])
    rule, prunes = _build_rule(arguments)
    prices = _read_prices(arguments, space, prunes)
    if prices is not None and not rule.by and "gpu" in space.varied:
        # The fastest of each GPU is its cheapest.
        rule = replace(rule, by="gpu")
    jobs = _parse_count("--jobs", arguments.jobs, 4096)
    if jobs and arguments.engine is not None:
        raise UsageError("--jobs are processes here: give it or --engine")
    shard = _parse_shard(arguments.shard)
    evaluator = _build_evaluator(arguments, space, (rule, prunes))
    return SweepOptions(
        evaluator, _title(arguments), rule, prunes, jobs, arguments.engine, shard, arguments.output,
        arguments.resume, _parse_seconds(arguments.time_limit), prices,
    )  # fmt: skip


def _run_on_screen(arguments: argparse.Namespace) -> int:
    """Shows the sweep on screen 7, while it runs; returns the exit status."""
    from tui.commands.on_screen import check_open_files, is_terminal, show

    for option, value in (("--json", arguments.json), ("--csv", arguments.csv)):
        if value:
            raise UsageError(f"{option} beside --screen: give one of the two")
    if not is_terminal():
        return _run_sweep(arguments, _build_sweep(arguments))
    check_open_files("the screen")
    from tui.session import Session
    from tui.sweep.opening import first_run

    options = _build_sweep(arguments)
    if options.output is not None:
        # An output that cannot be written is a line on the terminal, not a screen that closes at once.
        from simcore.sweeping.results_file import ResultsFile

        ResultsFile(options.output, options.evaluator.definition.sweep, options.resume).close()
    session = Session(first_run(options.evaluator))
    return show(session, first="sweep", begin=lambda app: app.sweeping.first(options.title, lambda: options))


def _run_sweep(arguments: argparse.Namespace, options: SweepOptions) -> int:
    from simcore.sweeping.answers import Answers
    from simcore.sweeping.engines import be_nice
    from simcore.sweeping.outcome import Outcome
    from simcore.sweeping.pages import open_from, remaining_lines
    from simcore.sweeping.results_file import opened_words
    from simcore.sweeping.running import open_sweep
    from tui.sweep.opening import list_assumptions

    sweep = open_sweep(options)
    if words := opened_words(sweep.file, options.resume):
        print(f"wltui: {words}", file=sys.stderr)
    be_nice()
    outcome = Outcome(options.rule)
    answers = Answers(options.evaluator.definition.space.varied, options.prices)
    progress_line = _ProgressLine(sweep.progress, options.prunes)
    page = _csv_page(options.evaluator) if arguments.csv else None
    before = signal.signal(signal.SIGTERM, _interrupt)
    is_stopped = is_over = False
    try:
        if page is not None:
            print(page.head(), end="")
        for point in sweep.points():
            outcome.add(point)
            answers.add(point)
            if page is not None:
                print(page.line(point), end="")
            progress_line.update(outcome)
    except KeyboardInterrupt:
        is_stopped = True
    except Cancelled:
        is_over = True
    finally:
        # A second interrupt would leave processes behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sweep.close()
        progress_line.clear()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, before)
    if is_stopped or is_over:
        resume_text = ""
        if arguments.output is not None:
            resume_text = f"; {printable(arguments.output)} keeps them, and --resume goes on"
        why = f"the time limit of {printable(arguments.time_limit, 20)} is over" if is_over else "stopped"
        print(f"wltui: {why} after {plural(outcome.total, 'point')}{resume_text}", file=sys.stderr)
    if arguments.emit is not None:
        _print_launch(arguments, options, outcome)
    elif page is None:
        # The page of a part looks like one of all points.
        title, rest = options.title, []
        if is_stopped or is_over:
            title = f"{options.title}, stopped before the end"
            outcome.open_from = open_from(sweep.progress, options.prunes)
            rest = remaining_lines(outcome, sweep.progress, options.prunes)
        elif options.prunes:
            # What varies by hand is a page of figures, which its file says again.
            from simcore.sweeping.results_file import append_best
            from simcore.sweeping.robustness import find_robustness, find_spread

            outcome.robustness = find_robustness(options.evaluator, outcome)
            outcome.spread = find_spread(options.evaluator, outcome)
            if options.output is not None and options.shard.count == 1:
                append_best(options.output, options.evaluator.definition.sweep, outcome)
        outcome.assumed = list_assumptions(outcome, "", options.evaluator.workload)
        so_far = "So far: " if is_stopped or is_over else ""
        _print(
            arguments, outcome, title, sweep.progress.excluded, rest,
            [f"{so_far}{sentence}" for sentence in answers.sentences()],
        )  # fmt: skip
    return 130 if is_stopped else 0


def _check_emit(arguments: argparse.Namespace) -> None:
    """Raises `UsageError` for an unknown project, and for other forms of results beside it."""
    from simcore.diagnostics import did_you_mean
    from simcore.model.launch import PROJECTS

    if arguments.emit not in PROJECTS:
        name = printable(arguments.emit, 40)
        near = did_you_mean(name, PROJECTS)
        raise UsageError(f"--emit {name}: one of {', '.join(PROJECTS)} is expected{near}")
    for option in ("json", "csv", "screen", "merge"):
        if getattr(arguments, option):
            raise UsageError(f"--{option} beside --emit: give one of the two")


def _print_launch(arguments: argparse.Namespace, options: SweepOptions, outcome: Outcome) -> None:
    """Prints the launch arguments of the fastest point. Raises `UsageError` where there is none."""
    from simcore.model.launch import LaunchParameters, write_launch
    from simcore.sweeping.evaluating import candidate_of

    model = getattr(options.evaluator.workload.maker, "model", None)
    if model is None:
        raise UsageError("--emit: found a workload file, which has its rows; a model would fit")
    if not outcome.front.best:
        raise UsageError(f"--emit: {outcome.count_lines()[0]}, and none of them fits: nothing to write")
    launch = launch_of(arguments)
    rest = launch.rest if launch is not None and launch.project == arguments.emit else None
    parameters = candidate_of(outcome.front.best[0].point).parameters.part(LaunchParameters)
    text, unstated = write_launch(arguments.emit, model, parameters, rest)
    print(text, end="")
    if unstated:
        names = printable(", ".join(name.replace("_", " ") for name in unstated), 300)
        print(f"wltui: the arguments of {arguments.emit} do not state: {names}", file=sys.stderr)


def _print(
    arguments: argparse.Namespace,
    outcome: Outcome,
    title: str,
    excluded: int = 0,
    rest: Sequence[str] = (),
    answers: Sequence[str] = (),
) -> None:
    from simcore.sweeping.pages import json_values, text_page

    if arguments.json:
        from simcore.render.report.json_text import json_text

        print(json_text(json_values(outcome, excluded, rest, answers)))
        return
    print(text_page(outcome, title, excluded, rest, answers), end="")


def read_outcome(path: str) -> Outcome:
    """Returns the results of a sweep, of its file; it warns of an incomplete last line."""
    from simcore.sweeping.results_file import dropped_words
    from tui.sweep.opening import list_assumptions

    shown_sweep, reader = read_results(path)
    if reader.unread_bytes:
        print(f"wltui: {dropped_words(path, reader.unread_bytes)}", file=sys.stderr)
    outcome = shown_sweep.outcome
    outcome.assumed = list_assumptions(outcome, path)
    return outcome


def print_results(path: str) -> None:
    """Prints the page of a file of results: without a terminal, `wltui results.jsonl`."""
    from simcore.sweeping.pages import text_page

    print(text_page(read_outcome(path), printable(path)), end="")


def read_results(path: str) -> tuple[SweepResult, ResultsReader]:
    """Returns the points of a file of results, and the reader of those that are still being written."""
    from simcore.sweeping.results_file import ResultsReader
    from tui.sweep.sweep_result import FILE, SweepResult

    reader = ResultsReader(path)
    points = reader.read_new()
    shown_sweep = SweepResult(printable(os.path.basename(path)), _rule_of(points), FILE)
    shown_sweep.add_points(points)
    shown_sweep.take_best(reader.best)
    return shown_sweep, reader


def _merge(arguments: argparse.Namespace) -> int:
    from simcore.sweeping.outcome import Outcome
    from simcore.sweeping.results_file import merge_files, write_all
    from simcore.sweeping.running import merge_shards
    from tui.sweep.opening import list_assumptions

    points = merge_shards(merge_files(arguments.merge))
    if arguments.output is not None:
        size = write_all(arguments.output, points, arguments.force)
        print(f"{printable(arguments.output)}: {plural(len(points), 'point')}, {size} B", file=sys.stderr)
    outcome = Outcome(_rule_of(points), points)
    outcome.assumed = list_assumptions(outcome, arguments.merge[0])
    _print(arguments, outcome, f"{len(arguments.merge)} files")
    return 0


def _rule_of(points: list[Point]) -> Rule:
    """Returns the rule of points that were read: that by which they were left out, else the default."""
    from simcore.sweeping.pareto_front import Rule, objectives_of, rule_of

    if points and points[0].rule:
        return rule_of(points[0].rule)
    price = next((point.cost for point in points if point.cost is not None), None)
    return Rule(objectives_of(None, price))


# -- arguments ---------------------------------------------------------------------------


def _take_list_axis(arguments: argparse.Namespace, field: str) -> SweptParameter | None:
    """Returns the axis of a parameter that was given several values, and removes it from the arguments."""
    from simcore.sweeping.space import axis_of_list

    axis = axis_of_list(getattr(arguments, field), field)
    if axis is not None:
        setattr(arguments, field, None)
    return axis


def _free_fields(arguments: argparse.Namespace, list_axes: Sequence[SweptParameter | None]) -> set[str]:
    """Returns the parameters of --from-args that the sweep varies: their values there do not count."""
    fields = {axis.field for axis in list_axes if axis is not None}
    fields |= {text.partition("=")[0].strip().removeprefix("--").replace("-", "_") for text in arguments.vary}
    if "dp" in fields:
        fields.add("world")
    if arguments.layouts and launch_of(arguments) is not None:
        from simcore.sweeping.layouts import VARIED

        fields |= {*VARIED, *_OF_ONE_LAYOUT}
    return fields


def _build_space(
    arguments: argparse.Namespace, parameters: Parameters, list_axes: list[SweptParameter]
) -> Space:
    from simcore.sweeping.space import Space, parse_axis, parse_conditions

    axes = [*list_axes, *(parse_axis(text) for text in arguments.vary)]
    if not axes and not arguments.layouts:
        raise UsageError("nothing varies: --vary NAME=VALUES, or --layouts of a model (wltui sweep --help)")
    return Space(parameters, tuple(axes), parse_conditions(arguments.where), arguments.layouts)


def _build_rule(arguments: argparse.Namespace) -> tuple[Rule, bool]:
    """Returns the objective, and whether points are left out by it."""
    from simcore.sweeping.pareto_front import DEFAULT_TOP, Rule, objectives_of
    from simcore.sweeping.space import VALUE_NAMES

    if arguments.prune and arguments.exhaustive:
        raise UsageError("--prune beside --exhaustive: give one of the two")
    price = _parse_price(arguments)
    by = (arguments.by or "").removeprefix("--").replace("-", "_")
    if by and by not in VALUE_NAMES:
        from simcore.diagnostics import did_you_mean

        raise UsageError(
            f"--by {printable(arguments.by, 40)}: no parameter of this name{did_you_mean(by, VALUE_NAMES)}"
        )
    top = _parse_count("--top", arguments.top, 1_000_000) or DEFAULT_TOP
    rule = Rule(objectives_of(arguments.front, price), top, by)
    return rule, arguments.prune or (arguments.layouts and not arguments.exhaustive)


def _parse_price(arguments: argparse.Namespace) -> float | None:
    if arguments.price is None:
        return None
    price = plain_number(arguments.price)
    if price is None or not 0 < price <= 1e9:
        raise UsageError(f"--price {printable(arguments.price, 40)}: $ of a GPU for an hour, like 2.5")
    return price


def _read_prices(arguments: argparse.Namespace, space: Space, prunes: bool) -> dict[str, float] | None:
    """Returns the prices of the GPUs of a sweep; None without --prices."""
    if arguments.prices is None:
        return None
    from simcore.model.resolving import DEFAULT_GPU
    from simcore.sweeping.prices import read_prices

    if arguments.price is not None:
        raise UsageError("--price beside --prices: give one of the two")
    if prunes and {"world", "dp"} & {*space.varied}:
        raise UsageError(
            "--prices: of several numbers of GPUs the fastest is not the cheapest, and slower ones are left "
            "out: one --world would fit, or --exhaustive"
        )
    axes = {axis.field: axis.values for axis in space.axes}
    gpus = [str(gpu or DEFAULT_GPU) for gpu in axes.get("gpu", (space.base_parameters.gpu,))]
    return read_prices(arguments.prices, gpus)


def _parse_count(option: str, text: str | None, most: int) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= most:
        raise UsageError(f"{option} {printable(text, 40)}: a whole number from 1 to {most} is expected")
    return int(text)


_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def _parse_seconds(text: str | None) -> float | None:
    """Returns the seconds of `90s`, `2m`, `1.5h`."""
    if text is None:
        return None
    figure = text.strip().rstrip("smhin")
    value, unit = plain_number(figure), _SECONDS.get(text.strip()[len(figure) :])
    if value is None or unit is None or not 0 < value * unit <= 1e8:
        raise UsageError(f"--time-limit {printable(text, 40)}: a time like 90s, 2m or 1h is expected")
    return value * unit


def _parse_shard(text: str | None) -> Shard:
    from simcore.sweeping.running import Shard

    if text is None:
        return Shard()
    index, slash, count = text.partition("/")
    fits = all(word.isascii() and word.isdecimal() and len(word) < 7 for word in (index, count))
    if not slash or not fits or not 1 <= int(index) <= int(count):
        raise UsageError(f"--shard {printable(text, 40)}: I/N is expected, part I of N, like 1/8 to 8/8")
    return Shard(int(index), int(count))


def _build_evaluator(arguments: argparse.Namespace, space: Space, rule: tuple[Rule, bool]) -> Evaluator:
    """Returns what runs the points of the input. Raises as opening it does."""
    from simcore.sweeping.evaluating import build_evaluator
    from tui.commands.opened import open_from_arguments

    if arguments.file == STANDARD_INPUT:
        raise UsageError("FILE -: each point names its file in its command: a file is expected")
    arguments.run = None
    source = open_from_arguments(arguments)
    sought, prunes = rule
    name = opened_name(arguments)
    opened = () if name is None else (name,) if arguments.model is None else ("--model", name)
    rule_words = sought.text if prunes else ""
    return build_evaluator(source, opened, space, _parse_price(arguments), rule_words)


def _title(arguments: argparse.Namespace) -> str:
    return printable(os.path.basename(opened_name(arguments) or "AICB arguments"), 60)


def _csv_page(evaluator: Evaluator) -> Any:
    from simcore.sweeping.pages import CSV_LAYOUT, CsvPage

    return CsvPage([*dict.fromkeys([*CSV_LAYOUT, *evaluator.definition.space.varied])])


def _interrupt(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


class _ProgressLine:
    """The progress of a sweep on standard error: on a terminal a line that is overwritten, else a line now
    and then.
    """

    def __init__(self, progress: SweepProgress, prunes: bool) -> None:
        from tui.sweep.sweep_result import Pace

        self._progress = progress
        self._pace = Pace(progress, prunes)
        self._last = time.monotonic()
        self._has_shown_count = False
        self._shows = sys.stderr is not None and sys.stderr.isatty()

    def update(self, outcome: Outcome) -> None:
        """Shows the progress, if the interval has passed."""
        now = time.monotonic()
        if not self._has_shown_count and self._progress.candidates is not None:
            self._has_shown_count = True
            if self._progress.total is None:
                words = f"wltui: {plural(self._progress.candidates, 'layout')} to look at"
                print(f"{words}; those that can be among the best are simulated", file=sys.stderr, flush=True)
        if now - self._last < (_UPDATE_INTERVAL_S if self._shows else _LOG_INTERVAL_S):
            return
        self._last = now
        words = self._pace.describe()
        best = outcome.front.best
        if best:
            from simcore.units import duration

            words += f"; best {duration(best[0].point.step_time_ns or 0)}"
        if self._shows:
            print(Controls(f"\r{words:<78}"), end="", file=sys.stderr, flush=True)
        else:
            print(f"wltui: {words}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erases the line."""
        if self._shows:
            print(Controls(f"\r{' ' * 78}\r"), end="", file=sys.stderr, flush=True)
