"""`wltui` and `wltui report` on rank traces: text, JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line.running import SEED_001, SEED_002, TRACE, shell, wltui_here
from tests.measured.test_replay_by_hand import SLOW_RANK
from tests.measured.traces import STAMP, step, write_set
from tests.says import figures, said

HEAD = """\
Measured step time  3.851 s
                    1 micro-batch: 3.851 s, 0.2596 a second

In words
  Compute is 48.6 % of the rank's time. The largest other part, 33.1 %, is embedding communication; how much
    of it is waiting is not known.

  file       fixtures/004_megatron_rank7_trace.txt
  format     rank-trace, Megatron
  ranks      1 rank; from the start of its first operation
  read       9 operations, 1 micro-batch; 48 sub-operations inside them

Memory of a rank: not known, as a trace gives no parameter sizes

Where the step goes, s on each rank; pp, tp, dp, embedding: exposed communication
  stage  ranks                  forward  backward   opt.     pp     tp     dp   emb.   host   idle  computing
      3  7      ▄▄████▇▌▌▌▌▌▌▌    0.584     1.184  0.105  0.633  0.021  0.025  1.274  0.007  0.018     48.6 %
  ▄ forward  █ backward  ▇ optimizer  ▌ exposed  ─ wait  ▁ bubble  ▎ host  (blank) idle
  host: neither compute nor communication; idle: host gaps, before the first operation, after the last

How busy each stream is, the mean of all ranks
  stream     busy s  % of step  most %  beside compute  exposed
  compute     1.873       48.6    48.6
  pp          0.633       16.4    16.4           0.000    0.633
  tp          0.278        7.2     7.2           0.257    0.021
  dp          0.025        0.6     0.6           0.000    0.025
  embedding   1.274       33.1    33.1           0.000    1.274

The 10 operations that take most of the step, on the rank where they do; critical: of all ranks
  operation                   compute ms  exposed ms  % of step  critical ms  least slack
  ep_allreduce                     0.000    1274.090       33.1     1274.090          0 s
  backward_step                 1183.710       0.000       30.7     1183.710          0 s
  recv_forward                     0.000     629.770       16.4      629.770          0 s
  forward_step                   583.830       0.000       15.2      583.830          0 s
  optimizer_step                 105.320       0.000        2.7      105.320          0 s
  dp_allreduce                     0.000      24.640        0.6       24.640          0 s
  linear_fwd in forward_step       0.000      20.690        0.5       20.690          0 s
  get_batch                        0.000       0.000        0.2        7.350          0 s
  send_backward                    0.000       2.900        0.1        2.900          0 s
  loss_func                        0.330       0.000        0.0        0.330          0 s
  and 7 more (--all-layers has all)

Critical path: 71 segments on 1 rank, 0 to 3.851 s; % of that
  by kind   embedding 1.274 s (33.1 %); compute backward 1.184 s (30.7 %); pp 632.7 ms (16.4 %);
            compute forward 584.2 ms (15.2 %); compute optimizer 105.3 ms (2.7 %); and 4 more
  by op     ep_allreduce 1.274 s (33.1 %); backward_step 1.184 s (30.7 %); recv_forward 629.8 ms (16.4 %);
            forward_step 583.8 ms (15.2 %); optimizer_step 105.3 ms (2.7 %); and 12 more
  by stage  stage 3 3.851 s (100.0 %)
  its longest segments, and why the first of each kind did not start earlier
      takes  times  first at  rank  what                              not earlier, because
    1.274 s     x1   2.467 s     7  embedding ep_allreduce            its rank was idle before it
    1.184 s     x1   1.248 s     7  compute backward backward_step    its rank was idle before it
   629.8 ms     x1       0 s     7  pp recv_forward                   the step begins
   127.7 ms     x1   1.110 s     7  compute forward forward_step      its rank was busy before it
   105.3 ms     x1   3.746 s     7  compute optimizer optimizer_step  its rank was idle before it
  30.530 ms     x1  916.5 ms     7  compute forward forward_step      its rank was busy before it
  30.410 ms     x1   1.062 s     7  compute forward forward_step      its rank was busy before it
  30.400 ms     x1   1.013 s     7  compute forward forward_step      its rank was busy before it

Operations of all ranks, by name, ms
  operation       kind       count     mean    least     most  most is on
  ep_allreduce    embedding      1  1274.09  1274.09  1274.09  rank 7, micro-batch 0
  backward_step   backward       1  1183.71  1183.71  1183.71  rank 7, micro-batch 0
