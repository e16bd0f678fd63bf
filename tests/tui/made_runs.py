"""Runs for the tests of the screen: seed 002, and small ones made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import Workload, open_workload
from tests.strategies import Cell, Row, layer, make_workload
from tests.tui.pseudo_terminal import ROOT, SEED
from tui.frame import BLOCKS, Line, text_of
from tui.session import Run
from tui.summary.frame import draw as draw_summary
from tui.summary.model import SummaryModel
from tui.timeline.arrangement import Arrangement
from tui.timeline.frame import TimelineFrame
from tui.timeline.lanes import Lane, LaneKey, LaneSource
from tui.timeline.model import TimelineModel
from tui.timeline.window import Window


def run(workload: Workload, **parameters: object) -> SimulatedRun:
    """`workload` simulated with these parameters."""
    return SimulatedRun(simulate(workload, Parameters(**parameters)))  # type: ignore[arg-type]


@cache
def seed_workload() -> Workload:
    """Seed 002: 1024 ranks, 16 stages. The path is a name alone: no test may depend on where it lies."""
    workload = open_workload(str(ROOT / SEED))
    return open_seed_as(workload, "002_gpt_1024npu.txt")


def open_seed_as(workload: Workload, path: str) -> Workload:
    """The same workload under another path."""
    from msgspec.structs import replace

    return replace(workload, path=path)


def seed(**parameters: object) -> SimulatedRun:
    """Seed 002 with these parameters. What hangs on the assumptions of the file as it is is found, on the
    schedule with the changes: no test depends on which other one has asked for it. With parameters, of which
    there are 40 in these tests, that takes twice as long as the run: tests of the notes and sentences of such
    a run ask for it themselves.
    """
    return _changed_seed(**parameters) if parameters else _plain_seed()


@cache
def _plain_seed() -> SimulatedRun:
    results = run(seed_workload())
    results.what_if()
    return results


# A run takes 3 MB with what is found in it; all of these tests were 100.
@lru_cache(4)
def _changed_seed(**parameters: object) -> SimulatedRun:
    return run(seed_workload(), **parameters)


def two_stages(microbatches: int = 2) -> Workload:
    """A pipeline of two stages, tp 2 and dp 2, with collectives and transfers of one magnitude."""
    block = [
        Row("embedding_layer", Cell(400, "ALLREDUCE", "tp", 2000)),
        Row(
            "attention_column",
            Cell(1500, "ALLGATHER", "tp", 4000),
            Cell(700, "ALLREDUCE", "tp", 3000),
            Cell(800, "REDUCESCATTER", "dp", 6000),
        ),
        Row("mlp_row", Cell(900, "REDUCESCATTER", "tp", 4000), Cell(1100), Cell(600)),
    ]
    rows = [
        Row("grad_gather", wg=Cell(0, "ALLGATHER", "dp", 9000)),
        *block * microbatches,
        layer("optimizer1", 500),
    ]
    return make_workload(rows, tp=2, pp=2, all_gpus=8, pp_comm=30000)


@cache
def small() -> SimulatedRun:
    """`two_stages`, on a network so slow that every kind of account appears."""
    return run(two_stages(), dim=("switch:2:4:50", "switch:4:2:300"))


@cache
def plain_run() -> SimulatedRun:
    """`two_stages` with nothing given: what is assumed is among its notes."""
    return run(two_stages())


def four_stages(**parameters: object) -> SimulatedRun:
    """Seed 002 on 4 stages with 4 micro-batches: its words and panels, and what changes of it bring is found
    in a fifth of the time.
    """
    return _changed_four_stages(**parameters) if parameters else _four_stages()


@cache
def _four_stages() -> SimulatedRun:
    return _changed_four_stages.__wrapped__()


@lru_cache(4)
def _changed_four_stages(**parameters: object) -> SimulatedRun:
    return run(seed_workload(), pp=4, microbatches=4, **parameters)


@cache
def lonely(ns: int = 5000) -> SimulatedRun:
    """One rank with one layer that computes `ns` forward and nothing else."""
    return run(make_workload([layer("only_layer", ns)], tp=1, pp=1, all_gpus=1))


@cache
def many_layers(count: int = 200) -> SimulatedRun:
    """One rank: a long layer, then `count` short ones."""
    return run(
        make_workload([layer("long_layer", 100_000), *[layer("s", 100)] * count], tp=1, pp=1, all_gpus=1)
    )


def some_runs() -> list[SimulatedRun]:
    """Runs of very different sizes, down to a step of 0 ns."""
    return [seed(), small(), lonely(), lonely(1), lonely(0)]


def all_lanes(results: SimulatedRun) -> Iterator[Lane]:
    """Every lane that can be shown."""
    source = LaneSource(results)
    for number in source.track_ids:
        yield source.lane(number)
        yield from source.streams(number)


def lane_of(results: SimulatedRun, number: int, stream: str | None = None) -> Lane:
    """One lane."""
    source = LaneSource(results)
    return next(one for one in [source.lane(number), *source.streams(number)] if one.stream == stream)


def line_text(line: Line) -> str:
    """The characters of a line."""
    return text_of([line])


def plain(frame: Sequence[Line]) -> str:
    """A frame as text for a snapshot: blanks at the ends of lines left out."""
    return "\n".join(line.rstrip() for line in text_of(frame).split("\n")) + "\n"


def drawn(model: TimelineModel, width: int = 120, height: int = 33) -> str:
    """The frame of the timeline as text."""
    return text_of(TimelineFrame(BLOCKS, colour=True).draw(model, width, height))


def drawn_summary(results: Run, width: int = 120, height: int = 33) -> str:
    """The frame of the summary as text, what would help most in it. A screen has three rows more."""
    model = SummaryModel(results)
    model.set_what_if(results.what_if())
    return text_of(draw_summary(model, width, height, BLOCKS, ""))


def naive_cell(lane: Lane, first_ns: int, last_ns: int) -> dict[int, int]:
    """ns of each category in a stretch, span by span; spans of one category that overlap count once."""
    spans = lane.content.cell_spans
    found: dict[int, int] = {}
    reached: dict[int, int] = {}
    for start, end, category in zip(spans.start, spans.end, spans.category, strict=True):
        begin = max(start, first_ns, reached.get(category, first_ns))
        over = min(end, last_ns)
        if over > begin:
            found[category] = found.get(category, 0) + over - begin
            reached[category] = over
    return found


def window_of(results: SimulatedRun, first_ns: int, span_ns: int) -> Window:
    """A stretch of a run's step."""
    step = max(results.simulation.step_time_ns, 1)
    return Window(first_ns, span_ns, step)


def reveal(arrangement: Arrangement, rank: int) -> bool:
    """The cursor to the lane that has this rank alone, as a jump to it does; False for no rank of the run."""
    source = arrangement.source
    number = source.of.lane_track_id(rank)
    if number is None:
        return False
    alone = source.count_ranks(number) == 1
    arrangement.show_lane(LaneKey((), number) if alone else source.lane(number, rank).key)
    return True
