"""`wltui check` as a user runs it: one line a finding on stdout, and what the exit status says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from tests.command_line.running import SEED_001, SEED_002, TABLE, shell, wltui_here, workload_file
from tests.command_line.test_imports import RUN, loaded
from tests.findings import finding, findings
from tests.says import said
from tui.commands import view

LINE = re.compile(r"\S[^:]*(:\d+(:\d+)?)?: (error|warning|note) [a-z0-9-]+ \S.*")


def test_findings_are_lines_that_compilers_write() -> None:
    done = wltui_here("check", SEED_001)
    assert (done.returncode, done.stderr) == (0, "")
    assert findings(done.stdout.splitlines()) == [
        f"{SEED_001}:1:73: warning vpp-differs vpp, 8, 8, 1",
        f"{SEED_001}:1:80: warning ga-differs ga, 1, 2, 2",
        f"{SEED_001}:1:139: warning pp-comm-differs pp_comm, 50 331 648 B, 128, 393 216 B, 3 145 728 B, "
        "attention_column_1, 10, tp",
        f"{SEED_001}:2:1: warning row-count 98, 96, 96",
        f"{SEED_001}: note stage-layout-default 7, --stage-layout",
        f"{SEED_001}: note aicb-model AICB, 7, 10, attention_column_1, AICB",
    ]


def test_a_file_without_a_finding_is_silence(tmp_path: Path) -> None:
    row = "mlp_layer -1 5 ALLREDUCE 1000 6 NONE 0 7 ALLREDUCE 500 100"
    done = wltui_here("check", workload_file(tmp_path, row))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_error_is_exit_status_1_and_other_files_and_findings_are_told_too(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    text = "# by hand\nHYBRID_TRANSFORMER ep: x fold: 1\n3\na -1 y NONE 0 1 NONE 0 1 GATHER 0 100\n"
    bad.write_text(text)
    done = wltui_here("check", str(bad), "nowhere.txt", SEED_002)
    assert (done.returncode, done.stderr) == (1, "")
    found = [line.split(": ", 1) for line in done.stdout.splitlines()]
    assert [(place, words.split(" ")[:2]) for place, words in found] == [
        (f"{bad}:1:1", ["note", "comment"]),
        (f"{bad}:2:24", ["error", "not-a-number"]),
        (f"{bad}:2:26", ["note", "unknown-key"]),
        (f"{bad}:3:1", ["warning", "row-count"]),
        (f"{bad}:4:6", ["error", "not-a-number"]),
        ("nowhere.txt", ["error", "no-such-file"]),
        (f"{SEED_002}:1", ["note", "vpp-missing"]),
        (f"{SEED_002}:1", ["note", "pp-comm-missing"]),
        (f"{SEED_002}:10", ["warning", "backward-unsent"]),
        (SEED_002, ["note", "stage-layout-default"]),
        (SEED_002, ["note", "aicb-model"]),
    ]
    assert all(LINE.fullmatch(line) for line in done.stdout.splitlines())


def test_degrees_of_the_file_that_do_not_fit_are_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text(
        "HYBRID_TRANSFORMER ep: 1 pp: 3 all_gpus: 10\n1\nmlp_layer -1 5 NONE 0 6 NONE 0 7 NONE 0 100\n"
    )
    place = f"{path}:1:32: error degrees-do-not-fit"
    message = f"{place} world 10 is not a multiple of tp 1 x pp 3 = 3: 9 or 12 would fit"
    done = wltui_here("check", str(path))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, message)
    done = wltui_here("report", str(path))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message + "\n")


def test_json_has_the_same_findings() -> None:
    done = wltui_here("check", SEED_001, "nowhere.txt", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert (found["schema"], found["errors"]) == ("wltui.check/1", 1)
    first, second = found["files"]
    assert (first["file"], first["format"], first["rows"], first["errors"]) == (SEED_001, "simai", 98, 0)
    assert first["diagnostics"][3] == {
        "severity": "warning",
        "code": "row-count",
        "file": SEED_001,
        "line": 2,
        "column": 1,
        "message": "found 98 rows, expected 96; all are read, SimAI stops after 96",
    }
    assert (second["format"], second["rows"], second["errors"]) == (None, None, 1)
    assert second["diagnostics"][0]["line"] is None


def test_standard_input_is_a_file_too() -> None:
    done = shell(f"gzip -c {SEED_001} | WLTUI check -")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("standard input:1:73: warning vpp-differs ")
    for line in (shell("WLTUI check - <&-").stdout, shell("WLTUI report - <&-").stderr):
        assert finding(line) == "standard input: error unreadable-file"
        assert "closed" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: FILE (see wltui check --help)"),
        ([SEED_001, "--tp", "2"], "unrecognized arguments: --tp 2 (see wltui check --help)"),
        (["-", "-"], "FILE -: standard input can be read once"),
    ],
)
def test_wrong_usage_is_exit_status_2(words: list[str], message: str) -> None:
    done = wltui_here("check", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n")


def test_a_check_loads_nothing_that_it_does_not_use() -> None:
    rooms = ("engine", "cluster", "collectives", "folding", "analysis", "simulation")
    unwanted = (*(f"simcore.{room}" for room in rooms), "textual", "rich", "yaml", "numpy")
    assert loaded(RUN.format(words=["check", SEED_001], unwanted=unwanted)) == []


def test_a_closed_pipe_is_no_error() -> None:
    done = shell(f"WLTUI check {SEED_001} {SEED_002} | head -0")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_screen_says_where_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "is_terminal", lambda: True)
    with pytest.raises(UsageError) as refused:
        view.main(["-"])
    said([str(refused.value)], "FILE -", "standard input", "wltui report -", "wltui check -")


def test_a_closed_standard_input_gives_the_report() -> None:
    done = shell(f"WLTUI {TABLE} <&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Step time  ")
