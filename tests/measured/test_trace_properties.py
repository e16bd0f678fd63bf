"""What is written is read back; any bytes end as a run or as an error for the user."""

from __future__ import annotations

import itertools
from dataclasses import replace
from io import BytesIO

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import InputError, printable
from simcore.measured import MeasuredRun, read_run
from simcore.measured.columns import UNTIMED, RankTrace
from simcore.measured.lanes import lane_kinds, lane_spans, rank_spans
from simcore.measured.summary import op_figures, rank_times, sub_figures
from simcore.measured.vocabulary import GROUPS
from simcore.render.report.pages import run_json, run_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import read_input
from simcore.sources.measured import IDLE
from simcore.trace.run import sum_ns, sum_path
from tests.measured.paths import path_rows

from .traces import Op, Sub

_OPS = (
    "get_batch", "forward_step", "loss_func", "backward_step", "recv_forward", "send_forward",
    "recv_backward", "send_backward", "dp_allreduce", "ep_allreduce", "pep_allreduce", "exp_dp_allreduce",
    "optimizer_step", "tp_allreduce", "exp_all_to_all", "an_op_of_its_own",
)  # fmt: skip
_STATES = (None, "warmup", "help", "steady", "cooldown", "finalize")
_MOST_NS = 10**15
# Texts that a description can be made of: no `,key=` outside brackets, which would be a key.
_words = st.sampled_from(
    [
        "All-reduce / reduce-scatter",
        "finish(a, b=1)",
        ", ",
        " ",
        "[1, 2]",
        "(x=y)",
        "ñ漢",
        "'",
        '"',
        "\\",
        "-",
    ]
)
_descriptions = st.lists(_words, max_size=5).map("".join).map(str.strip).filter(bool)
_shapes = st.none() | st.lists(st.integers(0, 10**6), max_size=5).map(str)
_dtypes = st.sampled_from([None, "torch.float32", "torch.bfloat16", "torch.int64", "weird"])


def ms(ns: int) -> str:
    """ns as ms with as many decimals as it takes."""
    return f"{ns // 10**6}.{ns % 10**6:06d}".rstrip("0").rstrip(".")


@st.composite
def subs(draw: st.DrawFn) -> tuple[Sub, int, int]:
    """A sub-operation with its start and end."""
    length = draw(st.integers(1, _MOST_NS))
    end = draw(st.integers(length, 2 * _MOST_NS))
    sub = Sub(
        ms(end), ms(length), draw(st.sampled_from([None, "linear_fwd", "a'b", "normlinear_bwd_async"])),
        "allreduce", draw(st.sampled_from([None, "tp", "dp", "exp", "my"])),
        draw(st.sampled_from([None, "x"])), draw(_shapes), draw(_dtypes),
    )  # fmt: skip
    return sub, end - length, end


@st.composite
def ops(draw: st.DrawFn) -> tuple[Op, int, int, list[tuple[Sub, int, int]]]:
    """An operation with its start and end, and its sub-operations with theirs."""
    length = draw(st.integers(1, _MOST_NS))
    end = draw(st.integers(length, 2 * _MOST_NS))
    inside = draw(st.lists(subs(), max_size=3))
    op = Op(
        draw(st.sampled_from(_OPS)), ms(end), ms(length), draw(st.none() | st.integers(0, 99)),
        draw(st.sampled_from(_STATES)), draw(st.sampled_from([None, *GROUPS])), 2,
        draw(st.none() | _descriptions), draw(_shapes), draw(_dtypes), tuple(sub for sub, _, _ in inside),
    )  # fmt: skip
    return op, end - length, end, inside


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 3), ops(), st.booleans()), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_what_is_written_is_read_back(
    lines: list[tuple[int, tuple[Op, int, int, list[tuple[Sub, int, int]]], bool]], ending: str
) -> None:
    text = ending.join(op.other_line(rank) if other else op.line(rank) for rank, (op, *_), other in lines)
    run = read_run("trace.txt", text.encode())
    assert {rank.rank for rank in run.ranks} == {rank for rank, *_ in lines}
    origin = min(start for _, (_, start, _, _), _ in lines)
    for trace in run.ranks:
        mine = [(number, one) for number, (rank, one, _) in enumerate(lines) if rank == trace.rank]
        first = min(start for _, (_, start, _, _) in mine)
        by = origin if run.concurrent else first
        assert_columns(trace, mine, by)


