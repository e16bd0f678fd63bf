"""`wltui compare` as a user runs it: the page, the JSON, exit statuses, and the texts of its errors."""

import json
from pathlib import Path

import pytest

from simcore.program.schedules import SCHEDULES
from tests.command_line.running import SEED_001, SEED_002, TRACE, wltui_here, workload_file
from tests.measured.test_partners import LINES
from tests.measured.traces import write_set
from tests.says import figures, said


def test_a_comparison_is_one_screen_and_exits_with_0() -> None:
    done = wltui_here("compare", SEED_002, "--with", "--schedule zb-h1")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"Compare  {SEED_002}"
    why = "Why: fill and drain -4.080 s on the critical path: weight gradients fill the wait for the next"
    assert lines[4] == f"{why} backward."
    assert 24 <= len(lines) <= 40
    path = lines.index("Critical paths, what changes most (--all has all)")
    assert lines[path + 2] == ("  compute wg   4.216  0.136  -4.080  mlp_row           4.070  2.803  -1.267")


def test_json_has_the_keys_of_its_schema() -> None:
    done = wltui_here("compare", SEED_001, "--pp", "8", "--with", "--schedule zb-h1", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found) == [
        "schema", "a", "b", "difference_ns", "difference_percent", "why", "parts", "changed", "matched",
        "accounts", "worst", "layers", "critical_path", "movers", "unchanged", "peak_microbatches",
    ]  # fmt: skip
    assert found["schema"] == "wltui.compare/1"
    assert found["changed"] == {"schedule": {"a": "1f1b", "b": "zb-h1"}}
    assert (found["a"]["parameters"]["pp"], found["b"]["parameters"]["pp"]) == (8, 8)
    assert list(found["critical_path"]) == ["by_kind", "by_stage", "by_layer"]
    assert [list(found["critical_path"][by][0]) for by in ("by_kind", "by_stage", "by_layer")] == [
        [key, "a_ns", "b_ns", "difference_ns"] for key in ("kind", "stage", "layer")
    ]
    assert None in [one["layer"] for one in found["critical_path"]["by_layer"]], "transfers"
    assert found["difference_ns"] == found["b"]["step_time_ns"] - found["a"]["step_time_ns"]
    assert list(found["movers"][0]) == [
        "measure", "stage", "dp", "tp", "ranks", "name", "phase", "kind", "microbatch", "a_ns", "b_ns",
        "difference_ns",
    ]  # fmt: skip


def test_with_goes_over_the_parameters_of_a() -> None:
    words = ["--slow-rank", "3=2", "--microbatches", "1", "--with", "--microbatches 2 --slow-rank 5=1.5"]
    found = json.loads(wltui_here("compare", SEED_001, *words, "--json").stdout)
    # One word that looks like a flag is no flag of A.
    alone = wltui_here("compare", SEED_001, "--with", "--overlap-grad-reduce")
    assert (alone.returncode, alone.stderr) == (0, "")
    assert found["changed"] == {
        "microbatches": {"a": 1, "b": 2},
        "slow_rank": {"a": ["3=2"], "b": ["5=1.5"]},
    }


def test_two_files_are_compared(tmp_path: Path) -> None:
    first = workload_file(tmp_path, "mlp -1 5 NONE 0 7 NONE 0 9 NONE 0 100")
    folder = tmp_path / "other"
    folder.mkdir()
    second = workload_file(folder, "mlp -1 6 NONE 0 7 NONE 0 9 NONE 0 100")
    done = wltui_here("compare", first, second)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Why: compute +4.8 % (compute +1 ns on the critical path).\n" in done.stdout


def test_a_slower_run_fails_when_asked_to() -> None:
    slower = ["compare", SEED_001, "--with", "--compute-scale 1.1", "--fail-if-slower"]
    done = wltui_here(*slower, "2%")
    assert done.returncode == 1
    assert done.stderr == (
        "wltui: B is 8.1 % slower than A (174.1 ms, 188.3 ms): more than --fail-if-slower 2%\n"
    )
    assert done.stdout.startswith("Compare  ")
    assert wltui_here(*slower, "20").returncode == 0


