"""Small files that showed a fault: each is an error at its place, at once, with nothing raw printed."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError
from simcore.kineto.nsys import read_nsys
from simcore.parameters import Parameters
from simcore.shell_words import join_words
from simcore.sweeping.point import Point, encode_point
from simcore.sweeping.point_lines import PointParser
from tests.hostile.running import wltui
from tests.sweep.made import made_point

CASES = Path(__file__).parent / "cases"
SEED = "fixtures/002_gpt_1024npu.txt"
# What a command opens; where the error must point.
REFUSED = {
    "results_command_osc52.jsonl": ("CASE", ":1:"),
    "results_layout_list.jsonl": ("sweep --merge CASE", ":1:"),
    "results_negative_step.jsonl": ("export CASE --format html -o -", ":1:"),
    "sqlite_dag_bomb.sqlite": ("report CASE", "row "),
    "kineto_rank_outside_world.json": ("report CASE", ":1:22:"),
    "chakra.0.json": ("report CASE", "entry 0 of the nodes"),
    "chakra_duration/wl.0.et": ("report CASE", "node 1"),
    "gpu_base_list.toml": (f"report {SEED} --gpu CASE", ":2:1:"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_case_is_an_error_at_its_place_at_once(name: str) -> None:
    command, place = REFUSED[name]
    path = str(CASES / name)
    began = time.process_time()
    done = wltui(*(word.replace("CASE", path) for word in command.split()))
    assert time.process_time() - began < 2
    assert (done.status, done.out) == (1, "")
    (line,) = done.err.splitlines()
    assert line.startswith(path)
    assert place in line
    assert "OWNED" not in line


def _line(**values: Any) -> bytes:
    fields = json.loads(encode_point(made_point(0, 10)))
    return json.dumps(fields | values).encode()


# What no sweep writes: each a line of results that differs from a whole one in this.
IMPOSSIBLE: list[dict[str, Any]] = [
    {"step_time_ns": -5}, {"step_time_ns": 1 << 62}, {"step_time_ns": 1.5}, {"step_time_ns": None},
    {"skipped": "memory: x"}, {"skipped": "\x1b[2J"}, {"point": -1}, {"gpus": -1}, {"gpus": "8"},
    {"work": -1}, {"cost": -0.5}, {"cost": 1e300}, {"tokens_per_s": -1.0}, {"memory_peak_bytes": -1},
    {"at_least_ns": -1}, {"sweep": "\x1b]0;x\x07"}, {"sweep": ""}, {"version": "a\nb"}, {"input": "\u202e"},
    {"rule": "time;²;"}, {"rule": f"time;{'9' * 5000};"}, {"rule": "x;1;"}, {"schema": "other/1"},
    {"layout": {"tp": [1]}}, {"layout": {"tp": "²"}}, {"layout": {"tp": -1}}, {"layout": {"tp": True}},
    {"layout": {"\x1b[2J": 1}}, {"layout": {"schedule": ["1f1b"]}}, {"layout": {"gpus": {}}},
    {"layout": {"dim": [1]}}, {"layout": []}, {"parameters": {"tp": "²"}}, {"parameters": {"x": 1}},
    {"parameters": {"tp": [2]}}, {"parameters": []}, {"parameters": {"tp": 2}},
    {"command": "wltui report x; touch x"}, {"command": "wltui report x y"}, {"command": "wltui report 'x"},
    {"command": "wltui report --help"}, {"command": "wltui report --model"}, {"command": ""},
    {"command": "wltui report --model -x"}, {"command": "wltui  report x"}, {"command": "rm -r x"},
    {"command": "wltui report x\n"}, {"command": "wltui report $(x)"}, {"command": "wltui report a`x`"},
    {"command": "wltui report \x1b]52;c;QQ==\x07"}, {"command": "wltui report a\u202eb"},
    {"command": "wltui report x --tp 2"}, {"command": 5},
]  # fmt: skip


@pytest.mark.parametrize("values", IMPOSSIBLE, ids=map(str, range(len(IMPOSSIBLE))))
def test_a_line_that_no_sweep_writes_is_refused_at_its_line(values: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        PointParser("r.jsonl").parse(_line(**values), 7)
    (error,) = refused.value.diagnostics
    assert (error.file, error.line) == ("r.jsonl", 7)
    assert error.message.isprintable()
    assert "touch" not in error.message


@pytest.mark.parametrize(
    "words",
    [["x"], ["a b"], ["a'b\\"], ["a\x1b[2Jb"], ["\udcff\udcfe.txt"], ["--model", "gpt"], []],
    ids=["word", "blank", "quote", "controls", "no UTF-8", "model", "none"],
)
def test_a_command_of_any_file_name_is_that_of_its_parameters(words: list[str]) -> None:
    parameters = Parameters(tp=2, schedule="1f1b", slow_rank=("3=1.5",), compute_scale=0.5, gpu="-x")
    command = join_words(["wltui", "report", *words, *parameters.as_flags()])
    point = PointParser("r").parse(
        _line(command=command, parameters=dict(reversed(parameters.explicit_values().items()))), 1
    )
    assert isinstance(point, Point)
    assert encode_point(point).isascii() or "\\" in command


def test_texts_and_rows_of_a_database_are_no_more_than_it_has_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    with connection:
        columns = "start, end, deviceId, streamId, shortName"
        connection.execute(f"create table CUPTI_ACTIVITY_KIND_KERNEL ({columns})")
        rows = [(10 * row, 10 * row + 5, 0, 7, "gemm") for row in range(5000)]
        connection.executemany("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, ?, ?)", rows)
    connection.close()
    recordings, _ = read_nsys(str(path))
    assert len(recordings[0].ops.name) == 5000
    monkeypatch.setattr("simcore.kineto.nsys.os.path.getsize", lambda _: 9000)
    with pytest.raises(InputError, match=r"row \d+|text"):
        read_nsys(str(path))


@pytest.mark.parametrize("node", [
    {"id": "²"}, {"id": "1" * 30}, {"id": -(1 << 70)}, {"id": 1, "type": "²"}, {"id": 1, "type": [1]},
    {"id": 1, "durationMicros": "²"}, {"id": 1, "type": 4, "durationMicros": 1 << 62},
    {"id": 1, "data_deps": ["²"]}, {"id": 1, "type": "COMP_NODE", "num_ops": 10**400},
    {"id": 1, "type": "COMP_NODE", "attr": [{"name": "num_ops", "value": 1 << 80}]},
])  # fmt: skip
def test_a_value_of_a_node_that_cannot_be_is_an_error_of_its_file(
    tmp_path: Path, node: dict[str, Any]
) -> None:
    path = tmp_path / "t.0.json"
    path.write_text(json.dumps({"schema": "1", "nodes": []}) + json.dumps(node, ensure_ascii=False))
    # By its prefix it is an execution trace.
    for opened in (path, tmp_path / "t"):
        done = wltui("report", str(opened))
        assert done.status == 1
        assert str(path) in done.err


def test_no_text_becomes_a_number_by_what_other_scripts_call_a_digit() -> None:
    # int("²") is an error, and int("٣") a number that nobody wrote.
    calls = re.compile(r"([\w\[\]\.()]+)\.(?:isdigit|isdecimal|isnumeric)\(\)")
    wrong = []
    for folder in ("simcore", "tui"):
        for path in Path(folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for match in calls.finditer(text):
                near = text[max(match.start() - 120, 0) : match.end() + 60]
                if re.search(r"\bint\(", near) and "isascii()" not in near:
                    wrong.append((str(path), match[0]))
    assert wrong == []