def assert_columns(
    trace: RankTrace, lines: list[tuple[int, tuple[Op, int, int, list[tuple[Sub, int, int]]]]], by: int
) -> None:
    """The columns are what was written, times less `by`."""
    columns, inside = trace.ops, trace.subs
    assert trace.stage == 2
    written = [op for _, (op, *_) in lines]
    assert columns.name == [op.name for op in written]
    assert columns.state == [op.state for op in written]
    assert columns.description == [op.description for op in written]
    assert (columns.shape, columns.dtype) == ([op.shape for op in written], [op.dtype for op in written])
    assert list(columns.batch) == [-1 if op.batch is None else op.batch for op in written]
    assert [have for have, op in zip(columns.group, written, strict=True) if op.group is not None] == [
        op.group for op in written if op.group is not None
    ]
    times = list(zip(columns.start, columns.end, strict=True))
    assert times == [(start - by, end - by) for _, (_, start, end, _) in lines]
    expected = [
        (index, sub, start, end)
        for index, (_, (_, _, _, subs)) in enumerate(lines)
        for sub, start, end in subs
    ]
    assert list(inside.parent) == [index for index, _, _, _ in expected]
    assert inside.name == [sub.name or sub.source for _, sub, _, _ in expected]
    assert inside.group == [sub.group for _, sub, _, _ in expected]
    assert inside.collective == [sub.collective for _, sub, _, _ in expected]
    assert inside.shape == [sub.shape for _, sub, _, _ in expected]
    times = list(zip(inside.start, inside.end, strict=True))
    assert times == [(start - by, end - by) for _, _, start, end in expected]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), ops()), min_size=1, max_size=10))
def test_a_ranks_time_is_booked_once_and_its_lanes_have_every_span(
    lines: list[tuple[int, tuple[Op, int, int, list[tuple[Sub, int, int]]]]],
) -> None:
    run = read_run("trace.txt", "\n".join(op.line(rank) for rank, (op, *_) in lines).encode())
    for time in rank_times(run):
        assert sum(time.ns.values()) == run.step_time_ns
        assert min(time.ns.values()) >= 0
    assert sum(one.count for one in op_figures(run)) == run.ops
    assert sum(one.count for one in sub_figures(run)) == run.subs
    for rank in run.ranks:
        items = [item for kind in lane_kinds(run, rank) for item in lane_spans(rank, kind).item]
        fused = sum(known == 3 for known in rank.ops.timing)
        assert len(items) == len(set(items)) == len(rank.ops) + len(rank.subs) - fused
        spans = rank_spans(run, rank)
        assert list(spans.start) == sorted(spans.start)
        reached = 0
        for start, end, item in zip(spans.start, spans.end, spans.item, strict=True):
            # No hole; and a gap is where nothing runs.
            assert start == reached if item < 0 else start <= reached
            reached = max(reached, end)
        assert reached == run.length


SMALL = "\n".join(
    [
        Op("recv_forward", "101.25", "1.25", group="pp", shape="[2, 3]", dtype="torch.float32").line(3),
        Op("forward_step", "110.50", "9.0", subs=(Sub("105", "0.5"), Sub("107", "Async, none"))).line(3),
        replace(Op("dp_allreduce", "112", "1"), description="finish(), a / b (c, d=1)").line(3),
        "rank:4:ddp_grad_comm(duration=0,timestamp=111.5,comm_uid=3,group_kind=dp)",
        Op("optimizer_step", "0", "0").line(4),
    ]
).encode()  # fmt: skip
PIECES = (b"\0", b"\r", b"\n", b",", b"'", b'"', b"[", b"]", b"(", b")", b"=", b"\\", b"1e9", b"9" * 25,
          b"\xff", b"nan", b"-", b"None", b",sub_operations=[", b"rank:", b"stage:", b"#",
          b"\x1b[2J")  # fmt: skip
_pieces = st.one_of(st.sampled_from(PIECES), st.binary(min_size=1, max_size=4), st.just(b""))
_edits = st.lists(st.tuples(st.integers(0, len(SMALL)), st.integers(0, 40), _pieces), min_size=1, max_size=6)


