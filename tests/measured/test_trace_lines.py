"""Lines of a trace: the grammar with its traps, values, and what is said of damaged ones."""

from __future__ import annotations

import contextlib
import time

import pytest

from simcore.diagnostics import InputError
from simcore.measured.columns import FUSED, INSTANT, MEASURED, UNTIMED
from tests.findings import named
from tests.says import said

from .traces import Op, Sub, read, refused, told


def test_start_is_the_timestamp_less_the_duration_to_the_nanosecond() -> None:
    run = read(Op(timestamp="4509232433.69", duration="7.5", subs=(Sub("4509232426.37", "0.02"),)).line(7))
    ops, subs = run.ranks[0].ops, run.ranks[0].subs
    assert (ops.start[0], ops.end[0]) == (0, 7_500_000)
    assert (subs.start[0], subs.end[0]) == (160_000, 180_000)
    assert run.step_time_ns == 7_500_000


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        ("0.000001", 1),
        ("1e-6", 1),
        ("1.5E+1", 15_000_000),
        (".5", 500_000),
        ("3.", 3_000_000),
        ("1e3", 10**9),
    ],
)
def test_a_duration_is_exact_however_it_is_written(written: str, ns: int) -> None:
    assert read(Op(timestamp="5000", duration=written).line()).step_time_ns == ns


def test_commas_brackets_and_equal_signs_of_a_description_are_its_own() -> None:
    description = "model_chunk.finish_grad_sync(a, b=1), All-reduce / reduce-scatter across DP replicas"
    run = read(Op("dp_allreduce", group="dp", description=description, shape="[2048, 2, 5120]").line())
    ops = run.ranks[0].ops
    assert (ops.description[0], ops.shape[0], ops.end[0]) == (description, "[2048, 2, 5120]", 1_000_000)


@pytest.mark.parametrize("description", ["a) b", "(a", "a ( b [ c", ")]", "a, b, (c"])
def test_brackets_that_do_not_match_swallow_no_key(description: str) -> None:
    run = read(Op(description=description, group="dp", name="dp_allreduce").line())
    assert (run.ranks[0].ops.description[0], run.ranks[0].ops.end[0]) == (description, 1_000_000)


def test_every_key_of_a_sub_operation_is_read() -> None:
    sub = Sub(
        name=None, source="_reduce", group="exp", collective="all_to_all", shape="[2, 3]", dtype="torch.bool"
    )
    subs = read(Op(subs=(sub, Sub("100.9", "0.1"))).line()).ranks[0].subs
    assert list(subs.parent) == [0, 0]
    assert subs.name == ["_reduce", "linear_fwd"]
    assert (subs.source[0], subs.group[0], subs.collective[0]) == ("_reduce", "exp", "all_to_all")
    assert (subs.shape[0], subs.dtype[0]) == ("[2, 3]", "torch.bool")


def test_the_other_writer_says_stage_for_the_state_and_has_another_order_of_keys() -> None:
    op = Op("send_forward", state="warmup", stage=3, group="pp", batch=2, subs=(Sub(),))
    one, other = (read(line).ranks[0] for line in (op.line(5), op.other_line(5)))
    assert one.ops == other.ops
    assert one.subs == other.subs
    assert (other.rank, other.stage, other.ops.state[0], other.ops.batch[0]) == (5, 3, "warmup", 2)


def test_lists_may_have_escapes_both_quotes_and_a_comma_at_the_end() -> None:
    line = (
        r"""rank:0:a(timestamp=5,duration=5,sub_operations=['x=1,func_name=it\'s', "func_name=b\x41,", ])"""
    )
    assert read(line).ranks[0].subs.name == ["it's", "bA,"]


def test_keys_may_follow_the_list_and_unknown_ones_are_kept() -> None:
    run = read("rank:0:forward_step(cmd_uid=7,sub_operations=[],timestamp=3.5,duration=1,op_semantics=x)")
    assert run.ranks[0].ops.extra == {0: {"cmd_uid": "7", "op_semantics": "x"}}
    assert run.step_time_ns == 1_000_000


LAUNCH = (
    "rank:0:ddp_grad_comm(stage_id=0,batch_id=0,comm_uid=3,bucket_id=1,group_kind=dp,duration=0,"
    "timestamp=104.00,launch_timestamp_ms=104.00,status=launch_only)\n"
)


