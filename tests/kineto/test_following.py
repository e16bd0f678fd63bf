"""What is new in files that a running job writes.

Planted, one at a time: a log is read from its beginning at each look; a log that another one replaced is read
on at its end; a last line without an end counts; a directory is opened while a file in it changes. Each
of them failed here.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions
from simcore.sources import following
from simcore.sources.following import Follower
from simcore.workload.formats.training_log import LogReader
from tests.kineto.test_span_csv import TWO
from tests.kineto.test_training_log import MEGATRON
from tests.workload.texts import REPOSITORY


def lines(*steps: int) -> str:
    return "".join(MEGATRON.format(step=step, ms=100 + step) + "\n" for step in steps)


def follower(path: Path, **asked: object) -> Follower:
    return Follower(str(path), OpeningOptions(**asked))  # type: ignore[arg-type]


def steps_of(found: object) -> list[int]:
    assert isinstance(found, MeasuredRun)
    assert found.recorded is not None
    return [step.step_number for step in found.recorded.steps]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_log_is_waited_for_then_has_what_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    followed = follower(path)
    assert followed.look() is None
    assert "not there yet" in followed.waiting
    path.write_text("using world size: 8\n------------------------ arguments ------------------------\n")
    assert followed.look() is None
    assert "no step yet" in followed.waiting
    append(path, lines(1, 2))
    assert steps_of(followed.look()) == [1, 2]
    assert followed.waiting == ""
    assert followed.look() is None
    append(path, "a line without a step\n")
    assert followed.look() is None
    append(path, lines(3))
    assert steps_of(followed.look()) == [1, 2, 3]


def test_a_run_that_is_on_the_screen_does_not_grow_with_its_log(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(lines(1, 2))
    followed = follower(path, step="all")
    before = followed.look()
    append(path, lines(3))
    assert followed.look() is not None
    assert isinstance(before, MeasuredRun)
    ops = before.ranks[0].ops
    assert (len(ops), len(ops.start), len(ops.name), len(ops.line)) == (2, 2, 2, 2)


def test_half_a_line_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    text = lines(1, 2, 3)
    path.write_text("")
    followed = follower(path)
    found = []
    for at in range(0, len(text), 5):
        append(path, text[at : at + 5])
        run = followed.look()
        if run is not None:
            found.append((steps_of(run), at))
    ends = [at for at, char in enumerate(text) if char == "\n"]
    assert [steps for steps, _ in found] == [[1], [1, 2], [1, 2, 3]]
    assert [at for _, at in found] == [end - end % 5 for end in ends]


def test_the_new_bytes_of_a_log_alone_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, fed = tmp_path / "train.log", []
    feed = LogReader.feed
    monkeypatch.setattr(LogReader, "feed", lambda self, data: (fed.append(len(data)), feed(self, data))[1])
    path.write_text(lines(1, 2))
    followed = follower(path)
    followed.look()
    append(path, lines(3))
    followed.look()
    assert fed == [len(lines(1, 2)), len(lines(3))]


@pytest.mark.parametrize("how", ["truncated", "rotated", "replaced by a longer one"])
def test_what_stands_in_the_place_of_a_log_is_read_anew(tmp_path: Path, how: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(lines(1, 2, 3))
    followed = follower(path)
    followed.look()
    if how == "rotated":
        path.rename(tmp_path / "train.log.1")
        assert followed.look() is None
        path.write_text(lines(4, 5))
        expected = [4, 5]
    elif how == "truncated":
        path.write_text(lines(7))
        expected = [7]
    else:
        path.write_text(lines(*range(10, 20)))
        expected = list(range(10, 20))
    assert steps_of(followed.look()) == expected


def test_a_directory_is_opened_again_once_its_files_rest(tmp_path: Path) -> None:
    rank0, rank1 = (
        "".join(line for line in TWO.splitlines(True) if line.startswith(("rank", f"{rank},")))
        for rank in (0, 1)
    )
    (tmp_path / "rank0.csv").write_text(rank0)
    followed = follower(tmp_path)
    run = followed.look()
    assert isinstance(run, MeasuredRun)
    assert [rank.rank for rank in run.ranks] == [0]
    path = tmp_path / "rank1.csv"
    for at in range(0, len(rank1), 200):
        append(path, rank1[at : at + 200])
        os.utime(path, ns=(at, at))
        assert followed.look() is None
    run = followed.look()
    assert isinstance(run, MeasuredRun)
    assert [rank.rank for rank in run.ranks] == [0, 1]
    assert followed.look() is None


def test_a_file_that_never_rests_is_opened_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "rank0.csv"
    path.write_text(TWO)
    followed = follower(tmp_path)
    assert followed.look() is not None
    found = []
    for at in range(20):
        append(path, f"0,compute,{9000 + at},{9001 + at},tail,compute,,,\n" if at else "")
        os.utime(path, ns=(at, at))
        found.append(followed.look())
    assert [at for at, run in enumerate(found) if run is not None] == [9, 19]


def test_a_log_that_goes_away_while_it_is_looked_at_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "train.log"
    path.write_text(lines(1))
    followed = follower(path)
    states = following.find_states(str(path))
    path.unlink()
    monkeypatch.setattr(following, "find_states", lambda path: states)
    assert followed.look() is None
    assert "cannot be read" in followed.waiting
    monkeypatch.undo()
    path.write_text(lines(1))
    assert steps_of(followed.look()) == [1]


def test_a_damaged_file_is_no_error_and_a_workload_is(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": [')
    followed = follower(path)
    assert followed.look() is None
    assert "trace.json" in followed.waiting
    with pytest.raises(UsageError, match="expected what a running job writes"):
        follower(Path(REPOSITORY) / "fixtures" / "002_gpt_1024npu.txt").look()
