"""A file is written whole or not at all, and nothing is overwritten without a word."""

from __future__ import annotations

import errno
import fcntl
import gzip
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.render.export import RankFile, gzip_chunks, save, save_folder
from tests.findings import finding
from tests.says import said


def refused(path: Path | str, force: bool = False) -> str:
    with pytest.raises((InputError, UsageError)) as caught:
        save(str(path), [b"new"], force)
    return str(caught.value)


def test_a_new_file_holds_all_pieces_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    assert save(str(path), [b"a", b"", b"bc"], False) == 3
    assert path.read_bytes() == b"abc"
    assert os.listdir(tmp_path) == ["out.txt"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    assert refused(path) == f"{path} is there already: --force overwrites it"
    assert path.read_bytes() == b"old"
    save(str(path), [b"new"], True)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_comes_meanwhile_stays_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    path = tmp_path / "out.txt"
    if not links:

        def no_links(*_: object) -> None:
            raise PermissionError("a file system without hard links")

        monkeypatch.setattr(os, "link", no_links)

    def pieces(name: Path) -> Iterator[bytes]:
        yield b"new"
        name.write_bytes(b"old")

    with pytest.raises(UsageError) as caught:
        save(str(path), pieces(path), False)
    assert str(caught.value) == f"{path} is there already: --force overwrites it"
    assert path.read_bytes() == b"old"
    assert save(str(tmp_path / "other.txt"), [b"new"], False) == 3
    assert sorted(os.listdir(tmp_path)) == ["other.txt", "out.txt"]


def test_what_goes_wrong_on_the_way_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")

    def broken(error: BaseException) -> Iterator[bytes]:
        yield b"half" * 10_000
        raise error

    with pytest.raises(InputError) as caught:
        save(str(path), broken(OSError(28, "No space left on device")), True)
    assert finding(str(caught.value)) == f"{path}: error unwritable-file {os.strerror(errno.ENOSPC)}"
    for error in (KeyboardInterrupt(), UsageError("no word for it")):
        with pytest.raises(type(error)):
            save(str(path), broken(error), True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("name", ["open", "mkdir"])
def test_who_is_interrupted_while_the_file_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make = getattr(os, name)

    def interrupted(path: str, *rest: int) -> None:
        make(path, *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, name, interrupted)
    out = str(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        _ = save(out, [b"new"], False) if name == "open" else save_folder(out, FILES, False)
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    said([refused(tmp_path, force=True)], str(tmp_path), "directory")
    said([refused("/dev/null", force=True)], "/dev/null", "no regular file")
    said([refused("a\0b")], "a\\x00b", "no file")


@pytest.mark.parametrize("ending", ["/", "//", "/.", "/..", "/./"])
def test_a_name_that_only_a_directory_can_have_is_no_file(tmp_path: Path, ending: str) -> None:
    path = f"{tmp_path}/nowhere{ending}"
    assert refused(path, force=True) == f"{path} is a directory: name a file to write"
    (tmp_path / "nowhere").write_bytes(b"old")
    assert refused(path, force=True) == f"{path} is a directory: name a file to write"
    assert (tmp_path / "nowhere").read_bytes() == b"old"


def test_no_name_is_no_file_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said([refused("", force=True)], "--output", "empty name", "file")
    said([folder_refused("", force=True)], "--output", "empty name", "folder")
    assert tmp_path.is_dir()


def test_where_there_are_no_hard_links_nothing_comes_between_the_look_and_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.txt"
    lexists = os.path.lexists

    def no_links(*_: object) -> None:
        raise PermissionError("a file system without hard links")

    def seen(name: str) -> bool:
        there = lexists(name)
        if name == str(path):
            path.write_bytes(b"old")
        return there

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os.path, "lexists", seen)
    opened = os.open

    def first(name: str, *rest: int) -> int:
        if name == str(path):
            path.write_bytes(b"old")
        return opened(name, *rest)

    monkeypatch.setattr(os, "open", first)
    assert refused(path) == f"{path} is there already: --force overwrites it"
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "link to a device"])
def test_what_is_special_is_not_opened_nor_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "socket":
            server.bind(str(path))
        elif kind == "device":
            path = Path("/dev/zero")
        else:
            path.symlink_to("/dev/full")
        for force in (False, True):
            said([refused(path, force)], str(path), "no regular file")