def test_a_launch_of_a_gradient_reduction_is_an_instant_inside_the_backward_step_that_follows() -> None:
    text = Op(timestamp="102.0").line() + "\n" + LAUNCH + Op("backward_step", "106.0", "3.0").line()
    run = read(text)
    ops = run.ranks[0].ops
    assert run.diagnostics == ()
    assert (ops.start[1], ops.end[1], ops.timing[1]) == (3_000_000, 3_000_000, INSTANT)
    assert (ops.start[2], ops.end[2]) == (2_000_000, 5_000_000)
    assert ops.extra[1]["status"] == "launch_only"


def test_lines_without_a_time_stand_behind_the_operation_before_them() -> None:
    zero = [Op(name, "0", "0", group=kind) for name, kind in (("dp_allreduce", "dp"), ("ep_allreduce", "ep"))]
    text = "\n".join(op.line() for op in (zero[0], Op(timestamp="50.0"), *zero, Op("optimizer_step", "60.0")))
    run = read(text)
    ops = run.ranks[0].ops
    assert list(ops.timing) == [UNTIMED, MEASURED, UNTIMED, UNTIMED, MEASURED]
    assert list(ops.start) == [0, 0, 1_000_000, 1_000_000, 10_000_000]
    assert list(ops.end) == [0, 1_000_000, 1_000_000, 1_000_000, 11_000_000]
    assert told(text) == [
        "trace.txt:1:1: note untimed-operation: dp_allreduce, 2",
        "trace.txt:4:1: note untimed-operation: ep_allreduce",
    ]


def test_a_send_and_a_receive_of_one_time_are_one_physical_operation() -> None:
    """The receive stands for both, in whichever order they are."""
    pair = [Op(name, "10.0", "4.0", group="pp") for name in ("send_forward", "recv_backward")]
    for lines, known in ((pair, [FUSED, MEASURED]), (pair[::-1], [MEASURED, FUSED])):
        run = read("\n".join(op.line() for op in lines))
        assert list(run.ranks[0].ops.timing) == known
        assert run.diagnostics == ()


def test_a_duration_in_words_is_an_instant_and_is_said() -> None:
    words = "Async operation, duration not measured"
    text = Op(subs=(Sub(duration=words),)).line()
    subs = read(text).ranks[0].subs
    assert (subs.start[0], subs.end[0], subs.timing[0]) == (500_000, 500_000, INSTANT)
    assert told(text) == [f"trace.txt:1:1: note no-duration: '{words}'"]


def test_line_endings_blank_lines_comments_and_a_byte_order_mark_change_nothing() -> None:
    first, second = Op(timestamp="10").line(), Op("backward_step", "20").line()
    plain = read(f"{first}\n{second}\n").ranks[0]
    odd = read(f"\ufeff{first}  \r\n\r\n# made by hand\r\n{second}")
    assert (odd.ranks[0].ops.name, odd.ranks[0].ops.end) == (plain.ops.name, plain.ops.end)
    assert [one.code for one in odd.diagnostics] == ["comment"]


def test_overlaps_and_sub_operations_outside_are_said_beyond_the_tolerance() -> None:
    first = Op(timestamp="10.00").line()
    assert told(f"{first}\n{Op('backward_step', '20.00', '10.02').line()}") == []
    assert told(f"{first}\n{Op('backward_step', '20.00', '10.05').line()}") == [
        "trace.txt:2:1: warning operations-overlap: backward_step, 0.05 ms"
    ]
    assert told(Op(timestamp="10.00", subs=(Sub("10.02", "1.04"),)).line()) == []
    assert told(Op(timestamp="10.00", subs=(Sub("10.03", "1"),)).line()) == [
        "trace.txt:1:1: warning sub-operation-outside: 'linear_fwd', forward_step"
    ]


def test_names_that_the_tracers_do_not_write_are_shown_and_said() -> None:
    assert told(Op("my_op", group="fsdp").line()) == [
        "trace.txt:1:1: note unknown-operation: 'my_op'",
        "trace.txt:1:1: note unknown-group: 'fsdp'",
    ]
    assert told(f"{Op(timestamp='9').line()}\n{Op(timestamp='19', stage=1).line()}") == [
        "trace.txt:2:1: warning stage-changes: 0, 1, 0"
    ]


