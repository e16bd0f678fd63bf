"""A lane shows what its time is: each kind has as many columns as it has time, over any window and width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import simcore as wl
from simcore.trace.lane_spans import KINDS
from tests.tui.pseudo_terminal import ROOT
from tui.frame import ASCII, BLOCKS, Line
from tui.timeline.column_kinds import NOTHING, ColumnShares
from tui.timeline.drawing import draw_lane
from tui.timeline.lanes import LaneSource, SpanLane
from tui.timeline.window import Window

SHARED = ROOT.parent / "shared"
FWD, BWD, WG, BUBBLE, IDLE = (KINDS.index(name) for name in ("fwd", "bwd", "wg", "bubble", "idle"))
EIGHTHS = "▏▎▍▌▋▊▉"
# Kinds that leave their part of an edge blank.
THIN = {"bubble", "wait", "host"}
# Kinds whose glyphs are as wide as a cell.
FILLED = {"fwd", "bwd", "wg", "recompute", "opt", "kernel"}


def expected_columns(lane: SpanLane, window: Window, columns: int) -> dict[str, float]:
    """How many columns of time each kind has, gradients together; "" is what no span fills."""
    edges = window.edges(columns)
    sums = lane.content.column_sums(edges)
    result: dict[str, float] = {}
    for column, (first, last) in enumerate(pairwise(edges)):
        filled = sum(values[column] for values in sums.values())
        # Of spans that overlap each has its part of the column.
        scale = max(filled, last - first)
        for kind, values in sums.items():
            name = "bwd" if kind == WG else KINDS[kind]
            result[name] = result.get(name, 0) + values[column] / scale
        result[""] = result.get("", 0) + 1 - filled / scale
    # A blank is idle or nothing.
    result["idle"] = result.pop("idle", 0) + result.pop("", 0)
    return result


def drawn_columns(line: Line, partly: str) -> dict[str, float]:
    """How many columns each kind is drawn in; traces count as blank, edges for what they show."""
    cells = [(char, role) for text, role in line for char in text]
    result: dict[str, float] = {}

    def add(role: str, share: float) -> None:
        name = role.removesuffix(" reversed")
        name = "bwd" if name == "wg" else name if name else "idle"
        result[name] = result.get(name, 0) + share

    for column, (char, role) in enumerate(cells):
        left, on, right = role.partition(" on ")
        share = (EIGHTHS.find(char) + 1) / 8
        before = cells[column - 1][1].removesuffix(" reversed") if column else ""
        behind = cells[column + 1][1].removesuffix(" reversed") if column + 1 < len(cells) else ""
        name = role.removesuffix(" reversed")
        # Some kinds have such a block as the glyph of a whole cell.
        is_edge = char != {"copy": "▍", "host": "▎"}.get(name, "" if name in FILLED else "▌")
        if char == partly or (char == " " and not role):
            add("idle", 1)
        elif on:
            add(left, share)
            add(right, 1 - share)
        elif share and is_edge and role != name and not (char == "▏" and before == name):
            # A blank part at the left.
            add(before if before in THIN else "idle", share)
            add(name, 1 - share)
        elif share and is_edge and role == name and not (char == "▉" and behind == name):
            add(name, share)
            add(behind if behind in THIN else "idle", 1 - share)
        else:
            add(name, 1)
    return result


def check_shares(lane: SpanLane, window: Window, columns: int) -> None:
    expected = expected_columns(lane, window, columns)
    for glyphs in (ASCII, BLOCKS):
        drawn = drawn_columns(draw_lane(lane, window, columns, glyphs, colour=True).line, glyphs.partly)
        for kind in expected.keys() | drawn.keys():
            difference = abs(drawn.get(kind, 0) - expected.get(kind, 0))
            assert difference <= max(1, columns / 100) + 0.3, (kind, drawn, expected, lane.key, window)


def check_run(run: object, random: Random, lanes: int = 6, windows: int = 4) -> None:
    """The shares of some lanes of a run over some windows, the whole of it too."""
    source = LaneSource(run)  # type: ignore[arg-type]
    track_ids = source.track_ids
    for track_id in random.sample(list(track_ids), min(lanes, len(track_ids))):
        for lane in (source.lane(track_id), *source.streams(track_id)):
            if not lane.by_majority:
                continue
            for number in range(windows):
                columns = random.randint(40, 200)
                window = Window.whole(max(source.length, 1))
                if number:
                    zoom = 4 ** random.randint(0, 6)
                    window = window.zoomed(random.randint(0, source.length), 1, zoom, columns)
                check_shares(lane, window, columns)


MODELS = [
    ("llama-3-70b", {"gpu": "h100", "world": 64, "tp": 2, "pp": 4, "cp": 4, "schedule": "1f1b",
                     "global_batch": 128, "sequence_parallel": True, "zero": 1}),
    ("llama-3-8b", {"gpu": "h100", "world": 16, "tp": 2, "pp": 4, "schedule": "zb-h1", "global_batch": 32}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("model", "setup"), MODELS)
def test_lanes_of_models_show_their_shares(model: str, setup: dict[str, object]) -> None:
    check_run(wl.load(model).run(**setup)._run, Random(1))


def test_forward_has_its_columns_where_it_fills_most_of_none() -> None:
    """Forward is 28 % of the time of every column: by what fills most, all of them were backward."""
    model, setup = MODELS[0]
    source = LaneSource(wl.load(model).run(**setup)._run)
    whole = Window.whole(source.length)
    for track_id in source.track_ids:
        for glyphs, colour in ((ASCII, False), (ASCII, True), (BLOCKS, True)):
            line = draw_lane(source.lane(track_id), whole, 97, glyphs, colour).line
            text = "".join(text for text, _ in line)
            assert 24 <= text.count(glyphs.fills["fwd"]) <= 29


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_lanes_of_points_of_a_sweep_show_their_shares(tp: int) -> None:
    setup = {"gpu": "h100", "world": 64, "tp": tp, "pp": 8 // tp, "global_batch": 64}
    check_run(wl.load("llama-3-8b").run(**setup)._run, Random(tp), lanes=3)


FILES = [
    "seeds/000*", "seeds/001*", "seeds/002*", "seeds/003*", "seeds/004*", "corpus/rank_trace/*",
    "corpus/simai/*", "corpus/kineto/*", "corpus/nsys/*", "corpus/megatronapp/*", "corpus/astra1/*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", FILES)
def test_lanes_of_files_show_their_shares(pattern: str) -> None:
    if not SHARED.is_dir():
        pytest.skip("../shared is not there")
    random = Random(pattern)
    paths = sorted(path for path in SHARED.glob(pattern))
    for path in random.sample(paths, min(2, len(paths))):
        try:
            run = wl.load(str(path)).run()
        except wl.InputError:
            continue
        check_run(run._run, random, lanes=3, windows=3)


def column_sums(parts: Sequence[tuple[int, int]], width: int) -> tuple[dict[int, list[int]], list[int]]:
    """(ns of each kind by column, edges) of (kind, ns) one behind the other; NOTHING is a gap."""
    length = sum(ns for _, ns in parts)
    columns = max(-(-length // width), 1)
    edges = [width * column for column in range(columns + 1)]
    sums: dict[int, list[int]] = {}
    at = 0
    for kind, ns in parts:
        while ns:
            column = at // width
            part = min(ns, width * (column + 1) - at)
            if kind != NOTHING:
                sums.setdefault(kind, [0] * columns)[column] += part
            at, ns = at + part, ns - part
    return sums, edges


def gradients_together(kinds: Iterable[int]) -> list[int]:
    return [BWD if kind == WG else kind for kind in kinds]


KIND = st.sampled_from([FWD, BWD, WG, BUBBLE, IDLE, KINDS.index("tp"), KINDS.index("dp"), NOTHING])
PARTS = st.lists(st.tuples(KIND, st.integers(1, 60) | st.integers(1, 900)), min_size=1, max_size=200)


@settings(max_examples=300)
@given(PARTS, st.booleans())
@example(parts=[(FWD, 340), (BWD, 360)] * 20, has_few_runs=False)
@example(parts=[*[(FWD, 50), (BWD, 50)] * 41, (BUBBLE, 2000)], has_few_runs=True)
def test_each_kind_has_as_many_columns_as_it_has_time(
    parts: list[tuple[int, int]], has_few_runs: bool
) -> None:
    """Planted: what fills most of each column; what a kind lacks forgotten at a full column; a kind that goes
    on for three columns too many.
    """
    width = 100
    sums, edges = column_sums(parts, width)
    kinds = gradients_together(ColumnShares(sums, edges).shared(has_few_runs=has_few_runs))
    columns = len(kinds)
    total: dict[int, int] = {}
    for kind, ns in parts:
        total[BWD if kind == WG else kind] = total.get(BWD if kind == WG else kind, 0) + ns
    total[NOTHING] = total.get(NOTHING, 0) + columns * width - sum(total.values())
    for kind in total.keys() | set(kinds):
        assert abs(kinds.count(kind) - total.get(kind, 0) / width) <= max(1, columns / 100)
    for column, kind in enumerate(kinds):
        full = [one for one, values in sums.items() if values[column] == width]
        assert not full or gradients_together(full) == [kind]


@settings(max_examples=200)
@given(st.integers(60, 190), st.integers(60, 190), st.integers(0, 300))
def test_short_spans_that_take_turns_make_no_long_ones(work: int, gap: int, first: int) -> None:
    """Passes of 1.2 columns were now and then a block of four, a straggler that nobody ran. Planted: what
    fills most of each.
    """
    passes = [(BWD, work), (BUBBLE, gap)] * 20
    sums, edges = column_sums([(BUBBLE, first % gap + 1), *passes], 100)
    kinds = ColumnShares(sums, edges).shared()
    for kind, length in ((BWD, work), (BUBBLE, gap)):
        inner = [(one, len(list(same))) for one, same in groupby(kinds)][1:-1]
        assert all(count < length / 100 + 3 for one, count in inner if one == kind)