def test_a_dangling_link_leads_to_the_new_file(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    assert save(str(link), [b"new"], False) == 3
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")
    assert refused(link) == f"{link} is there already: --force overwrites it"


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "no" / "out.txt"
    assert finding(refused(path)) == f"{path}: error unwritable-file {os.strerror(errno.ENOENT)}"
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / "file" / "out.txt"
    assert finding(refused(path)) == f"{path}: error unwritable-file {os.strerror(errno.ENOTDIR)}"


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    save(str(link), [b"new"], True)
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")
    link.unlink()
    link.symlink_to(link)
    assert finding(refused(link, force=True)).startswith(f"{link}: error unwritable-file ")


def test_a_folder_full_of_left_temporary_files_is_one_line(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f".wltui-{os.getpid()}-{number}.tmp").write_bytes(b"")
    path = tmp_path / "out.txt"
    assert finding(refused(path)) == f"{path}: error unwritable-file"
    assert "temporary files" in refused(path)


# No process has this number: Linux counts to 2^22.
_DEAD = 2**22 + 1


def test_what_a_killed_export_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    half, folder = tmp_path / f".wltui-{_DEAD}-0.tmp", tmp_path / f".wltui-{_DEAD}-1.tmp"
    half.write_bytes(b"half")
    folder.mkdir()
    (folder / "rank-0.csv").write_bytes(b"half")
    save(str(tmp_path / "out.txt"), [b"new"], False)
    assert os.listdir(tmp_path) == ["out.txt"]


def test_what_is_written_to_or_is_no_leftover_stays(tmp_path: Path) -> None:
    kept = [f".wltui-{os.getpid()}-7.tmp", f".wltui-{_DEAD}-2.old", ".wltui-x-1.tmp", "wltui-1-1.tmp"]
    for name in kept:
        (tmp_path / name).write_bytes(b"a")
    (tmp_path / f".wltui-{_DEAD}-3.tmp").symlink_to(tmp_path / kept[3])
    (tmp_path / f".wltui-{_DEAD}-4.tmp").mkdir()
    (tmp_path / f".wltui-{_DEAD}-4.tmp" / "thesis.txt").write_bytes(b"a")
    # A process of another container, whose numbers are not seen here, holds the lock.
    with open(tmp_path / f".wltui-{_DEAD}-5.tmp", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = set(os.listdir(tmp_path))
        save(str(tmp_path / "out.txt"), [b"new"], False)
    assert set(os.listdir(tmp_path)) == before | {"out.txt"}


FILES = [RankFile("rank-0.csv", [b"a", b"bc"]), RankFile("rank-1.csv", [b""])]


def folder_refused(path: Path | str, force: bool = False) -> str:
    with pytest.raises((InputError, UsageError)) as caught:
        save_folder(str(path), FILES, force)
    return str(caught.value)


def test_a_new_folder_holds_all_files_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert save_folder(str(path) + "/", FILES, False) == (2, 3)
    assert {name: (path / name).read_bytes() for name in os.listdir(path)} == {
        "rank-0.csv": b"abc",
        "rank-1.csv": b"",
    }
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_is_there_stays_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "rank-7.json.gz").write_bytes(b"old")
    assert folder_refused(path) == f"{path} is there already: --force overwrites it"
    assert os.listdir(path) == ["rank-7.json.gz"]
    save_folder(str(path), FILES, True)
    assert sorted(os.listdir(path)) == ["rank-0.csv", "rank-1.csv"]
    (path / "notes\n.txt").write_bytes(b"mine")
    said([folder_refused(path, force=True)], f"{path} holds", "notes\\x0a.txt")
    assert sorted(os.listdir(path)) == ["notes\n.txt", "rank-0.csv", "rank-1.csv"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_file_that_comes_into_the_folder_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "rank-0.csv").write_bytes(b"old")

    def files() -> Iterator[RankFile]:
        yield FILES[0]
        (path / "thesis.txt").write_bytes(b"mine")

    with pytest.raises(UsageError) as caught:
        save_folder(str(path), files(), True)
    said([str(caught.value)], f"{path} holds", "thesis.txt")
    assert sorted(os.listdir(path)) == ["rank-0.csv", "thesis.txt"]
    assert (path / "rank-0.csv").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_has_the_name_of_a_file_of_ours_stays(tmp_path: Path) -> None:
    path = tmp_path / "out"
    (path / "rank-0.csv").mkdir(parents=True)
    (path / "rank-0.csv" / "thesis.txt").write_bytes(b"mine")
    said([folder_refused(path, force=True)], f"{path} holds", "rank-0.csv")
    assert os.listdir(tmp_path) == ["out"]
    assert (path / "rank-0.csv" / "thesis.txt").read_bytes() == b"mine"


def test_what_goes_wrong_in_a_folder_leaves_the_old_one_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "rank-7.csv").write_bytes(b"old")

    def broken(error: BaseException) -> Iterator[RankFile]:
        yield FILES[0]
        raise error

    with pytest.raises(InputError) as caught:
        save_folder(str(path), broken(OSError(28, "No space left on device")), True)
    assert finding(str(caught.value)) == f"{path}: error unwritable-file {os.strerror(errno.ENOSPC)}"
    with pytest.raises(KeyboardInterrupt):
        save_folder(str(path), broken(KeyboardInterrupt()), True)
    assert os.listdir(path) == ["rank-7.csv"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_cannot_get_its_name_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "rank-7.csv").write_bytes(b"old")
    rename = os.rename

    def once(source: str, target: str) -> None:
        monkeypatch.setattr(os, "rename", rename)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", once)
    with pytest.raises(KeyboardInterrupt):
        save_folder(str(path), FILES, True)
    assert (path / "rank-7.csv").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_what_is_no_folder_is_never_replaced_by_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    for force in (False, True):
        said([folder_refused(path, force)], str(path), "no folder")
    said([folder_refused("a\0b")], "a\\x00b", "no file")
    assert (
        finding(folder_refused(path / "out"))
        == f"{path / 'out'}: error unwritable-file {os.strerror(errno.ENOTDIR)}"
    )
    assert path.read_bytes() == b"old"


def test_gzip_depends_on_nothing_but_what_is_in_it() -> None:
    pieces = [b"ab" * 1000, b"", b"c" * 100_000]
    packed = b"".join(gzip_chunks(pieces))
    assert gzip.decompress(packed) == b"".join(pieces)
    assert packed[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"  # no name, no time
    assert b"".join(gzip_chunks([b"".join(pieces)])) == packed