"""


def test_the_report_of_seed_004_is_a_page() -> None:
    done = wltui_here("report", TRACE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(HEAD)
    assert (
        "\n  linear_fwd in forward_step          tp       20    1.03    0.68    3.22  rank 7" in done.stdout
    )
    # One rank of eight: whoever it waited for is not there.
    assert "\nDiagnostics: 2 notes\n" in done.stdout
    assert done.stdout.endswith("[no-partner]\n")
    assert wltui_here(TRACE).stdout == done.stdout


def test_the_json_of_seed_004_has_the_keys_of_every_report_and_what_was_measured() -> None:
    report = json.loads(wltui_here("report", TRACE, "--json").stdout)
    simulated = json.loads(wltui_here("report", SEED_001, "--json").stdout)
    # No trace says what is held in memory.
    assert set(report) == {*simulated, "measured"} - {"memory"}
    assert list(report["workload"]) == list(simulated["workload"])
    assert (report["schema"], report["workload"]["format"]) == ("wltui.report/1", "rank-trace")
    assert (report["workload"]["rows"], report["workload"]["microbatches"], report["spans"]) == (9, 1, 57)
    assert report["step_time_ns"] == 3_851_380_000
    assert sum(report["mean_ns"].values()) == 3_851_380_000
    measured = report["measured"]
    assert (measured["step_time_ns"], measured["ranks"], measured["concurrent"]) == (3_851_380_000, 1, True)
    (rank,) = measured["by_rank"]
    assert (rank["ranks"], rank["stage"], rank["sub_operations"]) == ("7", 3, 48)
    assert sum(rank["ns"].values()) == 3_851_380_000
    assert rank["ns"]["embedding"] == 1_274_090_000
    assert measured["operations"][0] == {
        "name": "recv_forward", "parent": None, "kind": "pp", "count": 1, "measured": 1,
        "total_ns": 629_770_000, "least_ns": 629_770_000, "most_ns": 629_770_000, "most_rank": 7,
        "most_microbatch": 0, "slack_ns": 0,
    }  # fmt: skip
    assert report["what_if_base_ns"] == 3_851_380_000


def test_a_directory_and_a_run_of_it(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    write_set(tmp_path, {rank: step(rank, 1000 + rank) for rank in (0, 1, 3)}, stamp="20250101000000")
    report = json.loads(wltui_here("report", str(tmp_path), "--json").stdout)
    assert (report["measured"]["run"], report["measured"]["ranks"]) == (STAMP, 4)
    assert report["workload"]["degrees"] == {"tp": 1, "ep": None, "dp": 2, "pp": 2, "world": 4}
    done = wltui_here("report", f"{tmp_path}/", "--run", "2025")
    assert done.returncode == 0
    for words in (
        "\n  run        20250101000000\n",
        "\n  ranks      3 of 4 ranks = tp 1 x dp 2 x pp 2; on one clock\n",
        "rank 2 of 4 is missing: 3 ranks shown",
        "[other-runs]",
    ):
        assert words in done.stdout
    done = wltui_here("report", str(tmp_path), "--run", "1999")
    assert (done.returncode, done.stdout) == (2, "")
    said(done.stderr.splitlines(), "wltui: --run 1999:", "no such run", f"{tmp_path};", "2 runs:")


def test_a_trace_from_standard_input() -> None:
    done = shell(f"WLTUI report - < {TRACE}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.replace("standard input", TRACE).startswith(HEAD)


def test_a_plan_is_printed_in_its_order_and_its_json_has_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    path.write_text(
        "stage:0:forward_step(batch_id=0, duration=None)\nstage:0:backward_step(batch_id=0, duration=None)\n"
        "stage:1:recv_forward(batch_id=0, mg_state=help, duration=None, group_kind=pp)\n"
    )
    text = wltui_here("report", str(path)).stdout
    assert text.startswith("Planned order, no times\n")
    assert "\n  ranks      2 stages; no times, the order alone\n" in text
    assert "\n  stage 0  forward_step 0, backward_step 0\n  stage 1  recv_forward 0\n" in text
    assert text.endswith("\n                                [untimed-schedule]\n")
    report = json.loads(wltui_here("report", str(path), "--json").stdout)
    assert (report["step_time_ns"], report["measured"]["timed"]) == (0, False)
    assert [one["code"] for one in report["diagnostics"]] == ["untimed-schedule"]


TAKES = (
    "its replay takes --compute-scale, --comm-scale, --layer-scale, --slow-rank, --replay, --gap-scale, "
    "--slow-host, "
    "--host-scale, --kind-scale and --stage-scale"
)
REFUSED = [
    (["--jitter", "0.1", "--seed", "1"], f"--jitter, --seed have no meaning for a trace; {TAKES}"),
    (["--replay", "--tp", "2"], f"--tp has no meaning for a trace; {TAKES}"),
    (
        ["--schedule", "gpipe", "--cluster", "h200-8", "--compute-scale", "0.5"],
        f"--schedule, --cluster have no meaning for a trace; {TAKES}",
    ),
    (["--slow-rank", "3=2"], "--slow-rank: rank 3 is not in this run"),
    (["--slow-rank", "8=2"], "--slow-rank 8=2: no rank 8 in this run, only 0 to 7"),
    (
        ["--layer-scale", "mlp:fwd=2"],
        "--layer-scale mlp:fwd=2: no operation mlp:fwd in this run, only attention_mask, backward_step, "
        "crossEntropy_fwd_1, crossEntropy_fwd_2, crossEntropy_fwd_3, dp_allreduce, embedding_bwd_async, "
        "ep_allreduce, forward_step, get_batch, labels, linear_fwd and 6 more",
    ),
    (
        ["--layer-scale", "forward_step"],
        "--layer-scale forward_step: of a trace OP=X, for example forward_step=0.9 is expected, X up to 1e6",
    ),
    (["--run", "2024"], "--run 2024: found one file, expected a directory of rank traces"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_a_measured_run_cannot_be_asked_is_wrong_usage(words: list[str], message: str) -> None:
    for command in (["report", TRACE], ["report", TRACE, "--json"], [TRACE]):
        done = wltui_here(*command, *words)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n")


def test_a_run_of_a_workload_file_is_wrong_usage() -> None:
    done = wltui_here("report", SEED_002, "--run", "1")
    message = "--run 1: found a workload file, expected a directory of rank traces"
    assert (done.returncode, done.stderr) == (2, f"wltui: {message}\n")


def test_a_default_value_changes_nothing_and_is_no_mistake() -> None:
    assert wltui_here("report", TRACE, "--compute-scale", "1", "--passes", "1").returncode == 0


def test_the_report_has_no_glyphs_where_the_terminal_has_none() -> None:
    text = wltui_here("report", TRACE, encoding="ascii").stdout
    assert "  ffbbbboxxxxxxx " in text
    assert text.isascii()


def test_a_directory_without_traces_is_one_line_on_stderr_and_exit_status_1(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n")
    found = (
        "found a directory without traces (1 file), expected execution traces (NAME.RANK.et or .eg, .gz too)"
        ", profiler traces (Kineto's JSON with traceEvents, Nsight's .sqlite) or Megatron's rank traces "
        "(text that begins rank:0:...)"
    )
    for words in (["report", str(tmp_path)], ["report", str(tmp_path), "--json"], [str(tmp_path)]):
        done = wltui_here(*words)
        assert (done.returncode, done.stdout, done.stderr) == (
            1,
            "",
            f"{tmp_path}: error no-rank-traces {found}\n",
        )


def test_a_damaged_trace_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(step(0) + "rank:0:forward_step(timestamp=5\n")
    done = wltui_here("report", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    message = "found the end of the line, expected ) at the end of the operation"
    assert done.stderr == f"{path}:5:32: error trace-line-end {message}\n"


def test_a_replay_is_compared_with_what_was_measured(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    words = ["report", str(tmp_path), "--layer-scale", "backward_step=2"]
    text = wltui_here(*words).stdout
    for part in (
        "Replayed step time  14.000 ms\n",
        "\n  measured   10.000 ms; the replay is +40.0 % from it\n",
        "\nWhere the step goes, ms on each rank; pp",
        "\n  rank   measured   replayed  difference  most by\n"
        "     0  10.000 ms  14.000 ms   +4.000 ms  backward_step +4.000 ms\n",
        "[replay-unmatched]",
    ):
        assert part in text
    report = json.loads(wltui_here(*words, "--json").stdout)
    assert (report["step_time_ns"], report["measured"]["step_time_ns"]) == (14_000_000, 10_000_000)
    assert (report["schedule"], report["parameters"]["layer_scale"]) == ("replayed", ["backward_step=2"])
    replay = report["measured"]["replay"]
    assert (replay["step_time_ns"], replay["difference_ns"]) == (14_000_000, 4_000_000)
    assert replay["by_rank"][3] == {
        "ranks": "3", "measured_end_ns": 10_000_000, "end_ns": 14_000_000,
        "operations": [{"name": "backward_step", "difference_ns": 4_000_000}],
    }  # fmt: skip
    for accounts, step_ns in ((replay["accounts"], 14_000_000), (report["measured"]["accounts"], 10_000_000)):
        for one in accounts:
            times = [*one["compute_ns"].values(), *one["exposed_ns"].values()]
            assert sum(times) + one["wait_ns"] + one["bubble_ns"] + one["host_ns"] + one["idle_ns"] == step_ns
    path = report["critical_path"]
    assert (path[0]["start_ns"], path[-1]["end_ns"]) == (0, 14_000_000)
    assert list(path[0]) == [
        "start_ns", "end_ns", "rank", "stream", "kind", "layer", "phase", "microbatch", "reason",
    ]  # fmt: skip
    plain = json.loads(wltui_here("report", str(tmp_path), "--json", "--replay").stdout)
    assert (plain["step_time_ns"], plain["measured"]["replay"]["difference_ns"]) == (10_000_000, 0)
    assert json.loads(wltui_here("report", str(tmp_path), "--json").stdout)["measured"]["replay"] is None


def test_what_if_of_a_measured_run(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    done = wltui_here("report", str(tmp_path), "--what-if")
    title, head, *rows = done.stdout[done.stdout.index("\nWhat if ") :].splitlines()[1:]
    assert (figures(title), figures(head)) == (["10.000 ms"], ["10 %", "10 %"])
    assert rows[:2] == [
        "  all compute            2.500 ms  -75.0 %        9.250 ms  -7.5 %",
        "  backward_step          6.000 ms  -40.0 %        9.600 ms  -4.0 %",
    ]
    report = json.loads(wltui_here("report", str(tmp_path), "--what-if", "--json").stdout)
    assert report["what_if"][0] == {
        "list": "sensitivity", "knob": "all compute", "free_ns": 2_500_000, "better10_ns": 9_250_000
    }  # fmt: skip
    # What is asked of a replay begins with its scales.
    words = ["report", str(tmp_path), "--what-if", "--json", "--compute-scale", "2"]
    assert json.loads(wltui_here(*words).stdout)["what_if"][0]["free_ns"] == 2_500_000


def test_what_if_of_a_slow_rank_says_what_it_is_measured_by(tmp_path: Path) -> None:
    lines = SLOW_RANK.splitlines(True)
    write_set(tmp_path, {0: "".join(lines[:3]), 1: "".join(lines[3:])}, world=2, pp=1)
    done = wltui_here("report", str(tmp_path), "--what-if").stdout
    said(done.splitlines(), "  Rank 1 is slow", "34.000 ms", "rank 0", "stage 0", "14.000 ms", "rank 0")
    # The row that the screen has first, and `t` tries.
    title, _, row, *rest = done[done.index("\nChanges you can make ") :].splitlines()[1:]
    assert figures(title) == ["40.000 ms"]
    assert figures(row)[:6] == ["1", "0", "34.000 ms", "14.000 ms", "22.354 ms", "-44.1 %"]
    assert row.endswith("  --slow-rank 1=0.4118")
    assert rest[0].startswith("  assumed: the recorded order")
    # The figure is that of the flag.
    tried = json.loads(wltui_here("report", str(tmp_path), "--slow-rank", "1=0.4118", "--json").stdout)
    assert tried["step_time_ns"] == 22_354_000


def test_only_rank_traces_are_replayed() -> None:
    for command in (["report", SEED_002], [SEED_002]):
        done = wltui_here(*command, "--replay")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "wltui: --replay: found a workload file, expected rank traces\n"


def test_the_screen_shows_the_replay(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    shown = wltui_here(str(tmp_path), "--compute-scale", "2", "--snapshot", "").stdout
    assert "step 17.500 ms" in shown
    assert "replayed" in shown.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--follow"], "FILE, a trainer's log or a directory of traces, is expected"),
        (["--follow", "-"], "FILE, a trainer's log or a directory of traces, is expected"),
        (["--follow", "train.log"], "without a terminal wltui report FILE reads what is there"),
        (["--follow", "train.log", "--snapshot", ""], "--follow and --snapshot"),
    ],
)
def test_what_is_followed_needs_a_screen(words: list[str], expected: str) -> None:
    done = wltui_here(*words)
    assert done.returncode == 2
    assert expected in done.stderr