@settings(max_examples=1500)
@given(_edits)
def test_a_mutated_file_is_a_run_or_a_message_with_line_and_column(
    edits: list[tuple[int, int, bytes]],
) -> None:
    data = SMALL
    for at, cut, piece in edits:
        data = data[:at] + piece + data[at + cut :]
    assert_run_or_message(data)


@settings(max_examples=300)
@given(st.binary(max_size=80).map(lambda rest: b"rank:0:op(" + rest))
def test_any_bytes_behind_a_lines_beginning_are_a_run_or_a_message(data: bytes) -> None:
    assert_run_or_message(data)


def is_safe(text: str) -> bool:
    """Whether nothing in it has to be escaped for a terminal any more."""
    return all(printable(line, len(line)) == line for line in text.split("\n"))


_OF_WHOLE_FILES = ("empty-file", "unknown-format", "unsupported-format", "value-too-large")


def assert_run_or_message(data: bytes) -> None:
    try:
        run = read_input(BytesIO(data), name="t.txt")
    except InputError as caught:
        error = caught
    else:
        assert isinstance(run, MeasuredRun)
        assert_whole(run)
        return
    assert is_safe(str(error))
    for one in error.diagnostics:
        assert one.severity == "error"
        assert one.line is not None or one.code in _OF_WHOLE_FILES


def assert_accounts_and_path(results: RecordedRun) -> None:
    """Every nanosecond of every rank is in one account, and the path covers the step."""
    step = results.step_time_ns
    for one in results.accounts:
        assert sum(one.total_ns) == step
        # A step of 0 ns is one segment.
        assert all(start < end for start, end in itertools.pairwise(one.edge)) or list(one.edge) == [0, 0]
    if results.scales is None:
        # As measured each piece is where the file has it, whoever was through too early.
        assert results.times.end == tuple(one.end for one in results.rendezvous.segments)
        assert results.times.start == tuple(one.start for one in results.rendezvous.segments)
    assert sum(sum_ns(results, results.tracks)) == step * len(results.tracks)
    by_rank: dict[str, int] = {}
    rows = path_rows(results)
    for one in rows:
        rank = f"rank {results.measured.ranks[one.rank].rank}"
        by_rank[rank] = by_rank.get(rank, 0) + one.end - one.start
    assert by_rank == dict(sum_path(results, "rank"))
    edges = [(one.start, one.end) for one in rows]
    assert [start for start, _ in edges] + [step] == [0] + [end for _, end in edges]
    idle = [(one.rank, one.account == IDLE) for one in rows]
    assert not any(a == b and b[1] for a, b in itertools.pairwise(idle)), "idle time in two segments"
    if results.graph.together:
        assert not {one.kind for one in rows} & {"wait", "bubble"}
    assert results.run.step_time_ns == step
    assert what_they_last(results.run) == step


def what_they_last(run: MeasuredRun) -> int:
    """The end of the last operation; none is of negative length."""
    for rank in run.ranks:
        assert all(start <= end for start, end in zip(rank.ops.start, rank.ops.end, strict=True))
        assert all(start <= end for start, end in zip(rank.subs.start, rank.subs.end, strict=True))
    return max((end for rank in run.ranks for end in rank.ops.end), default=0)


def assert_whole(run: MeasuredRun) -> None:
    """The columns fit each other, a step of 0 ns has a diagnostic, and both reports can be made."""
    assert run.ranks
    for rank in run.ranks:
        ops, subs = rank.ops, rank.subs
        assert (
            len(ops) == len(ops.start) == len(ops.end) == len(ops.timing) == len(ops.group) == len(ops.line)
        )
        assert len(subs) == len(subs.start) == len(subs.end) == len(subs.parent) == len(subs.group)
        assert all(start <= end for start, end in zip(ops.start, ops.end, strict=True))
        assert all(0 <= parent < len(ops) for parent in subs.parent)
        if run.timed and rank.timed:
            assert min(ops.start) >= 0
    codes = {one.code for one in run.diagnostics}
    assert run.step_time_ns or codes & {"untimed-schedule", "no-step-time"}
    results = RecordedRun(run)
    assert is_safe(run_page(results))
    assert run_json(results)["step_time_ns"] == run.step_time_ns
    if run.timed:
        assert_accounts_and_path(results)
        assert_accounts_and_path(results.with_scales(Scales(compute=2, comm=0.5, gaps=3)))
    assert UNTIMED not in {known for rank in run.ranks for known in rank.ops.timing} or codes
