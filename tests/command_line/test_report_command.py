"""`wltui report` as a user runs it: exit statuses, what goes to stdout and what to stderr."""

import json
from pathlib import Path

import pytest

from simcore import __version__
from simcore.program.schedules import SCHEDULES
from tests.command_line.running import OLD_HEADER, SEED_001, SEED_002, wltui, wltui_here
from tests.findings import facts
from tests.says import figures, said


def test_a_report_goes_to_stdout_and_exits_with_0() -> None:
    done = wltui("report", SEED_001, "--comm-scale", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Step time  141.6 ms\n")
    assert "▄" in done.stdout


def test_a_json_report_is_one_object() -> None:
    done = wltui_here("report", SEED_002, "--json", "--comm-scale", "0", "--schedule", "layer-loop")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["step_time_ns"] == 7_213_232_005


def test_every_parameter_has_a_flag_that_reaches_the_run(tmp_path: Path) -> None:
    system = tmp_path / "system.json"
    system.write_text("{}")
    flags = "--world 32 --tp 4 --ep 2 --pp 8 --rank-order tp-pp-dp --schedule 1f1b --microbatches 1"
    flags += " --dialect simai"
    flags += " --dim ring:4:100:5 --dim switch:16:10:50 --algorithm 0=direct --algorithm 1=ring"
    flags += f" --cluster a100-8 --system {system} --splits 4 --active-chunks 2"
    flags += " --collective-optimization baseline"
    flags += " --endpoint-delay 7 --local-mem-bw 1600 --network analytical"
    flags += " --compute-scale 0.5 --comm-scale 2 --no-fold --stage-layout megatron"
    flags += " --layers 3"
    flags += " --overlap-grad-reduce --overlap-param-gather --layer-scale mlp_row:fwd=0.5"
    flags += " --nvlink 300 --nic 24.5 --nics-per-server 4 --gpus-per-server 16 --gpu-type A100"
    flags += " --nic-type cx6 --overlap dp=0.5,tp=0.3"
    flags += " --passes 2"
    flags += " --slow-rank 7=1.3 --slow-link 1:5=0.5 --jitter 0.01 --seed 7"
    done = wltui_here("report", SEED_002, "--json", *flags.split(), "--time-scale", "compute fwd=0.5")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["parameters"] == {
        "world": 32,
        "tp": 4,
        "ep": 2,
        "pp": 8,
        "rank_order": "tp-pp-dp",
        "schedule": "1f1b",
        "microbatches": 1,
        "dialect": "simai",
        "cluster": "a100-8",
        "system": str(system),
        "dim": ["ring:4:100:5", "switch:16:10:50"],
        "algorithm": ["0=direct", "1=ring"],
        "splits": 4,
        "active_chunks": 2,
        "endpoint_delay": 7,
        "local_mem_bw": 1600.0,
        "collective_optimization": "baseline",
        "network": "analytical",
        "nvlink": 300.0,
        "nic": 24.5,
        "nics_per_server": 4,
        "gpus_per_server": 16,
        "gpu_type": "A100",
        "nic_type": "cx6",
        "overlap": ["dp=0.5,tp=0.3"],
        "compute_scale": 0.5,
        "comm_scale": 2.0,
        "no_fold": True,
        "virtual_stages": 1,
        "passes": 2,
        "layers": 1,
        "stage_layout": "megatron",
        "overlap_grad_reduce": True,
        "overlap_param_gather": True,
        "overlap_fwd_bwd": False,
        "steps": 1,
        "layer_scale": ["mlp_row:fwd=0.5"],
        "time_scale": ["compute fwd=0.5"],
        "slow_rank": ["7=1.3"],
        "slow_link": ["1:5=0.5"],
        "jitter": 0.01,
        "seed": 7,
    }
    assert json.loads(done.stdout)["rank_classes"] == 32


def test_the_version_is_one_line() -> None:
    done = wltui("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wltui {__version__}\n", "")


@pytest.mark.parametrize("words", [["--help"], ["report", "--help"], ["report", "-h"]])
def test_help_names_every_parameter(words: list[str]) -> None:
    done = wltui_here(*words)
    assert (done.returncode, done.stderr) == (0, "")
    # First what it does, then how it is called in one line.
    assert not done.stdout.startswith("usage")
    assert done.stdout.index("usage: wltui") < done.stdout.index("\noptions:\n")
    assert "[options]" in next(line for line in done.stdout.splitlines() if line.startswith("usage: "))
    for flag in ("--world", "--rank-order", "--microbatches", "--dim", "--endpoint-delay", "--no-fold"):
        assert f" {flag}" in done.stdout


def test_help_begins_with_what_it_does_and_three_examples() -> None:
    first, _, rest = wltui_here("--help").stdout.partition("\n\n")
    assert "step time" in first
    examples = rest.partition("\nusage: ")[0].splitlines()
    assert sum(line.startswith("  wltui ") for line in examples) == 3


@pytest.mark.parametrize("command", [[], ["report"]], ids=["screen", "report"])
def test_two_files_are_for_compare(command: list[str]) -> None:
    done = wltui_here(*command, SEED_002, "fixtures/000_gpt13b_tp4_old_header.txt")
    both = f"{SEED_002} fixtures/000_gpt13b_tp4_old_header.txt"
    said = f"wltui: found two files, expected one: wltui compare {both} holds them beside each other\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.slow
def test_without_a_terminal_wltui_prints_the_report() -> None:
    assert wltui_here(SEED_001).stdout == wltui_here("report", SEED_001).stdout
    assert wltui_here().stdout.startswith("Step time  14.774 s\n")


def test_the_same_report_twice_is_the_same_text_whatever_the_hash_seed() -> None:
    words = ("report", OLD_HEADER, "--json", "--dim", "ring:3:100:5", "--dim", "switch:400:10:50")
    assert len({wltui(*words, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "77")}) == 1


USAGE_ERRORS = [
    ([], "the following arguments are required: FILE, or --model NAME|FILE"),
    ([SEED_002, "--xyzzy"], "unrecognized arguments: --xyzzy (see wltui report --help)"),
    (
        [SEED_002, "more"],
        f"found two files, expected one: wltui compare {SEED_002} more holds them beside each other",
    ),
    ([SEED_002, "--micro", "4"], "unrecognized arguments: --micro 4 (see wltui report --help)"),
    ([SEED_002, "--dim"], "argument --dim: expected one argument (see wltui report --help)"),
    ([SEED_002, "--tp", "0"], "--tp 0: a whole number from 1 to 2^40 is expected"),
    ([SEED_002, "--tp", "-3"], "--tp -3: a whole number from 1 to 2^40 is expected"),
    ([SEED_002, "--comm-scale", "nan"], "--comm-scale nan: a number of 0 or more (up to 1e12) is expected"),
    ([SEED_002, "--pp", "3"], "world 1024 is not a multiple of tp 8 x pp 3 = 24: 1008 or 1032 would fit"),
    (
        [SEED_002, "--schedule", "x"],
        f"--schedule x: one of {', '.join(SCHEDULES)} is expected, or a schedule file",
    ),
    (
        [SEED_002, "--network", "x"],
        "--network x: one of analytical, shared, busbw:FILE, simai-auto, links, flows is expected",
    ),
    (
        [SEED_002, "--dim", "switch:8:450:500"],
        "the cluster has 8 NPUs (switch 8), too few for 1024 ranks: "
        "give dimensions whose product is 1024 or more",
    ),
    (
        [SEED_002, "--dim", "mesh:8:1:1"],
        "--dim mesh:8:1:1: KIND `mesh` is not ring, fully-connected or switch",
    ),
    ([SEED_002, "--algorithm", "2=ring"], "--algorithm 2=ring: no dimension `2` in this cluster, 0 to 1"),
]


def test_wrong_usage_is_one_line_on_stderr_and_exit_status_2() -> None:
    for words, message in USAGE_ERRORS:
        done = wltui_here("report", *words)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n"), words


def test_an_algorithm_that_does_not_fit_the_group_is_wrong_usage() -> None:
    words = ["--tp", "3", "--pp", "1", "--world", "12", "--dim", "switch:12:450:500"]
    done = wltui_here("report", SEED_002, *words, "--algorithm", "0=halving-doubling")
    assert (done.returncode, done.stdout) == (2, "")
    assert facts(done.stderr) == "--algorithm 0=halving-doubling, 3, 0"
    assert "ring or direct" in done.stderr


INPUT_ERRORS = [
    ("nowhere.txt", "nowhere.txt: error no-such-file there is no such file"),
]


@pytest.mark.parametrize(("path", "message"), INPUT_ERRORS)
def test_an_input_that_cannot_be_read_is_one_line_on_stderr_and_exit_status_1(
    path: str, message: str
) -> None:
    for words in (["report", path], ["report", path, "--json"], [path]):
        done = wltui_here(*words)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", message + "\n")


def test_the_dialect_of_a_file_can_be_overridden() -> None:
    done = wltui_here("report", SEED_001, "--dialect", "astra-sim-1", "--passes", "2", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["schedule"], len(report["pass_end_ns"])) == (0, "layer-loop", 2)
    assert report["workload"]["format"] == "simai"
    assert report["parameters"]["dialect"] == "astra-sim-1"
    assert "pp-ignored" in [one["code"] for one in report["diagnostics"]]


def test_what_if_is_printed_where_it_is_asked_for() -> None:
    plain, asked = wltui_here("report", SEED_001), wltui_here("report", SEED_001, "--what-if")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert "What if" not in plain.stdout
    assert figures(said(asked.stdout.splitlines(), "What if one")) == ["174.1 ms"]
    title, *lines = asked.stdout[asked.stdout.index("Changes you can ") :].splitlines()
    assert figures(title)[0] == "174.1 ms"
    rows = [line.split() for line in lines]
    flags = ["--overlap-grad-reduce", "--overlap-param-gather"]
    assert [*flags, "171.0", "ms", "-1.8", "%", "the", "step", "11.7"] in rows


def test_what_if_is_a_list_in_json_and_null_without_the_flag() -> None:
    assert json.loads(wltui_here("report", SEED_001, "--json").stdout)["what_if"] is None
    done = wltui_here("report", SEED_001, "--json", "--what-if", "--microbatches", "2")
    found = json.loads(done.stdout)["what_if"]
    (row,) = [one for one in found if one["knob"] == "--overlap-grad-reduce"]
    assert {key: row[key] for key in ("list", "free_ns", "better10_ns")} == {
        "list": "change",
        "free_ns": None,
        "better10_ns": 172_334_298,
    }
    assert {one["list"] for one in found} == {"change", "sensitivity"}
    assert {tuple(one)[:2] for one in found} == {("list", "knob")}


def test_all_layers_and_explain_are_text() -> None:
    done = wltui_here("report", SEED_001, "--all-layers")
    assert (done.returncode, done.stderr) == (0, "")
    said(done.stdout.splitlines(), "All rows", "block:")
    done = wltui_here("report", SEED_001, "--explain", "mlp_moelayer:ig")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mlp_moelayer: 9 equal rows, lines 12, 21, ")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--all-layers", "--json"], "--all-layers prints text; --json has the figures of all rows"),
        (["--explain", "mlp_row", "--json"], "--explain prints text; --json has the figures of all rows"),
        (["--explain", "mlp_rov"], "--explain mlp_rov: no row has this name, close ones are mlp_row"),
    ],
)
def test_what_cannot_be_shown_of_layers_is_said(words: list[str], error: str) -> None:
    done = wltui_here("report", SEED_002, *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {error}\n")


def test_a_measured_run_has_no_rows_to_explain() -> None:
    trace = "fixtures/004_megatron_rank7_trace.txt"
    done = wltui_here("report", trace, "--explain", "x")
    assert done.returncode == 2
    said(done.stderr.splitlines(), "wltui: --explain:", trace, "measured run", "workload file")
