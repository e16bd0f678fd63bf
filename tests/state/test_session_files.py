"""Session files on the disk: always whole, set aside when damaged, and never in the program's way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.measured import RecordedRun
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.says import said
from tests.tui.made_runs import lonely
from tests.tui.pseudo_terminal import ROOT
from tui.session import HistoryRun, Session
from tui.state.checking import InvalidSession
from tui.state.files import (
    MOST_BYTES,
    read_identity,
    read_text,
    session_path,
    set_aside,
    state_directory,
    write_text,
)
from tui.state.keeper import NOT_RESTORED, NOT_SAVED, SessionFile, open_keeper

# Writes sessions of different lengths as fast as it can, all of one letter.
_WRITER = """
import sys
from tui.state.files import write_text
print("ready", flush=True)
number = 0
while True:
    number += 1
    write_text(sys.argv[1], "abcdefg"[number % 7] * (200_000 + 50_000 * (number % 7)))
"""


@pytest.fixture(autouse=True)
def _others_write_nothing() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "wltui" / "session.json"
    left = 0
    for round_ in range(12):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        while not path.exists():
            time.sleep(0.001)
        time.sleep(0.003 * round_)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        text = read_text(str(path))
        assert text is not None
        assert len(text) == 200_000 + 50_000 * "abcdefg".index(text[0])
        assert set(text) == {text[0]}
        left += len(list(path.parent.glob(".*.tmp")))
    # Else no kill has met a save, and the test has shown nothing.
    assert left


def test_what_killed_programs_left_is_removed_after_a_while(tmp_path: Path) -> None:
    old, new, others = (tmp_path / name for name in (".s.json.1.a.tmp", ".s.json.2.b.tmp", ".t.json.1.a.tmp"))
    for one in (old, new, others):
        one.write_text("{")
    for one in (old, others):
        os.utime(one, (time.time() - 7200,) * 2)
    write_text(str(tmp_path / "s.json"), "{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".s.json.2.b.tmp",
        ".t.json.1.a.tmp",
        "s.json",
    ]


def test_a_session_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "wltui" / "s.json"
    write_text(str(path), "{}")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_two_writers_leave_the_last_one_s_session(tmp_path: Path) -> None:
    path = str(tmp_path / "s.json")
    for text in ("one", "two"):
        write_text(path, text)
    assert read_text(path) == "two"
    assert os.listdir(tmp_path) == ["s.json"]


def test_a_link_in_place_of_a_session_is_replaced_and_what_it_leads_to_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "s.json").symlink_to("precious")
    write_text(str(tmp_path / "s.json"), "{}")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "s.json").is_symlink()


def test_the_state_directory_is_the_users() -> None:
    assert state_directory({"XDG_STATE_HOME": "/var/me"}) == "/var/me/wltui"
    home = os.path.expanduser("~/.local/state/wltui")
    # Of the specification: a relative path is to be ignored.
    assert state_directory({}) == state_directory({"XDG_STATE_HOME": "here"}) == home


def test_a_session_is_named_for_the_real_path_and_the_run(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "gpt \x1b[2J.txt"
    file.write_text("x")
    (tmp_path / "link").symlink_to(file)
    environ = {"XDG_STATE_HOME": "/s"}
    path = session_path(str(file), environ=environ)
    assert path.startswith("/s/wltui/gpt_2J.txt-")
    assert len(path) == len("/s/wltui/gpt_2J.txt-") + 12 + len(".json")
    assert session_path(str(tmp_path / "link"), environ=environ) == path
    assert session_path(str(file), "1234", environ) != path
    other = tmp_path / "gpt \x1b[2J.txt"
    other.write_text("x")
    assert session_path(str(other), environ=environ) != path


def test_only_a_file_of_text_is_read(tmp_path: Path) -> None:
    assert read_text(str(tmp_path / "none.json")) is None
    path = tmp_path / "s.json"
    path.write_bytes(b"{\xff}")
    with pytest.raises(InvalidSession, match=r"^found byte 0xff, expected UTF-8 text$"):
        read_text(str(path))
    path.write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(InvalidSession, match=r"^found more than 4 MiB$"):
        read_text(str(path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InvalidSession, match=r"^found no regular file$"):
        read_text(str(path))


def test_a_file_that_was_only_touched_is_the_same_and_one_that_was_edited_is_not(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text("one")
    first = read_identity(str(path))
    os.utime(path, (1, 1))
    assert read_identity(str(path)).is_same_input(first)
    path.write_text("two")
    assert not read_identity(str(path)).is_same_input(first)


def test_of_a_large_file_size_and_time_count(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_bytes(b"x" * ((1 << 20) + 1))
    first = read_identity(str(path))
    assert first.content is None
    assert read_identity(str(path)).is_same_input(first)
    os.utime(path, (1, 1))
    assert not read_identity(str(path)).is_same_input(first)


def test_a_directory_is_another_when_a_file_of_it_is(tmp_path: Path) -> None:
    (tmp_path / "rank0.txt").write_text("one")
    first = read_identity(str(tmp_path))
    assert read_identity(str(tmp_path)).is_same_input(first)
    (tmp_path / "rank1.txt").write_text("")
    assert not read_identity(str(tmp_path)).is_same_input(first)


# -- the keeper --------------------------------------------------------------------------


@pytest.fixture
def workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to open, with a state directory of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "w.txt"
    file.write_text("anything")
    return file


def a_session() -> Session:
    """On a tiny run."""
    return Session(lonely())


def opened(file: Path, session: Session | None = None, given: bool = False) -> SessionFile:
    """The keeper of a file."""
    keeper = open_keeper(str(file), "", session or a_session(), given)
    assert keeper is not None
    return keeper


def kept_file(file: Path) -> Path:
    """Its session file."""
    return Path(session_path(str(file)))


def keep(keeper: SessionFile, session: Session) -> str:
    keeper.update(session, "notes", {})
    return keeper.write()


def test_a_first_start_has_nothing_to_say_and_makes_no_directory(workload: Path) -> None:
    keeper = opened(workload)
    assert (keeper.notice, keeper.screen, keeper.run) == ("", None, None)
    assert not (workload.parent / "state").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "line 1, column 2: this is not JSON"),
        ('{"format": "wltui.session/9"}', 'format: found "wltui.session/9", expected "wltui.session/1"'),
        ('{"format": "\x7f\u202e"}', "format: found \"\\u007f\\u202e\", expected \"wltui.session/1\""),
        ('{"format": 1e400}', 'format: found Infinity, expected "wltui.session/1"'),
        ("[" * 50_000, "found too many nested lists"),
    ],
    ids=["not json", "version", "controls", "1e400", "nested"],
)  # fmt: skip
def test_a_damaged_session_is_set_aside_and_said(workload: Path, content: str, reason: str) -> None:
    path = kept_file(workload)
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    keeper = opened(workload)
    assert keeper.notice == f"session damaged, set aside as {path.name}.damaged: {reason}"
    assert not path.exists()
    assert Path(f"{path}.damaged").read_text(encoding="utf-8") == content
    # What is kept then is read again.
    assert keep(keeper, a_session()) == ""
    assert opened(workload).screen == "notes"


def test_a_session_that_somebody_else_may_have_written_is_said_once_and_not_used(
    workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kept_file(workload)
    assert keep(opened(workload), a_session()) == ""
    text = path.read_text(encoding="utf-8")

    def is_refused_once(*words: str) -> None:
        keeper = opened(workload)
        said([keeper.notice], "damaged", "set aside", *words)
        assert keeper.screen is None
        assert opened(workload).notice == ""

    elsewhere = workload.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    is_refused_once("a link")
    assert elsewhere.read_text(encoding="utf-8") == text
    for mode in (0o602, 0o620):
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        is_refused_once("somebody else")
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    assert opened(workload).screen == "notes"
    os.mkfifo(path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)
    is_refused_once("no regular file")
    path.write_text(text, encoding="utf-8")
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    is_refused_once("somebody else")


def test_a_session_that_cannot_be_set_aside_is_said_too(workload: Path) -> None:
    path = kept_file(workload)
    path.parent.mkdir(parents=True)
    path.write_text("{")
    Path(f"{path}.damaged").mkdir()
    notice = opened(workload).notice
    said([notice], "damaged", "set aside", "Is a directory", "line 1, column 2", "JSON")


def test_the_one_set_aside_before_gives_way(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for text in ("one", "two"):
        path.write_text(text)
        set_aside(str(path))
    assert (tmp_path / "s.json.damaged").read_text() == "two"


def test_a_state_directory_that_is_a_file_is_said_once_and_nothing_breaks(workload: Path) -> None:
    state = workload.parent / "state"
    state.write_text("mine")
    session = a_session()
    keeper = opened(workload, session)
    assert keeper.notice == f"{NOT_RESTORED}: {state}/wltui: Not a directory"
    assert keep(keeper, session) == f"{NOT_SAVED}: {state}/wltui: Not a directory"
    session.recall(HistoryRun(session.draft, "another"))
    assert keep(keeper, session) == ""
    assert state.read_text() == "mine"


def test_a_state_directory_that_is_a_loop_of_links_is_said_once(workload: Path) -> None:
    state = workload.parent / "state"
    state.symlink_to("state")
    keeper = opened(workload)
    words = f"{state}/wltui: Too many levels of symbolic links"
    assert keeper.notice == f"{NOT_RESTORED}: {words}"
    # Making the directory finds a link where it should be.
    complaint = keep(keeper, a_session())
    assert complaint.startswith(f"{NOT_SAVED}: {state}/wltui: ")


def test_a_full_disk_is_said_and_leaves_the_session_before(
    workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_session()
    keeper = opened(workload, session)
    assert keep(keeper, session) == ""
    before = kept_file(workload).read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    session.recall(HistoryRun(session.draft, "another"))
    complaint = keep(keeper, session)
    directory = kept_file(workload).parent
    assert complaint == f"{NOT_SAVED}: {directory}: No space left on device"
    assert kept_file(workload).read_bytes() == before
    assert os.listdir(directory) == [kept_file(workload).name]


def test_nothing_is_written_when_nothing_changed(workload: Path) -> None:
    session = a_session()
    keeper = opened(workload, session)
    assert keeper.update(session, "notes", {})
    assert keeper.write() == ""
    assert not keeper.update(session, "notes", {})
    assert keeper.update(session, "timeline", {})


def test_a_replay_of_an_earlier_session_is_gone_on_with(workload: Path) -> None:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    session = Session(results)
    keeper = opened(workload, session)
    changed = Parameters(slow_rank=("1=2",), layer_scale=("forward_step=0.5",))
    session.show(results.with_parameters(Parameters(gap_scale=0.5)))
    session.keep()
    session.show(results.with_parameters(changed))
    assert keep(keeper, session) == ""
    again = Session(results)
    found = opened(workload, again)
    assert found.notice == "restored: draft after run 2; x shows run 1, as opened; --no-session starts fresh"
    assert found.run is not None
    assert found.run.is_same_run(HistoryRun(changed))
    assert [run.parameters for run in again.history] == [Parameters(), Parameters(gap_scale=0.5)]


def test_runs_of_a_directory_are_kept_with_their_labels(workload: Path) -> None:
    first, other = (replace(run_of(SLOW_RANK, 2), label=label, others=("b", "a")) for label in ("a", "b"))

    def session_of() -> Session:
        return Session(RecordedRun(replace(first, others=("b",))), lambda label: RecordedRun(other))

    session = session_of()
    assert [run.label for run in session.history] == ["a", "b"]
    keeper = opened(workload, session)
    halved = session.root("b").with_parameters(Parameters(slow_rank=("1=0.5",)))
    session.show(session.root("b"))
    session.show(halved)
    assert session.keep() == 3
    assert keep(keeper, session) == ""
    again = session_of()
    found = opened(workload, again)
    assert found.run is not None
    assert found.run.is_same_run(HistoryRun(halved.parameters, label="b"))
    assert found.notice == "restored: run 3 of 3; x shows run 1, as opened; --no-session starts fresh"
    # The other run of the directory stands there once, with its step time.
    assert [(run.label, run.parameters == Parameters()) for run in again.history] == [
        ("a", True), ("b", True), ("b", False),
    ]  # fmt: skip
    assert [run.step_ns for run in again.history] == [run.step_ns for run in session.history]


def test_kept_runs_outlive_another_input(workload: Path) -> None:
    session = a_session()
    keeper = opened(workload, session)
    session.recall(HistoryRun(Parameters(compute_scale=2.0)))
    session.recall(HistoryRun(Parameters(comm_scale=0.5)))
    assert keep(keeper, session) == ""
    workload.write_text("something else")
    for _ in range(2):
        # Their step times are not known, and nobody has shown them.
        again = a_session()
        keeper = opened(workload, again)
        assert [run.parameters for run in again.history[1:]] == [
            Parameters(compute_scale=2.0), Parameters(comm_scale=0.5),
        ]  # fmt: skip
        assert keep(keeper, again) == ""
