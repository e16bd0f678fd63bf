"""A file is written whole or not at all, and nothing is overwritten without a word."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.export import save


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
    assert str(caught.value) == (
        f"{path}: error unwritable-file the file cannot be written: No space left on device"
    )
    for error in (KeyboardInterrupt(), UsageError("no word for it")):
        with pytest.raises(type(error)):
            save(str(path), broken(error), True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    assert refused(tmp_path, force=True) == f"{tmp_path} is a directory: name a file to write"
    assert refused("/dev/null", force=True) == "/dev/null is no regular file: name a file to write"
    assert refused("a\0b") == "a\\x00b: no file can have this name"


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    message = "error unwritable-file the file cannot be written:"
    path = tmp_path / "no" / "out.txt"
    assert refused(path) == f"{path}: {message} No such file or directory"
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / "file" / "out.txt"
    assert refused(path) == f"{path}: {message} Not a directory"


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    save(str(link), [b"new"], True)
    assert (link.is_symlink(), target.read_bytes()) == (True, b"new")
    link.unlink()
    link.symlink_to(link)
    assert "error unwritable-file the file cannot be written: " in refused(link, force=True)


def test_a_folder_full_of_left_temporary_files_is_one_line(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f".wltui-{os.getpid()}-{number}.tmp").write_bytes(b"")
    path = tmp_path / "out.txt"
    assert refused(path) == (
        f"{path}: error unwritable-file the file cannot be written: too many temporary files are left there"
    )