GOOD = Op().line()
# A line, the column and code of its error, and what is named in it: the key, what was found, what would fit.
DAMAGED = [
    ("hello", 1, "trace-line", "'hello'", "rank:N:operation(...)"),
    ("rank:x:forward_step()", 1, "trace-line", "'rank:x:forward_step()'", "rank:N:operation(...)"),
    (
        "stage:1:forward_step()",
        1,
        "trace-line",
        "'stage:1:forward_step()'",
        "rank:N:operation(...)",
        "before",
    ),
    ("rank:0:a(timestamp=1", 21, "trace-line-end", "end of the line", ")"),
    ("rank:0:a(", 10, "trace-line-end", "end of the line", ")"),
    ("rank:0:a(sub_operations=['b=1']", 32, "trace-line-end", "end of the line", ")"),
    ("rank:0:a(x=1,sub_operations=[])rank:0:b()", 31, "trace-line-end", "')rank:0:b()'", ")"),
    ("rank:0:a(sub_operations=['b=1)", 26, "trace-list", "sub_operations", "''b=1)'", "quoted", "]"),
    ("rank:0:a(sub_operations=[['b=1']])", 26, "trace-list", "sub_operations", "'['b=1']])'", "quoted", "]"),
    ("rank:0:a(sub_operations=['b=1' 'c=2'])", 32, "trace-list", "sub_operations", "''c=2'])'", ",", "]"),
    ("rank:0:a(sub_operations={})", 25, "trace-list", "sub_operations", "'{})'", "["),
    (r"rank:0:a(sub_operations=['b=\x4'])", 26, "trace-list", "sub_operations", r"''b=\x4''", "escape"),
    ("rank:0:a(sub_operations=['b'])", 26, "trace-key", "'b'", "key=value"),
    ("rank:0:a(b,timestamp=5)", 10, "trace-key", "'b'", "key=value"),
    ("rank:0:a(timestamp=5,duration=4.x)", 31, "not-a-number", "duration", "'4.x'", "ms"),
    ("rank:0:a(timestamp=5,duration=-4)", 31, "negative-value", "duration", "'-4'", "0"),
    ("rank:0:a(timestamp=1e30)", 20, "value-too-large", "timestamp", "'1e30'", "9223372036854775807 ns"),
    ("rank:0:a(batch_id=x)", 19, "not-a-number", "batch_id", "'x'", "2147483648"),
    ("rank:0:a\x1b[31m(", 1, "trace-line", "'rank:0:a\\x1b[31m('", "rank:N:operation(...)"),
]


@pytest.mark.parametrize(("line", "column", "code", "parts"), [(*one[:3], one[3:]) for one in DAMAGED])
def test_a_damaged_line_is_an_error_with_its_line_and_column(
    line: str, column: int, code: str, parts: tuple[str, ...]
) -> None:
    (error,) = refused(f"{GOOD}\n{line}\n").diagnostics
    assert (error.location_text(), error.code) == (f"trace.txt:2:{column}", code)
    said([error.message], *parts)


def test_all_damaged_lines_of_a_file_are_told_at_once() -> None:
    assert [error.line for error in refused(f"{GOOD}\nx\n{GOOD}\ny\n").diagnostics] == [2, 4]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "rank:0:a(sub_operations=" + "[" * 3_000_000,
        "rank:0:a(sub_operations=['" + "\\" * 3_000_000,
        "rank:0:a(sub_operations=['" + "a," * 1_000_000,
        "rank:0:a(" + "(" * 1_000_000 + ",b=" * 300_000,
        "rank:0:a(" + ",a=1" * 100_000 + ")",
        "rank:0:a(" + ", " * 500_000 + ")",
        "rank:0:" + "a" * 5_000_000,
        "rank:0:a(timestamp=" + "9" * 5_000_000 + ")",
        "rank:0:a(timestamp=1e" + "9" * 1_000_000 + ")",
        "rank:" + "9" * 1_000_000 + ":a()",
        "rank:0:a(x=" + "y" * (1 << 24) + ")",
    ],
    ids=range(11),
)
def test_a_hostile_line_ends_soon_and_without_a_traceback(line: str) -> None:
    """In processor time: a machine with other work takes its own."""
    began = time.process_time()
    for text in (f"{GOOD}\n{line}", f"{GOOD}\n{line}\n{GOOD}"):
        with contextlib.suppress(InputError):
            read(text)
    assert time.process_time() - began < 10


def test_a_line_beyond_all_measure_is_refused() -> None:
    (error,) = refused("rank:0:a(x=" + "y" * (1 << 24) + ")").diagnostics
    assert (error.location_text(), error.code) == ("trace.txt:1:1", "trace-line-length")
    assert named(error.message) == ["16777228", "16777216"]
