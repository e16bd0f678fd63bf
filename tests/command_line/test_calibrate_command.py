"""`wltui calibrate` as a user runs it: the page, the JSON, the saved file, and the texts of its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line.running import SEED_002, TRACE, wltui_here
from tests.measured.traces import Op, Sub, write_set
from tests.says import figures, said

HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 1 ga: 1 all_gpus: 4"
ROWS = (
    "grad_param_comm -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 90000000",
    "embedding_layer -1 1000000 NONE 0 0 NONE 0 0 NONE 0",
    "mlp_row -1 1000000 NONE 0 2000000 NONE 0 2000000 NONE 0",
)


def inputs(folder: Path, recv_ms: float = 4.0) -> tuple[str, str]:
    """A workload of two stages and two replicas, and a trace of it: compute twice as long, sends of 1 ms."""
    workload, traces = folder / "made.txt", folder / "traces"
    rows = ["\t".join([*row.split(), "100"]) for row in ROWS]
    workload.write_text("\n".join([f"{HEADER} pp_comm: 10000000", str(len(rows)), *rows]) + "\n")
    traces.mkdir()
    ranks = {}
    for rank in (0, 1):
        ranks[rank] = [
            Op("forward_step", "1004.00", "4.00"),
            Op("send_forward", "1005.00", "1.00", group="pp"),
            Op("recv_backward", "1018.00", "13.00", group="pp"),
            Op("backward_step", "1026.00", "8.00"),
            Op("dp_allreduce", "1036.00", "10.00", group="dp"),
        ]
        ranks[rank + 2] = [
            Op("recv_forward", "1005.00", f"{recv_ms:.2f}", group="pp", stage=1),
            Op("forward_step", "1009.00", "4.00", stage=1),
            Op("backward_step", "1017.00", "8.00", stage=1),
            Op("send_backward", "1018.00", "1.00", group="pp", stage=1),
            # Rank 3 comes 2 ms later: 10 ms of the 12 are the collective.
            Op("dp_allreduce", "1034.00", "16.00" if rank == 0 else "10.00", group="dp", stage=1),
        ]
    texts = {rank: "".join(one.line(rank) + "\n" for one in ops) for rank, ops in ranks.items()}
    write_set(traces, texts)
    return str(workload), str(traces)


DIMS = ("--dim", "switch:2:20:0", "--dim", "switch:2:20:0")


def test_the_page_says_what_was_fitted_by_what_and_what_is_left(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path)
    done = wltui_here("calibrate", workload, traces, *DIMS)
    assert (done.returncode, done.stderr) == (0, "")
    files, steps, fitted, kinds, rest = (part.splitlines() for part in done.stdout.split("\n\n"))
    assert [line.split()[-1] for line in files] == [workload, traces]
    assert figures(said(steps, "Measured")) == ["36.000 ms"]
    assert figures(said(steps, "Simulated")) == ["17.500 ms", "-51.4 %", "36.000 ms", "0.0 %"]
    said(fitted, "compute scale", "1 -> 2", "by forward", "backward")
    said(fitted, "dimension 0", "switch 2", "20 GB/s", "0 ns", "9.00003 GB/s", "by dp")
    said(fitted, "dimension 1", "switch 2", "20 GB/s", "0 ns", "9.99999 GB/s", "by pp forward", "pp backward")
    assert figures(kinds[0]) == ["4"]
    assert [line.split() for line in kinds[2:]] == [
        ["forward", "4.000", "2.000", "-50.0", "%", "4.000", "0.0", "%"],
        ["backward", "8.000", "4.000", "-50.0", "%", "8.000", "0.0", "%"],
        ["dp", "1", "10.000", "4.500", "-55.0", "%", "10.000", "0.0", "%"],
        ["pp", "forward", "0.5", "0.500", "0.250", "-50.0", "%", "0.500", "0.0", "%"],
        ["pp", "backward", "0.5", "0.500", "0.250", "-50.0", "%", "0.500", "0.0", "%"],
    ]
    assert figures(said(rest, "host gaps")) == ["1.500 ms"]
    assert figures(rest[-1]) == ["--output", "--params"]


def test_a_send_that_may_have_waited_for_its_receiver_decides_nothing(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path, recv_ms=0.5)
    lines = wltui_here("calibrate", workload, traces, *DIMS).stdout.splitlines()
    row = said(lines, "  pp forward").split()
    assert row[:8] == ["pp", "forward", "0.5", "-", "0.250", "0.500", "2", "calls"]
    assert said(lines, "dimension 1", "9.99999 GB/s").endswith("by pp backward")


def test_without_dimensions_compute_alone_is_fitted_and_it_is_said(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path)
    done = wltui_here("calibrate", workload, traces, "--network", "simai-auto")
    fitted = done.stdout.partition("\nFitted\n")[2].partition("\n\n")[0].splitlines()
    assert fitted == [said(fitted, "compute scale", "1 -> 2", "forward", "backward")]
    said(done.stdout.splitlines(), "--network simai-auto", "no dimensions")


def test_the_saved_parameters_simulate_the_fitted_step(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path)
    out = tmp_path / "fitted.toml"
    done = wltui_here("calibrate", workload, traces, *DIMS, "--output", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"\nSaved in {out}: --params takes it\n")
    assert out.read_text() == ('dim = ["switch:2:9.00003:0", "switch:2:9.99999:0"]\ncompute_scale = 2.0\n')
    found = json.loads(wltui_here("report", workload, "--params", str(out), "--json").stdout)
    again = json.loads(wltui_here("calibrate", workload, traces, *DIMS, "--json").stdout)
    assert found["step_time_ns"] == again["after"]["step_time_ns"]


def test_what_is_saved_says_which_slow_ranks_are_not_in_it_and_what_has_them(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path)
    path = next(Path(traces).glob("*rank3*"))
    # Both passes of rank 3 take half as long.
    text = path.read_text().replace("duration=4.00", "duration=2.00")
    path.write_text(text.replace("duration=8.00", "duration=4.00"))
    out = tmp_path / "fitted.toml"
    done = wltui_here("calibrate", workload, traces, *DIMS, "-o", str(out), "--slow-rank", "0=1")
    assert done.returncode == 0
    saved, left_out, command = [line for line in done.stdout.splitlines() if line][-3:]
    assert figures(saved) == [str(out), "--params", "--slow-rank", "0", "1"]
    assert command == f"  wltui {workload} --params {out} --slow-rank 0=1 --slow-rank 3=0.5"
    rank, without, _, beside, _ = figures(left_out)
    assert rank == "3"
    # What is said is what these commands give.
    for flags, step in (((), without), (command.split()[4:], beside)):
        done = wltui_here("report", workload, "--params", str(out), *flags)
        assert done.stdout.startswith(f"Step time  {step}\n")
    done = wltui_here("calibrate", workload, traces, *DIMS)
    saves, left_out, _ = [line for line in done.stdout.splitlines() if line][-3:]
    assert (figures(saves), figures(left_out)[0]) == (["--output", "--params"], "3")
    assert done.stdout.endswith(f"\n  wltui {workload} --params FILE --slow-rank 3=0.5\n")


def test_a_file_is_overwritten_with_force_alone(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path)
    out = tmp_path / "fitted.toml"
    out.write_text("tp = 2\n")
    words = ("calibrate", workload, traces, "-o", str(out))
    done = wltui_here(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"wltui: {out} is there already: --force overwrites it\n"
    assert out.read_text() == "tp = 2\n"
    assert wltui_here(*words, "--force").returncode == 0
    assert "compute_scale = 2.0" in out.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_json_has_the_keys_of_its_schema(tmp_path: Path) -> None:
    workload, traces = inputs(tmp_path)
    found = json.loads(wltui_here("calibrate", workload, traces, *DIMS, "--json").stdout)
    assert list(found) == [
        "schema", "workload", "measured", "before", "after", "compute_scale", "dimensions", "kinds",
        "ranks_off", "slowed_step_time_ns", "notes", "diagnostics",
    ]  # fmt: skip
    assert found["schema"] == "wltui.calibrate/1"
    assert found["measured"] == {
        "file": traces, "step_time_ns": 36_000_000, "ranks": 4, "concurrent": True, "host_ns": 0,
        "gaps_ns": 6_000_000,
    }  # fmt: skip
    assert found["compute_scale"] == {
        "before": 1.0, "after": 2.0, "by": ["forward", "backward"], "not_fitted": None, "factors": None,
    }  # fmt: skip
    assert found["dimensions"][0] == {
        "index": 0, "before_gbps": 20.0, "after_gbps": 9.00003, "by": ["dp"], "together": [],
        "not_fitted": None,
    }  # fmt: skip
    assert found["kinds"][0] == {
        "kind": "forward", "measured_calls": None, "simulated_calls": 8, "measured_ns": 16_000_000,
        "before_ns": 8_000_000, "after_ns": 16_000_000, "fitted": True, "why": None,
    }  # fmt: skip
    assert found["after"]["flags"] == [
        "--dim", "switch:2:9.00003:0", "--dim", "switch:2:9.99999:0", "--compute-scale", "2.0"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--pp", "1"],
            "calibrate: the trace has tp 1 x dp 2 x pp 2, the simulated step tp 1 x dp 4 x pp 1 "
            "(--world 4 --tp 1 --pp 2)",
        ),
        (
            ["--microbatches", "3"],
            "calibrate: the trace has 1 micro-batch, the simulated step 3 micro-batches (--microbatches 1)",
        ),
        (
            ["--dialect", "astra-sim-1"],
            "calibrate: dialect astra-sim-1 queues its collectives by chunks, which no trace shows; "
            "--dialect simai takes the rows as SimAI does",
        ),
        (["--force"], "--force overwrites the FILE of --output: name one"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path: Path, flags: list[str], message: str) -> None:
    workload, traces = inputs(tmp_path)
    done = wltui_here("calibrate", workload, traces, *flags)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n")


def test_filesin_the_wrong_place_are_refused(tmp_path: Path) -> None:
    workload, _ = inputs(tmp_path)
    plan = tmp_path / "plan.txt"
    plan.write_text("stage:0:forward_step(batch_id=0, mg_state=warmup, duration=None)\n")
    late = tmp_path / "late.txt"
    late.write_text(Op("forward_step", "104.00", "4.00", stage=0).line(3) + "\n")
    refused = [
        ((TRACE, workload), f"calibrate: WORKLOAD {TRACE} is a measured run; a workload file is expected"),
        ((SEED_002, SEED_002), f"calibrate: TRACE {SEED_002} is a workload; rank traces or profiler traces, "
         "a directory or one of them, are expected"),
        (("-", "-"), "WORKLOAD - and TRACE -: standard input can be read once"),
        ((workload, TRACE), f"calibrate: {TRACE} has rank 7, the simulated step 4 ranks"),
    ]  # fmt: skip
    for words, message in refused:
        done = wltui_here("calibrate", *words)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n")
    for path, ending in (
        (plan, "is an order of operations without times, expected a trace with durations"),
        (late, "is of stage 0; with tp 1, dp 2 and pp 2 it would be of stage 1"),
    ):
        assert wltui_here("calibrate", workload, str(path)).stderr.endswith(f" {ending}\n")


def test_a_trace_that_states_no_layout_takes_that_of_the_workload(tmp_path: Path) -> None:
    workload, _ = inputs(tmp_path)
    trace = tmp_path / "one.txt"
    ops = [Op("forward_step", "1004.00", "6.00", stage=1), Op("backward_step", "1024.00", "12.00", stage=1)]
    trace.write_text("".join(op.line(3) + "\n" for op in ops))
    done = wltui_here("calibrate", workload, str(trace))
    lines = done.stdout.splitlines()
    said(lines, "  compute scale", "1 -> 3", "forward", "backward")
    said(lines, "laid out", "the workload")
    assert figures(said(lines, "Of 4 ranks")) == ["4", "1"]


def test_where_nothing_is_in_both_nothing_is_saved(tmp_path: Path) -> None:
    workload, _ = inputs(tmp_path)
    trace, out = tmp_path / "one.txt", tmp_path / "fitted.toml"
    # A forward step that is communication throughout.
    op = Op("forward_step", "1004.00", "6.00", subs=(Sub("1004.00", "6.00"),))
    trace.write_text(op.line(0) + "\n")
    done = wltui_here("calibrate", workload, str(trace), "-o", str(out))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"wltui: --output {out}: nothing")
    assert done.stderr.count("\n") == 1
    assert not out.exists()
    page = wltui_here("calibrate", workload, str(trace)).stdout
    assert "\nFitted\n" not in page
    said(page.splitlines(), "  compute scale", "not fitted", "no compute")
