"""What is no file, leads nowhere or to itself, cannot be read or goes away: for every path that is given."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simcore.diagnostics import printable
from tests.findings import finding
from tests.hostile.names import traces
from tests.hostile.running import wltui

SEED = "fixtures/000_gpt13b_tp4_old_header.txt"
TRACE = "fixtures/004_megatron_rank7_trace.txt"
PATIENCE = 10.0
KINDS = [
    "missing", "dangling", "loop", "fifo", "socket", "directory", "zero", "full", "memory", "below a file",
    "kernel log",
]  # fmt: skip
# As the words of a command: PATH stands for what is no file.
PLACES = [
    "report PATH", "check PATH", "compare SEED PATH", "compare PATH SEED", "calibrate SEED PATH",
    "calibrate PATH TRACE", "PATH --snapshot 2", "SEED --against PATH --snapshot 2",
    "report SEED --params PATH", "report SEED --cluster PATH", "report SEED --system PATH",
    "report SEED --network busbw:PATH", "compare SEED --with --cluster=PATH",
    "export PATH --format csv -o -", "report --model PATH", "models PATH", "report SEED --gpu PATH",
    "report SEED --schedule PATH", "export PATH --format html -o -",
]  # fmt: skip


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A path at which there is no file that can be read."""
    path = tmp_path / "place"
    kind = request.param
    if kind == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    elif kind == "loop":
        path.symlink_to(tmp_path / "other")
        (tmp_path / "other").symlink_to(path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind in ("zero", "full"):
        path.symlink_to(f"/dev/{kind}")
    elif kind == "memory":
        # A regular file that is empty by its size, and whose first page cannot be read.
        path.symlink_to("/proc/self/mem")
    elif kind == "kernel log":
        # Regular by its kind, and a read waits for the next message.
        path.symlink_to("/proc/kmsg")
    elif kind == "below a file":
        (tmp_path / "file").write_bytes(b"")
        path = tmp_path / "file" / "place"
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "socket":
            server.bind(str(path))
        yield path


def test_what_is_no_file_is_one_line_at_once(place: Path) -> None:
    names = {"SEED": SEED, "TRACE": TRACE}
    for words in PLACES:
        given = [names.get(word, word.replace("PATH", str(place))) for word in words.split()]
        started = time.monotonic()
        done = wltui(*given)
        assert time.monotonic() - started < PATIENCE, words
        assert done.status in (1, 2), words
        said = done.out if given[0] == "check" else done.err
        lines = said.split("\n")[:-1]
        # Some messages cut a long name.
        assert any(str(place)[:40] in line for line in lines), words
        assert len(lines) <= 2, words


@pytest.mark.parametrize("kind", ["fifo", "loop", "dangling", "socket", "zero", "full", "directory"])
def test_what_lies_among_traces_is_left_aside(tmp_path: Path, kind: str) -> None:
    folder = Path(traces(tmp_path))
    odd = folder / "wd2_tp1_pp2_numl4_bs1_GPT2BPETokenizer_rank9_20240923205004.txt"
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "fifo":
            os.mkfifo(odd)
        elif kind == "socket":
            # Its own name is too long for a socket.
            here = os.open(folder, os.O_RDONLY)
            try:
                server.bind(f"/proc/self/fd/{here}/odd")
            finally:
                os.close(here)
        elif kind == "directory":
            odd.mkdir()
        else:
            target = {"loop": odd, "dangling": tmp_path / "nowhere"}.get(kind, Path("/dev") / kind)
            odd.symlink_to(target)
        started = time.monotonic()
        done = wltui("report", str(folder))
        assert time.monotonic() - started < PATIENCE
    assert (done.status, done.err) == (0, "")
    assert "2 ranks" in done.out


def test_a_trace_that_goes_away_between_the_look_and_the_reading_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from simcore.measured import opening

    folder = Path(traces(tmp_path))
    gone = sorted(folder.iterdir())[1]
    read = opening.read_file

    def reading(path: str) -> bytes:
        gone.unlink(missing_ok=True)
        return read(path)

    monkeypatch.setattr(opening, "read_file", reading)
    done = wltui("report", str(folder))
    assert (done.status, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert finding(done.err) == f"{printable(str(gone))}: error no-such-file"


def test_a_directory_that_goes_away_while_it_is_listed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(traces(tmp_path))

    def listing(path: str) -> list[str]:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "listdir", listing)
    done = wltui("report", str(folder))
    assert (done.status, done.out) == (1, "")
    assert finding(done.err) == f"{printable(str(folder))}: error unreadable-file {os.strerror(errno.ENOENT)}"


def test_a_file_that_the_system_refuses_to_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who runs the tests may be allowed to read everything, so the system's answer is made.
    import builtins

    path = tmp_path / "closed"
    path.write_text("x")
    opened = builtins.open

    def refusing(file: object, *rest: object, **more: object) -> object:
        if str(file) == str(path):
            raise PermissionError(13, "Permission denied")
        return opened(file, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(builtins, "open", refusing)
    for words in ("report PATH", "report SEED --params PATH", "report SEED --cluster PATH",
                  "report SEED --system PATH", "report SEED --network busbw:PATH"):  # fmt: skip
        given = [SEED if word == "SEED" else word.replace("PATH", str(path)) for word in words.split()]
        done = wltui(*given)
        assert (done.status, done.out) == (1, "")
        assert done.err.startswith(f"{path}: error ")
        assert finding(done.err).endswith(f" {os.strerror(errno.EACCES)}")


@pytest.mark.parametrize("command", ["export SEED --format simai", "calibrate SEED TRACE"])
def test_an_output_is_never_what_is_no_file(place: Path, command: str) -> None:
    try:
        os.stat(place)
    except FileNotFoundError:
        return  # The name is free, or a link to one that is: there is nothing to lose.
    except OSError:
        pass
    given = [{"SEED": SEED, "TRACE": TRACE}.get(word, word) for word in command.split()]
    before = os.lstat(place).st_ino if os.path.lexists(place) else None
    for force in ([], ["--force"]):
        done = wltui(*given, "-o", str(place), *force)
        assert done.status in (1, 2)
        assert done.out == ""
    assert (os.lstat(place).st_ino if os.path.lexists(place) else None) == before


@pytest.mark.parametrize(
    "words",
    [
        f"export {SEED} --format csv -o y",
        f"export {SEED} --format csv -o y --per-rank",
        f"calibrate {SEED} {TRACE} -o y",
    ],
)
def test_nothing_can_be_written_where_the_working_directory_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    words = words.replace("fixtures", os.path.abspath("fixtures"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = "y: error unwritable-file the file cannot be written: No such file or directory\n"
    assert wltui(*words.split()) == (1, "", said)


@pytest.mark.slow
def test_a_prompt_says_that_the_working_directory_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = os.path.abspath(TRACE)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = wltui(trace, "--snapshot", "E Ctrl+U y.csv Enter", "--no-session")
    assert done.err == ""
    assert "y.csv: error unwritable-file " in done.out
    assert os.strerror(errno.ENOENT) in done.out
