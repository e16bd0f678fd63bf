"""Columns that are kept of large files: the same run again, never an error, never of another file."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from simcore.kineto import cache, loading
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions
from simcore.sources.inputs import open_input
from tests.command_line.running import wltui_here
from tests.kineto.corpus import CORPUS, DLRM, GLOO, NSYS, needs_corpus, unpacked
from tests.kineto.test_bad_input import event
from tests.kineto.test_layers import around, kernel, launch
from tests.kineto.test_nsys import made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set of two files, every file worth keeping, and an empty cache."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(cache, "_LEAST_BYTES", 1)
    monkeypatch.setattr(cache, "_ENDS", 16)
    job = tmp_path / "job"
    job.mkdir()
    for rank in (0, 1):
        events = [event(ts=100 + 20 * number, name=f"k{number % 3}") for number in range(9)]
        events.append(event(ts=400, name="ncclDevKernel_AllReduce", dur=-1))
        (job / f"rank{rank}.json").write_text(
            json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events})
        )
    return job


def opened(folder: Path, keep: bool = True) -> MeasuredRun:
    """The run of a folder."""
    run = open_input(str(folder), OpeningOptions(cache=keep))
    assert isinstance(run, MeasuredRun)
    return run


def kept(folder: Path) -> list[Path]:
    """What is kept, by name."""
    return sorted((folder.parent / "state" / "wltui" / "traces").glob("*"))


def test_a_second_opening_is_the_same_run_and_reads_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(folder)
    assert len(kept(folder)) == 2
    monkeypatch.setattr(loading, "read_file_events", None)
    assert opened(folder) == first


def test_a_changed_file_is_read_again(folder: Path) -> None:
    first = opened(folder)
    path = folder / "rank0.json"
    path.write_text(path.read_text().replace('"k0"', '"other"'))
    assert "other" in opened(folder).ranks[0].ops.name
    assert "other" not in first.ranks[0].ops.name


@pytest.mark.parametrize("damage", [b"", b"\x00", b"\x93\x01\x90"])
def test_what_is_damaged_is_read_again(folder: Path, damage: bytes) -> None:
    first = opened(folder)
    for one in kept(folder):
        one.write_bytes(damage or one.read_bytes()[:-40])
    assert opened(folder) == first


def test_nothing_is_kept_where_nobody_wants_it_or_nothing_can_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(folder, keep=False)
    assert not kept(folder)
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    assert opened(folder).ops == 20


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".away"))
    path.symlink_to(path.with_suffix(".away"))


def _second_name(path: Path) -> None:
    os.link(path, path.with_suffix(".away"))


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("change", [_flip, _link, _second_name, _fifo, lambda path: path.chmod(0o644)])
def test_what_others_could_have_written_or_a_disk_has_changed_is_not_read(
    folder: Path, change: Callable[[Path], None]
) -> None:
    first = opened(folder)
    entries = kept(folder)
    for entry in entries:
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600
        assert cache.load(str(entry), "x") is not None
        change(entry)
        assert cache.load(str(entry), "x") is None
    assert opened(folder) == first


def test_the_folder_is_the_users_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(folder)
    traces = kept(folder)[0].parent
    assert stat.S_IMODE(traces.stat().st_mode) == 0o700
    traces.chmod(0o755)
    opened(folder)
    assert stat.S_IMODE(traces.stat().st_mode) == 0o700
    elsewhere = folder.parent / "elsewhere"
    traces.rename(elsewhere)
    traces.symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    for _ in range(2):
        opened(folder)
    # Once.
    assert capsys.readouterr().err.count("is not used to keep what was read") == 1
    assert sorted(elsewhere.iterdir()) == before


def test_nothing_is_removed_but_what_the_cache_wrote(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(folder)
    traces = kept(folder)[0].parent
    own, ours = traces / "notes.txt", traces / f"{'0' * 32}.columns.77"
    for path in (own, ours):
        path.write_text("x" * 1000)
        os.utime(path, (1, 1))
    monkeypatch.setattr(cache, "_MOST_BYTES", 1)
    path = folder / "rank0.json"
    path.write_text(path.read_text().replace('"k0"', '"other"'))
    opened(folder)
    assert own.exists()
    # What a killed program has left.
    assert not ours.exists()


def test_the_oldest_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(folder)
    first = kept(folder)
    for one in first:
        os.utime(one, (1, 1))
    monkeypatch.setattr(cache, "_MOST_BYTES", sum(one.stat().st_size for one in first) + 10)
    path = folder / "rank0.json"
    path.write_text(path.read_text().replace('"k0"', '"other"'))
    opened(folder)
    assert len(kept(folder)) == 2
    assert set(kept(folder)) != set(first)


@needs_corpus
def test_a_kept_set_of_the_corpus_is_what_was_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in sorted(DLRM.glob("*.json.gz"))[:2]:
        (folder / path.name.removesuffix(".gz")).write_bytes(unpacked(path))
    for rank in (0, 1):
        (folder / f"rank{rank}.json").unlink()
    assert opened(folder) == opened(folder) == opened(folder, keep=False)


# What comes before a report: commands, and what the screens open.
_BEFORE = (
    "check",
    "report",
    "report --json",
    "compare",
    "export",
    "screens",
    "report --step all",
    "--step-names",
)


def _printed(source: str, tmp_path: Path, *more: str) -> tuple[str, str]:
    """The JSON of the report and an export of a trace."""
    made = tmp_path / "made.csv"
    made.unlink(missing_ok=True)
    values = wltui_here("report", source, "--json", *more).stdout
    wltui_here("export", source, "--format", "csv", "-o", str(made), *more)
    return values, made.read_text()


def _come_before(what: str, source: str, tmp_path: Path, ranks: str | None = None) -> None:
    if what == "screens":
        open_input(source, OpeningOptions(ranks=ranks))
    elif what == "compare":
        wltui_here("compare", source, source)
    elif what == "export":
        (tmp_path / "other.json").unlink(missing_ok=True)
        assert not wltui_here(
            "export", source, "--format", "chrome", "-o", str(tmp_path / "other.json")
        ).returncode
    elif what == "--step-names":
        wltui_here("report", source, "--step-names", "forward")
    else:
        command, *more = what.split()
        wltui_here(command, source, *more, *(() if ranks is None else ("--ranks", ranks)))


def _traces(tmp_path: Path) -> list[str]:
    """Traces of all kinds: one with a host whose launches are late, without a device, in a set, of Nsight."""
    late = [
        around("user_annotation", "ProfilerStep#0", 100, 6000), around("cpu_op", "aten::mm", 101, 20),
        launch(1, 105), kernel(1, 120) | {"dur": 500}, launch(2, 5100), kernel(2, 5130) | {"dur": 500},
    ]  # fmt: skip
    host = [around("cpu_op", "aten::mm", 100, 50), around("user_annotation", "gloo:all_reduce", 160, 9)]
    kinds = {"late": late, "host": host, "cut": [*late, kernel(3, 5700)]}
    sources = []
    for name, events in kinds.items():
        text = json.dumps({"traceEvents": events})
        path = tmp_path / f"{name}.json"
        path.write_text(text[:-40] if name == "cut" else text)
        sources.append(str(path))
    (tmp_path / "set").mkdir()
    for rank in (0, 1):
        top = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": late}
        (tmp_path / "set" / f"rank{rank}.json").write_text(json.dumps(top))
    nsys = made(tmp_path / "a.sqlite", [(10, 100, 0, "gemm"), (210, 300, 0, "gemm")], [(0, 320, "forward")])
    return [*sources, str(tmp_path / "set"), str(nsys)]


@pytest.mark.slow
def test_what_is_said_does_not_depend_on_what_was_opened_before(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report, its JSON and an export are the same with an empty cache and behind each command."""
    for number, source in enumerate(_traces(tmp_path)):
        alone = _printed(source, tmp_path, "--no-cache")
        page = wltui_here("report", source, "--no-cache").stdout
        assert all((*alone, page))
        for index, what in enumerate(_BEFORE):
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"state {number} {index}"))
            _come_before(what, source, tmp_path)
            assert _printed(source, tmp_path) == alone, (source, what)
            assert wltui_here("report", source).stdout == page, (source, what)


@needs_corpus
@pytest.mark.parametrize(
    ("source", "ranks", "before"),
    [
        (DLRM, "0-1", ["screens"]),
        # It has three steps.
        (GLOO, "0-1", ["screens", "report --step all"]),
        (CORPUS / "h100_qwen.json.gz", None, ["screens"]),
        (NSYS, None, ["screens"]),
    ],
    ids=["dlrm", "gloo", "qwen", "nsys"],
)
def test_what_is_said_of_the_corpus_does_not_either(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Path,
    ranks: str | None,
    before: list[str],
) -> None:
    some = () if ranks is None else ("--ranks", ranks)
    alone = _printed(str(source), tmp_path, "--no-cache", *some)
    assert all(alone)
    for what in before:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / what))
        _come_before(what, str(source), tmp_path, ranks)
        assert _printed(str(source), tmp_path, *some) == alone, what
