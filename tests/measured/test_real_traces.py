"""Seed 004 and the real sets of the corpus, against what their text says when it is read by other means."""

from __future__ import annotations

import ast
import re
import time
from fractions import Fraction
from pathlib import Path

import pytest

from simcore.measured import MeasuredRun
from simcore.measured.columns import MEASURED, RankTrace
from simcore.measured.lanes import lane_kinds, lane_spans, rank_spans
from simcore.measured.summary import rank_times
from simcore.parameters import OpeningOptions
from simcore.sources.inputs import open_input
from tests.workload.texts import FIXTURES, shared_folder

from .traces import noted

SEED = FIXTURES / "004_megatron_rank7_trace.txt"
# Directory -> (ranks, measured step time, ns: the last timestamp less the first start, by hand).
SETS = {
    "wd8_tp2_pp4": (8, 3_855_490_000),
    "wd4_tp2_pp2": (4, 903_700_000),
    "wd4_tp1_pp2": (4, 180_300_000),
    "schedule_plan": (2, 179_030_000),
}


def opened(path: Path) -> MeasuredRun:
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    return run


def ns(text: str) -> int:
    """ms as ns."""
    exact = Fraction(text) * 10**6
    assert exact.denominator == 1
    return int(exact)


def value(text: str, key: str) -> str:
    found = re.search(rf"(?:^|[,(]){key}=([^,)\]]*)", text)
    assert found is not None
    return found[1]


def assert_is_the_file(rank: RankTrace, text: str, first: int) -> None:
    """Every operation and sub-operation of the file, with start = end - duration; `first`: ns of time 0."""
    ops, subs = rank.ops, rank.subs
    place = 0
    lines = text.splitlines()
    assert len(ops) == len(lines)
    for index, line in enumerate(lines):
        front, back = line.split(",sub_operations=")
        assert line.startswith(f"rank:{rank.rank}:{ops.name[index]}(")
        end, length = ns(value(front, "timestamp")), ns(value(front, "duration"))
        assert (ops.start[index], ops.end[index]) == (end - length - first, end - first)
        assert (str(ops.group[index]), str(ops.state[index])) == (
            value(front, "group_kind"),
            value(front, "mg_state"),
        )
        assert ops.batch[index] == int(value(front, "batch_id"))
        assert rank.stage == int(value(front, "stage_id"))
        for sub in ast.literal_eval(back.rstrip()[:-1]):
            end, length = ns(value(sub, "timestamp")), ns(value(sub, "duration"))
            assert (subs.start[place], subs.end[place]) == (end - length - first, end - first)
            assert (subs.parent[place], subs.group[place]) == (index, value(sub, "group"))
            assert subs.collective[place] == value(sub, "comm_func")
            place += 1
    assert place == len(subs)


def assert_is_tidy(run: MeasuredRun) -> None:
    """Spans of a lane do not overlap and sub-operations lie inside their parent, within 0.02 ms."""
    for rank in run.ranks:
        ops, subs = rank.ops, rank.subs
        for index, parent in enumerate(subs.parent):
            assert subs.start[index] >= ops.start[parent] - 20_000
            assert subs.end[index] <= ops.end[parent] + 20_000
        lanes = [rank_spans(run, rank)]
        for kind in lane_kinds(run, rank):
            spans = lane_spans(rank, kind)
            lanes.append(spans)
        for spans in lanes:
            for end, start in zip(spans.end, spans.start[1:], strict=False):
                assert start >= end - 20_000
        assert set(ops.timing) <= {MEASURED}


def test_seed_004_is_one_rank_with_every_operation_and_sub_operation_of_the_file() -> None:
    run = opened(SEED)
    assert (len(run.ranks), run.ops, run.subs, noted(run)) == (1, 9, 48, [])
    assert (run.ranks[0].rank, run.ranks[0].stage, run.microbatches) == (7, 3, 1)
    assert_is_the_file(run.ranks[0], SEED.read_text(), ns("4509232423.74") - ns("629.77"))
    assert run.step_time_ns == ns("4509235645.35") - ns("4509231793.97") == 3_851_380_000
    assert_is_tidy(run)
    # 1274 ms in the all-reduce of the embedding group, which waits for stage 0.
    time = rank_times(run)[0]
    assert (time.ns["embedding"], time.ns["pp"]) == (ns("1274.09"), ns("629.77") + ns("2.9"))
    assert sum(time.ns.values()) == run.step_time_ns
    assert lane_kinds(run, run.ranks[0]) == ["compute", "tp", "pp", "dp", "ep"]


@pytest.mark.parametrize("name", SETS)
def test_a_set_of_the_corpus_opens_whole_and_soon(name: str) -> None:
    folder = shared_folder("corpus/rank_trace") / name
    began = time.perf_counter()
    run = opened(folder)
    taken = time.perf_counter() - began
    count, step_ns = SETS[name]
    assert (len(run.ranks), run.step_time_ns, run.concurrent) == (count, step_ns, True)
    assert taken < 2
    first = min(
        ns(value(line.split(",sub_op")[0], "timestamp")) - ns(value(line, "duration"))
        for rank in run.ranks
        for line in Path(rank.path).read_text().splitlines()
    )
    for rank in run.ranks:
        assert_is_the_file(rank, Path(rank.path).read_text(), first)
    assert_is_tidy(run)
    for rank_time in rank_times(run):
        assert sum(rank_time.ns.values()) == run.step_time_ns


def test_the_directory_with_two_runs_has_both() -> None:
    folder = str(shared_folder("corpus/rank_trace") / "wd4_tp2_pp2")
    newest = open_input(folder)
    older = open_input(folder, OpeningOptions("20250320144110"))
    assert isinstance(newest, MeasuredRun)
    assert isinstance(older, MeasuredRun)
    assert (newest.stamp, older.stamp) == ("20250321125500", "20250320144110")
    assert older.step_time_ns == 909_220_000
    assert noted(newest) == ["other-runs"]


def test_every_file_of_the_corpus_opens_alone() -> None:
    files = sorted(shared_folder("corpus/rank_trace").rglob("*.txt"))
    assert len(files) == 22
    for path in files:
        run = opened(path)
        assert run.step_time_ns > 0
        assert len(run.ranks) == 1