NOTHING_ELSE = 'compare FILE needs --with "PARAMETERS", a second FILE, --run2, --step2, or --rank and --rank2'
NUMBER = "a percentage of 0 or more is expected, for example 2%"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([SEED_002], NOTHING_ELSE),
        (["-", "-"], "FILE -: standard input can be read once"),
        ([SEED_002, "--with", "'"], "--with ': no closing quotation"),
        ([SEED_002, "--with", "--nope"],
         "--with: unrecognized arguments: --nope (see wltui compare --help)"),
        ([SEED_002, "--with", "--pp x"], "--with: --pp x: a whole number from 1 to 2^40 is expected"),
        ([SEED_002, "--with", "--schedule x"],
         f"--with: --schedule x: one of {', '.join(SCHEDULES)} is expected, or a schedule file"),
        ([SEED_002, "--schedule", "x", "--with", "--pp 8"],
         f"--schedule x: one of {', '.join(SCHEDULES)} is expected, or a schedule file"),
        ([SEED_002, "--with", "", "--fail-if-slower", "x"], f"--fail-if-slower x: {NUMBER}"),
        ([SEED_002, "--with", "", "--fail-if-slower", "-1%"], f"--fail-if-slower -1%: {NUMBER}"),
        ([TRACE, "--with", "--pp 8"],
         "--with: --pp has no meaning for a trace; its replay takes --compute-scale, --comm-scale, "
         "--layer-scale, --slow-rank, --replay, --gap-scale, --slow-host, --host-scale, "
         "--kind-scale and --stage-scale"),
        ([SEED_002, TRACE, "--with", "--pp 8"],
         "--with: --pp has no meaning for a trace; its replay takes --compute-scale, --comm-scale, "
         "--layer-scale, --slow-rank, --replay, --gap-scale, --slow-host, --host-scale, "
         "--kind-scale and --stage-scale"),
    ],
)  # fmt: skip
def test_wrong_usage_says_what_is_expected(words: list[str], error: str) -> None:
    if "-1%" in words:
        words = [*words[:-2], "--fail-if-slower=-1%"]
    done = wltui_here("compare", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"wltui: {error}\n"


def test_help_names_what_is_special() -> None:
    done = wltui_here("compare", "--help")
    assert done.returncode == 0
    assert "--fail-if-slower" in done.stdout
    assert "--with" in done.stdout
    assert "--against" in done.stdout


def test_a_page_has_at_most_40_lines_and_all_has_everything() -> None:
    words = ["compare", SEED_001, "--with", "--tp 2"]
    short, whole = (wltui_here(*words, *more).stdout.splitlines() for more in ((), ("--all",)))
    assert len(short) <= 40 < len(whole)
    assert figures(said(short, "Layers that change")) == ["8", "--all"]
    assert figures(said(whole, "Layers that change")) == []
    assert {line for line in short if line.startswith("  exposed")} <= set(whole)


def test_a_workload_stands_beside_a_trace() -> None:
    done = wltui_here("compare", SEED_002, TRACE)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    # What has to be known comes before the figures.
    first = next(place for place, line in enumerate(lines) if line.startswith("A  "))
    assert lines[first] == f"A  14.774 s    {SEED_002}: simulated, tp 8 x dp 8 x pp 16, 16 micro-batches"
    assert lines[first + 1] == f"B  3.851 s     {TRACE}: measured, 1 micro-batch"
    assert lines[first + 2].startswith("B - A  -10.923 s (-73.9 %); 1 stage paired")
    said(lines[:1], "micro-batches 16 in A", "1 in B", "of B tp, dp, pp", "by stage alone")
    assert figures(lines[1]) == ["--microbatches", "1"]
    assert len(lines) <= 40
    found = json.loads(wltui_here("compare", SEED_002, TRACE, "--json").stdout)
    assert list(found) == [
        "schema", "a", "b", "difference_ns", "difference_percent", "why", "parts", "unlike",
        "paired_by", "accounts", "stages", "lanes", "movers", "unchanged",
    ]  # fmt: skip
    assert (found["schema"], found["paired_by"]) == ("wltui.beside/1", "stage")
    assert list(found["movers"][0]) == ["stage", "rank", "kind", "a_ns", "b_ns", "difference_ns"]
    assert [side["kind"] for side in (found["a"], found["b"])] == ["simulated", "measured"]


def test_parameters_of_the_command_line_are_the_workloads_not_the_traces() -> None:
    found = json.loads(
        wltui_here("compare", SEED_002, TRACE, "--pp", "8", "--compute-scale", "2", "--json").stdout
    )
    assert (found["a"]["pp"], found["b"]["kind"]) == (8, "measured")
    replayed = json.loads(wltui_here("compare", TRACE, "--with", "--compute-scale 2", "--json").stdout)
    assert [replayed[side]["kind"] for side in ("a", "b")] == ["measured", "replayed"]
    assert replayed["difference_ns"] > 0


def test_a_plan_without_times_cannot_be_compared(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    path.write_text("stage:0:forward_step(batch_id=0, mg_state=warmup, duration=None)\n")
    done = wltui_here("compare", SEED_002, str(path))
    assert (done.returncode, done.stdout) == (2, "")
    said(done.stderr.splitlines(), f"wltui: compare {path}:", "without times", "with durations")


def test_the_same_on_the_screen_and_without_a_terminal_as_a_page() -> None:
    page = wltui_here(TRACE, "--against", SEED_002)
    assert (page.returncode, page.stderr) == (0, "")
    assert page.stdout == wltui_here("compare", SEED_002, TRACE).stdout
    screen = wltui_here(TRACE, "--against", SEED_002, "--snapshot", "").stdout
    lines = screen.splitlines()
    assert "[6 Compare]" in lines[1]
    assert lines[2].startswith(" A  against  14.774 s   923.4 ms/mb  002_gpt_1024npu.txt, simulated, tp 8")
    opened = " B  run 1    3.851 s    3.851 s/mb   004_megatron_rank7_trace.txt, measured, 1 micro-batch"
    assert lines[3].startswith(opened)
    assert "stage 3" in screen


def test_against_what_has_nothing_in_common_is_an_error_before_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    path.write_text("stage:0:forward_step(batch_id=0, mg_state=warmup, duration=None)\n")
    done = wltui_here(SEED_002, "--against", str(path), "--snapshot", "")
    assert (done.returncode, done.stdout) == (2, "")
    said(done.stderr.splitlines(), str(path), "without times")


def test_two_runs_of_one_directory_are_told_apart_by_their_stamps(tmp_path: Path) -> None:
    """Also where the path is too long for its line; a run beside its own replay needs no stamp."""
    traces = tmp_path / ("long" * 20)
    traces.mkdir()
    stamps = ("20240923205004", "20250320144110")
    for stamp in stamps:
        write_set(traces, LINES, stamp=stamp)
    chosen = (str(traces), "--run", stamps[0], "--run2", stamps[1])
    done = wltui_here("compare", *chosen)
    assert (done.returncode, done.stderr) == (0, "")
    for line, stamp in zip(done.stdout.splitlines(), stamps, strict=False):
        assert f" run {stamp} of " in line
    found = json.loads(wltui_here("compare", *chosen, "--json").stdout)
    assert [found[side]["run"] for side in "ab"] == list(stamps)
    assert found["a"]["file"] == found["b"]["file"]
    own = wltui_here("compare", str(traces), "--with", "--compute-scale 2")
    assert not any(stamp in line for stamp in stamps for line in own.stdout.splitlines()[:2])


def missing_rank(folder: Path) -> tuple[str, str]:
    """A workload, and a trace of two stages of two ranks in which rank 2 is missing."""
    traces = folder / "traces"
    traces.mkdir()
    write_set(traces, {rank: lines for rank, lines in LINES.items() if rank != 2})
    workload = folder / "w.txt"
    workload.write_text(
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 2 vpp: 1 ga: 1 all_gpus: 4 "
        "pp_comm: 1000\n2\nembedding_layer -1 100000000 NONE 0 0 NONE 0 0 NONE 0 100\n"
        "mlp_row -1 100000000 NONE 0 100000000 NONE 0 100000000 NONE 0 100\n"
    )
    return str(workload), str(traces)


_DIMS = ("--dim", "switch:2:20:0", "--dim", "switch:2:20:0")


def test_a_comparison_does_not_keep_a_traces_warnings_to_itself(tmp_path: Path) -> None:
    workload, traces = missing_rank(tmp_path)
    warning = f"{traces}: warning ranks-missing rank 2 of 4 is missing: 3 ranks shown\n"
    page = wltui_here("compare", workload, traces, *_DIMS)
    assert (page.returncode, page.stderr) == (0, warning)
    words = " ".join(page.stdout.split())
    # Rank 0 receives for 310 ms; the last 2 ms of it are all that its neighbour does not wait.
    missing = words[words.index("Of B rank 2 ") :].split(". ")[0]
    assert figures(missing)[:4] == ["2", "3", "312.0 ms", "0"]
    said([missing], "Of B rank 2", "3 receives", "no partner", "312.0 ms", "rank 0")
    other = wltui_here("compare", traces, workload, *_DIMS)
    assert other.stderr == warning
    assert "Of A rank 2 is missing: 3 receives" in other.stdout
    # Of a trace beside itself it is said once, and of both sides what it means.
    both = wltui_here("compare", traces, traces)
    assert (both.stderr, both.stdout.count("have no partner")) == (warning, 2)
    found = json.loads(wltui_here("compare", workload, traces, *_DIMS, "--json").stdout)
    assert [one["code"] for one in found["b"]["diagnostics"]] == [
        "ranks-missing",
        "layout-assumed",
        "no-partner",
    ]
    assert found["b"]["diagnostics"][0]["message"] == "rank 2 of 4 is missing: 3 ranks shown"
    assert all(one["file"] == workload for one in found["a"]["diagnostics"])


def test_the_screen_has_the_notes_of_what_stands_beside(tmp_path: Path) -> None:
    workload, traces = missing_rank(tmp_path)
    alone = wltui_here(workload, *_DIMS, "--snapshot", "!").stdout
    assert "ranks-missing" not in alone
    words = (workload, "--against", f"{traces}/", *_DIMS)
    notes = wltui_here(*words, "--snapshot", "!").stdout
    assert " traces: rank 2 of 4 is missing: 3 ranks shown  [ranks-missing]" in notes
    assert "[no-partner]" in notes
    assert "6 notes" in notes.splitlines()[1]
    assert "Of A rank 2 is missing" in wltui_here(*words, "--snapshot", "", "--size", "160x40").stdout
    # Without a terminal it is the page, and its warnings.
    page = wltui_here(*words)
    assert page.stderr == f"{traces}/: warning ranks-missing rank 2 of 4 is missing: 3 ranks shown\n"
