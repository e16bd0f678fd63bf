"""Which files of a directory are one run, which run opens, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.measured import MeasuredRun, open_directory
from simcore.measured.opening import read_name
from simcore.measured.rank_positions import Degrees
from simcore.parameters import OpeningOptions
from simcore.sources.inputs import open_input
from tests import says
from tests.findings import named

from .traces import STAMP, Op, Sub, read, refused, said, step, write_set

LATER = "20240924110000"


def ranks(run: MeasuredRun) -> list[int]:
    return [rank.rank for rank in run.ranks]


def test_a_name_says_world_degrees_rank_and_stamp() -> None:
    name = read_name("run/wd8_tp2_pp4_numl40_bs2_GPT2BPETokenizer_rank7_20240923205004.txt")
    assert name.key == "wd8_tp2_pp4_numl40_bs2_GPT2BPETokenizer_rank*_*.txt"
    assert (name.stamp, name.rank) == (STAMP, 7)
    assert name.degrees == Degrees(world=8, tp=2, dp=1, pp=4)
    assert name.degrees.position(5) == (1, 0, 2)
    assert read_name("wd16_tp2_pp2_exp4_expNum8_numl2_bs1_rank0_1.txt").degrees == Degrees(16, 2, 4, 2, 4)
    assert read_name("pp2_tp2_ep1_expn8_dp2_nl4_hs512_sl2048/trace_rank12_x.txt").degrees == Degrees(
        8, 2, 2, 2
    )
    assert read_name("pp2_tp2_ep1_expnNone_dpNone_nl4/trace_rank12_x.txt").rank == 12
    assert read_name("a.txt") == read_name("b/../a.txt")


def test_the_ranks_of_a_directory_lie_on_one_axis(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank, 1000 + rank) for rank in range(4)})
    run = open_directory(str(tmp_path))
    assert ranks(run) == [0, 1, 2, 3]
    assert [rank.first_ns for rank in run.ranks] == [0, 1_000_000, 2_000_000, 3_000_000]
    assert (run.step_time_ns, run.concurrent, run.stamp) == (13_000_000, True, STAMP)
    assert run.degrees == Degrees(4, 1, 2, 2)
    assert (len(run.missing), said(run)) == (0, [])


def test_stamps_of_one_run_may_differ_by_seconds(tmp_path: Path) -> None:
    stamps = {0: "20240923235959", 1: "20240924000001", 2: "20240924000000", 3: "20240923235958"}
    write_set(tmp_path, {rank: step(rank) for rank in range(4)}, stamps=stamps)
    run = open_directory(str(tmp_path))
    assert (ranks(run), run.stamp, said(run)) == ([0, 1, 2, 3], "20240923235958", [])


def test_of_two_runs_the_newer_opens_and_the_other_is_reached_by_its_stamp(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank, 1000) for rank in range(4)})
    write_set(tmp_path, {rank: step(rank, 9000 + rank) for rank in range(4)}, stamp=LATER)
    run = open_directory(str(tmp_path))
    assert (run.stamp, run.step_time_ns) == (LATER, 13_000_000)
    assert said(run) == ["note other-runs: 20240924110000, 0-3, --run, 20240923205004, 0-3"]
    for wanted in (STAMP, "20240923"):
        other = open_directory(str(tmp_path), wanted)
        assert (other.stamp, other.step_time_ns) == (STAMP, 10_000_000)


@pytest.mark.parametrize(
    ("wanted", "how_many"), [("2023", "no such run"), ("", "no such run"), ("2024", "2 runs fit")]
)
def test_a_run_that_is_not_there_is_wrong_usage(tmp_path: Path, wanted: str, how_many: str) -> None:
    for stamp in (STAMP, LATER):
        write_set(tmp_path, {rank: step(rank) for rank in range(4)}, stamp=stamp)
    with pytest.raises(UsageError) as caught:
        open_directory(str(tmp_path), wanted)
    runs = f"2 runs: {LATER} (ranks 0-3), {STAMP} (ranks 0-3)"
    says.said([str(caught.value)], f"--run {wanted}:", how_many, str(tmp_path), runs)


def test_a_complete_run_opens_before_a_newer_incomplete_one(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    write_set(tmp_path, {rank: step(rank) for rank in (0, 2)}, stamp=LATER)
    run = open_directory(str(tmp_path))
    assert (run.stamp, ranks(run)) == (STAMP, [0, 1, 2, 3])
    assert said(run) == ["note other-runs: 20240923205004, 0-3, --run, 20240924110000, 0,2, 4"]


def test_missing_ranks_are_said_and_the_others_open(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in (0, 3)})
    run = open_directory(str(tmp_path))
    assert (ranks(run), list(run.missing)) == ([0, 3], [1, 2])
    assert said(run) == ["warning ranks-missing: 1-2, 4, 2"]


def test_four_of_8192_ranks_are_no_list_of_8188(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in (0, 1, 4096, 8191)}, world=999_999_999, tp=1, pp=1)
    run = open_directory(str(tmp_path))
    assert said(run) == ["warning ranks-missing: 2-4095,4097-8190,8192-999999998, 999999999, 4"]


def test_one_file_of_a_run_opens_alone_and_says_so(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    run = open_input(str(next(tmp_path.glob("*rank2*"))))
    assert isinstance(run, MeasuredRun)
    assert ranks(run) == [2]
    assert said(run) == ["note ranks-missing: 2, 4"]


def test_of_two_runs_with_one_stamp_the_name_chooses(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    write_set(tmp_path, {rank: step(rank) for rank in range(2)}, world=2, pp=1)
    with pytest.raises(UsageError) as caught:
        open_directory(str(tmp_path), STAMP)
    names = [f"wd{world}_tp1_pp{pp}_numl4_bs1_GPT2BPETokenizer_rank*_*.txt" for world, pp in ((2, 1), (4, 2))]
    assert str(caught.value) == (
        f"--run {STAMP}: 2 runs fit in {tmp_path}; 2 runs: {names[0]} (ranks 0-1), {names[1]} (ranks 0-3)"
    )
    assert ranks(open_directory(str(tmp_path), names[0])) == [0, 1]


def test_ranks_profiled_one_after_another_are_each_aligned_to_their_own_start(tmp_path: Path) -> None:
    stamps = {rank: f"202409232{rank}0000" for rank in range(4)}
    write_set(tmp_path, {rank: step(rank, 10_000 * (rank + 1)) for rank in range(4)}, stamps=stamps)
    run = open_directory(str(tmp_path))
    assert (ranks(run), run.concurrent, run.step_time_ns) == ([0, 1, 2, 3], False, 10_000_000)
    assert [rank.first_ns for rank in run.ranks] == [0] * 4
    assert run.ranks[3].subs.start[0] == 1_000_000
    assert said(run) == [
        "warning not-concurrent: 9.990 s",
        "note several-stamps: " + ", ".join(f"{stamp}, {rank}" for rank, stamp in stamps.items()),
    ]


def halves(folder: Path) -> None:
    """Two ranks of one run, and the other two of a run a day later."""
    write_set(folder, {rank: step(rank) for rank in (0, 1)})
    write_set(folder, {rank: step(rank, 9000) for rank in (2, 3)}, stamp=LATER)


def test_halves_of_two_runs_open_only_where_no_run_is_complete(tmp_path: Path) -> None:
    halves(tmp_path)
    older = "20240901000000"
    write_set(tmp_path, {rank: step(rank) for rank in range(4)}, stamp=older)
    run = open_directory(str(tmp_path))
    assert (run.stamp, run.concurrent) == (older, True)
    assert said(run) == [f"note other-runs: {older}, 0-3, --run, {STAMP}, {LATER}, 0-3"]


@pytest.mark.parametrize("wanted", [None, STAMP, LATER, "20240923", "20240924"])
def test_a_run_of_two_halves_says_both_stamps_and_is_reached_by_either(
    tmp_path: Path, wanted: str | None
) -> None:
    halves(tmp_path)
    run = open_directory(str(tmp_path), wanted)
    assert (ranks(run), run.concurrent) == ([0, 1, 2, 3], False)
    assert said(run)[1:] == [f"note several-stamps: {STAMP}, 0-1, {LATER}, 2-3"]


def test_ranks_that_overlap_in_a_chain_are_concurrent(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank, 1000 + 9 * rank) for rank in range(4)})
    run = open_directory(str(tmp_path))
    assert (run.concurrent, run.step_time_ns) == (True, 37_000_000)


def test_files_without_names_to_go_by_are_a_run_by_their_lines(tmp_path: Path) -> None:
    for rank in (0, 1, 3):
        (tmp_path / f"trace_rank{rank}_x.txt").write_text(step(rank, stage=rank // 2))
    (tmp_path / "README").write_text("nothing\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "folder").mkdir()
    run = open_directory(str(tmp_path))
    assert (ranks(run), run.degrees.pp, run.stamp) == ([0, 1, 3], 2, None)
    assert said(run) == ["warning ranks-missing: 2, 3", "note other-files: 2"]


def test_the_rank_is_that_of_the_lines_and_one_file_may_hold_many(tmp_path: Path) -> None:
    path = tmp_path / "wd4_tp1_pp2_rank3_20240923205004.txt"
    path.write_text("".join(step(rank) for rank in (1, 0, 2, 3)))
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    assert (ranks(run), said(run)) == ([0, 1, 2, 3], [])


def test_a_rank_in_two_files_and_a_rank_beyond_the_world_are_said(tmp_path: Path) -> None:
    write_set(tmp_path, {0: step(0) + step(2), 2: step(2), 1: step(1), 9: step(9)}, world=3, tp=1, pp=1)
    run = open_directory(str(tmp_path))
    name = "wd3_tp1_pp1_numl4_bs1_GPT2BPETokenizer_rank"
    assert said(run) == [
        f"warning repeated-rank: 2, {name}0_{STAMP}.txt, {name}2_{STAMP}.txt",
        "warning rank-outside: 9, 3",
    ]


def test_what_several_files_say_alike_is_said_once(tmp_path: Path) -> None:
    text = Op("my_op", timestamp="10").line
    write_set(tmp_path, {rank: text(rank) for rank in range(4)})
    assert said(open_directory(str(tmp_path))) == ["note unknown-operation: 'my_op', 4"]


def test_errors_of_all_files_are_told_with_their_file(tmp_path: Path) -> None:
    write_set(tmp_path, {0: step(0), 1: step(1) + "x\n", 2: step(2) + "y\n", 3: step(3)})
    with pytest.raises(InputError) as caught:
        open_directory(str(tmp_path))
    lines = str(caught.value).split("\n")
    assert [line.split(": ", 1)[1] for line in lines] == [
        "error trace-line found 'x', expected rank:N:operation(...)",
        "error trace-line found 'y', expected rank:N:operation(...)",
    ]
    assert "_rank1_" in lines[0]
    assert lines[0].split(": ")[0].endswith(".txt:5:1")


def test_a_plan_among_traces_is_an_error(tmp_path: Path) -> None:
    write_set(tmp_path, {0: step(0), 1: "stage:1:forward_step(batch_id=0)\n"}, world=2, pp=1)
    with pytest.raises(InputError) as caught:
        open_directory(str(tmp_path))
    (error,) = caught.value.diagnostics
    assert (error.code, named(error.message)[:2]) == ("trace-line", ["1", "2"])


def test_a_directory_without_traces_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n")
    (tmp_path / "run1").mkdir()
    with pytest.raises(InputError) as caught:
        open_input(str(tmp_path))
    (error,) = caught.value.diagnostics
    assert (error.file, error.code) == (str(tmp_path), "no-rank-traces")
    # What there is, what is read, and a folder that may hold it.
    says.said([error.message], "1 file", "NAME.RANK.et", "Kineto's", ".sqlite", "Megatron's", "1 folder")


def test_what_is_nearly_a_set_is_said(tmp_path: Path) -> None:
    for name in ("ets.tar.gz", "rank0.et", "rank1.et", "rank2.et", "rank3.et"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError) as caught:
        open_input(str(tmp_path))
    says.said([str(caught.value)], "ets.tar.gz", "rank0.et, rank1.et, rank2.et", "1 more")


PLAN = """\
stage:0:forward_step(batch_id=0, mg_state=warmup, duration=None)
stage:0:send_forward(batch_id=0, mg_state=warmup, duration=None, group_kind=pp)
stage:0:backward_step(batch_id=0, mg_state=cooldown, duration=None)
stage:1:recv_forward(batch_id=0, mg_state=help, duration=None, group_kind=pp)
"""


def test_a_plan_is_an_untimed_schedule_and_never_a_step_of_0_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    path.write_text(PLAN)
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    assert (run.unit, run.timed, run.step_time_ns, ranks(run)) == ("stage", False, 0, [0, 1])
    assert list(run.ranks[0].ops.start) == [0, 1000, 2000]
    assert run.ranks[0].ops.state == ["warmup", "warmup", "cooldown"]
    assert run.length == 3000
    assert said(run) == ["warning untimed-schedule: "]


def test_a_rank_without_times_among_others_and_many_steps_are_said(tmp_path: Path) -> None:
    none = Op(timestamp=None, duration=None, subs=(Sub(None, None),)).line(1)
    write_set(tmp_path, {0: step(0) + step(0, 2000), 1: none}, world=2, pp=1)
    found = [one for one in said(open_directory(str(tmp_path))) if "untimed-operation" not in one]
    assert found == ["warning untimed-rank: 1", "note several-steps: 2, --step"]


def test_a_step_in_which_nothing_takes_time_is_said() -> None:
    assert said(read(Op(timestamp="5", duration="0").line())) == ["warning no-step-time: 0 ns"]


def test_a_step_beyond_all_measure_is_refused() -> None:
    text = f"{Op(timestamp='0', duration='9e12').line()}\n{Op(timestamp='9e12', duration='1').line()}"
    (error,) = refused(text).diagnostics
    assert (error.location_text(), error.code) == ("trace.txt", "value-too-large")
    assert named(error.message) == ["18000000000000000000 ns", "9223372036854775807"]


def test_a_choice_of_a_run_needs_a_directory(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text(step(0))
    for path, found in (("trace.txt", "one file"), (None, "a workload file")):
        place = str(tmp_path / path) if path else "fixtures/002_gpt_1024npu.txt"
        with pytest.raises(UsageError) as caught:
            open_input(place, OpeningOptions("2024"))
        says.said([str(caught.value)], "--run 2024", found, "directory")


def plan(stage: int) -> str:
    return f"stage:{stage}:forward_step(batch_id=0, mg_state=warmup, duration=None)\n"


def test_a_plan_may_have_a_file_for_each_stage(tmp_path: Path) -> None:
    for stage in range(2):
        (tmp_path / f"plan_stage{stage}.txt").write_text(plan(stage))
        (tmp_path / f"small_pp3_stage_{stage}.txt").write_text(plan(stage))
    run = open_directory(str(tmp_path))
    assert (ranks(run), run.unit, run.timed) == ([0, 1], "stage", False)
    assert said(run)[1:] == ["note other-runs: plan_stage, 0-1, --run, small_pp3_stage, 0-1, 3"]


def test_a_stage_in_the_name_of_a_rank_trace_tells_runs_apart() -> None:
    names = [read_name(f"zero_stage{stage}_rank0.txt").key for stage in (1, 2)]
    assert names == ["zero_stage1_rank*.txt", "zero_stage2_rank*.txt"]


def test_every_run_of_a_directory_is_found_by_its_label(tmp_path: Path) -> None:
    """Two jobs that began in the same second, an older run of one of them, and a copy of one file."""
    for job, stamp in (("a", STAMP), ("b", STAMP), ("a", LATER)):
        for rank in range(2):
            name = f"wd2_tp1_pp2_numl4_bs1_{job}_rank{rank}_{stamp}.txt"
            (tmp_path / name).write_text(step(rank, 1000 + rank, stage=rank))
    (tmp_path / "trace_x.txt").write_text(step(0))
    (tmp_path / "trace_x.txt.old").write_text(step(0, 2000))
    first = open_directory(str(tmp_path))
    labels = [first.label, *first.others]
    assert len(set(labels)) == len(labels) == 5
    for label in labels:
        found = open_directory(str(tmp_path), label)
        assert found.label == label
        assert set(found.others) == set(labels) - {label}
