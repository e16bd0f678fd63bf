"""Files of results: appended lines, half-written ones, locks, what may go on and what may not, parts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.sweeping.point import encode_point
from simcore.sweeping.point_lines import PointParser
from simcore.sweeping.results_file import ResultsFile, ResultsReader, merge_files
from tests.command_line.running import ROOT, environment
from tests.sweep.made import made_point

POINTS = [made_point(0, 10), made_point(1, None), made_point(2, 30, tp=2)]


def _write(path: Path, points: list, sweep: str = "s") -> None:  # type: ignore[type-arg]
    with ResultsFile(str(path), sweep, resume=False) as file:
        for point in points:
            file.append(point)


def test_a_file_that_got_no_point_is_not_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    ResultsFile(str(path), "abc", resume=False).close()
    assert not path.exists()
    path.touch()
    ResultsFile(str(path), "abc", resume=False).close()
    # It was somebody's.
    assert path.exists()


def test_a_line_is_read_as_it_was_written(tmp_path: Path) -> None:
    for point in POINTS:
        assert PointParser("x").parse(encode_point(point), 1) == point
    _write(tmp_path / "r", POINTS)
    assert ResultsReader(str(tmp_path / "r")).read_new() == POINTS


def test_a_reader_gets_what_comes_in_and_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "r"
    _write(path, POINTS[:1])
    reader = ResultsReader(str(path))
    assert reader.read_new() == POINTS[:1]
    line = encode_point(POINTS[1])
    with path.open("ab") as file:
        file.write(line[:40])
    assert reader.read_new() == []
    assert reader.unread_bytes == 40
    with path.open("ab") as file:
        file.write(line[40:])
    assert reader.read_new() == [POINTS[1]]
    assert reader.unread_bytes == 0


def test_a_point_that_is_there_twice_is_refused_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    _write(path, [made_point(0, 10), made_point(1, 20)])
    path.write_bytes(path.read_bytes() + encode_point(made_point(1, 20)))
    with pytest.raises(InputError, match=r"r\.jsonl:3: .*point 1 again.*line 2"):
        ResultsReader(str(path)).read_new()


def test_a_half_written_last_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "r"
    whole = b"".join(map(encode_point, POINTS))
    path.write_bytes(whole + encode_point(POINTS[0])[:-30])
    with ResultsFile(str(path), "s", resume=True) as file:
        assert file.earlier_points == POINTS
        assert file.dropped == len(encode_point(POINTS[0])) - 30
        file.append(made_point(7, 5))
    assert path.read_bytes() == whole + encode_point(made_point(7, 5))


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r"
    _write(path, POINTS)
    with pytest.raises(UsageError, match="--resume goes on with it"):
        ResultsFile(str(path), "s", resume=False)
    with pytest.raises(UsageError, match="is of another sweep \\(s, this one is t\\)"):
        ResultsFile(str(path), "t", resume=True)
    other = tmp_path / "other"
    other.write_text("not ours\n")
    with pytest.raises(InputError, match="found no point of a sweep"):
        ResultsFile(str(other), "s", resume=True)
    other.write_text("half")
    with pytest.raises(UsageError, match="found no results of a sweep"):
        ResultsFile(str(other), "s", resume=True)
    assert other.read_text() == "half"
    with pytest.raises(InputError, match="cannot be written"):
        ResultsFile(str(tmp_path / "no" / "r"), "s", resume=False)


_HOLDER = """
import sys, time
from simcore.sweeping.results_file import ResultsFile
file = ResultsFile(sys.argv[1], "s", False)
print("there", flush=True)
time.sleep(60)
"""


def test_two_processes_never_write_one_file_and_a_dead_owners_lock_is_taken_over(tmp_path: Path) -> None:
    path = str(tmp_path / "r")
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, path], stdout=subprocess.PIPE, cwd=ROOT, env=environment()
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"there\n"
        with pytest.raises(UsageError, match="another process writes this file"):
            ResultsFile(path, "s", resume=True)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        ResultsFile(path, "s", resume=True).close()
    finally:
        holder.kill()
        holder.wait()
        if holder.stdout is not None:
            holder.stdout.close()


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """The size of the file is limited, so that its second line does not fit."""
    import resource

    path = tmp_path / "r"
    line = encode_point(POINTS[0])
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with ResultsFile(str(path), "s", resume=False) as file:
        file.append(POINTS[0])
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(line) + 50, before[1]))
        try:
            with pytest.raises(InputError, match="cannot be written: File too large"):
                file.append(POINTS[2])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)
        file.append(POINTS[2])
    assert path.read_bytes() == line + encode_point(POINTS[2])


def test_parts_become_one_in_the_order_of_points(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    _write(first, [POINTS[2], POINTS[0]])
    _write(second, [POINTS[1], POINTS[0]])
    assert merge_files([str(first), str(second)]) == POINTS
    other = tmp_path / "c"
    _write(other, [made_point(0, 11)])
    with pytest.raises(UsageError, match="point 0 is another one"):
        merge_files([str(first), str(other)])
    with pytest.raises(InputError, match="there is no such file"):
        merge_files([str(tmp_path / "none")])


def test_no_lock_is_left_behind(tmp_path: Path) -> None:
    _write(tmp_path / "r", POINTS)
    assert os.listdir(tmp_path) == ["r"]
