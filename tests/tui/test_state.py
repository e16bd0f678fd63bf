"""What is kept of a session: written whole, read back, damage set aside and said."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.state import SCHEMA, identity, keep, load, state_path


def test_each_file_has_a_place_of_its_own_under_the_state_directory(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    paths = {state_path(name, environ) for name in ("a.txt", "b.txt", "x/a.txt", "\x1b[2J", "a" * 300)}
    assert len(paths) == 5
    for path in paths:
        assert os.path.dirname(path) == str(tmp_path / "wltui")
        assert len(os.path.basename(path)) < 100
        assert os.path.basename(path).isprintable()
    assert state_path("a.txt", environ) == state_path("./x/../a.txt", environ)
    assert state_path("a", {}).startswith(str(Path.home() / ".local" / "state" / "wltui"))


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "s.json")
    assert load(path) == ({}, "")
    assert keep(path, {"screen": "layers", "at": [1, 2]}) == ""
    assert load(path) == ({"schema": SCHEMA, "screen": "layers", "at": [1, 2]}, "")
    assert keep(path, {"screen": "notes"}) == ""
    assert load(path).data["screen"] == "notes"
    assert os.listdir(tmp_path / "deep") == ["s.json"]


@given(st.binary(max_size=200))
def test_no_content_is_an_error_or_lost(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("state") / "s.json"
    path.write_bytes(raw)
    kept = load(str(path))
    assert kept == ({}, "the saved session was damaged: set aside as s.json.damaged")
    assert not path.exists()
    assert (path.parent / "s.json.damaged").read_bytes() == raw


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"schema": "other/1"}',
        json.dumps({"schema": SCHEMA})[:-1],
        "[" * 100_000,
        " " * (1 << 20) + "{}",
    ],
    ids=["list", "schema", "cut", "deep", "large"],
)
def test_damage_is_set_aside(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    assert load(str(tmp_path / "s.json")).note == "the saved session was damaged: set aside as s.json.damaged"
    assert os.listdir(tmp_path) == ["s.json.damaged"]


def test_what_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    assert load(str(tmp_path)).note == "the saved session cannot be read: Is a directory"
    (tmp_path / "file").write_text("")
    assert keep(str(tmp_path / "file" / "s.json"), {}) == "the session cannot be saved: File exists"
    (tmp_path / "folder.json").mkdir()
    assert keep(str(tmp_path / "folder.json"), {}).startswith("the session cannot be saved: ")


def test_a_file_is_known_by_its_size_and_its_time(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    assert identity(str(path)) == []
    path.write_text("a")
    first = identity(str(path))
    assert identity(str(path)) == first
    path.write_text("ab")
    assert identity(str(path)) != first
    assert identity("\0") == []
