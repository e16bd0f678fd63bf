"""The note that names files of ASTRA-sim beside a set, and the command line that takes them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.diagnostics import Diagnostic, InputError
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.runs.executed import run_execution
from tests.executing.encoding import COLL, write_network, write_set
from tests.says import said

SUM: dict[str, Any] = {
    "id": 1,
    "type": COLL,
    "attributes": {"comm_type": 0, "comm_size": 1 << 20, "pg_name": "3"},
}
SYSTEM = '{"scheduling-policy": "FIFO", "all-reduce-implementation": ["ring"], "preferred-dataset-splits": 2}'
GROUPS = '{"3": [0, 1]}'


def folder_of(folder: Path, npus: int = 2) -> Path:
    """A set of two ranks with the three files that ASTRA-sim asks for, none of them called as usual."""
    folder.mkdir(exist_ok=True)
    write_set(folder, [[SUM]] * 2)
    write_network(folder / "my net.yml", [("Ring", npus, 50.0, 500.0)])
    (folder / "s.json").write_text(SYSTEM)
    (folder / "comms.json").write_text(GROUPS)
    (folder / "other.json").write_text('{"1": "a"}')
    return folder


def notes_of(path: Path, **given: Any) -> list[Diagnostic]:
    found = find_set(str(path))
    assert found is not None
    results = run_execution(Execution(open_set(found), Parameters(**given)))
    return [one for one in results.diagnostics if one.code == "files-not-taken"]


def asked(note: Diagnostic) -> dict[str, Any]:
    """The parameters of the command line that a note ends with."""
    words = shlex.split(note.message.rpartition(": wltui ")[2])
    return {one[2:].replace("-", "_"): word for one, word in zip(words[1::2], words[2::2], strict=True)}


def test_the_note_names_what_lies_there_and_its_command_line_takes_all_of_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a run")
    (note,) = notes_of(folder)
    said([note.message], "my net.yml", "s.json", "comms.json", "h100-8", "--network links")
    given = asked(note)
    assert given == {
        "dialect": "astra-sim-2",
        "cluster": str(folder / "my net.yml"),
        "system": str(folder / "s.json"),
        "comm_groups": str(folder / "comms.json"),
    }
    assert notes_of(folder, **given) == []


def test_files_of_the_folder_above_count_where_the_folder_has_none(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run")
    for name in ("my net.yml", "s.json"):
        os.rename(folder / name, tmp_path / name)
    (note,) = notes_of(folder)
    said([note.message], "../my net.yml", "../s.json", "comms.json")
    assert notes_of(folder, **asked(note)) == []


def test_what_is_given_is_not_offered(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run")
    (note,) = notes_of(folder, cluster=str(folder / "my net.yml"), comm_groups=str(folder / "comms.json"))
    assert note.message.startswith("s.json ")
    # The network is given.
    assert "h100-8" not in note.message
    (note,) = notes_of(folder, dim=("switch:2:50:500",), compute_scale=2.0)
    # ASTRA-sim has no factor like that.
    assert asked(note) == {
        "dim": "switch:2:50:500",
        "system": str(folder / "s.json"),
        "compute_scale": "2.0",
        "comm_groups": str(folder / "comms.json"),
    }


def test_a_network_of_another_size_is_not_offered_nor_a_system_file_without_one(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", npus=4)
    (note,) = notes_of(folder)
    assert asked(note) == {"comm_groups": str(folder / "comms.json")}
    os.remove(folder / "comms.json")
    assert notes_of(folder) == []


def test_no_file_is_asked_for_that_could_be_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write_set(folder, [[SUM]] * 2)
    os.mkfifo(folder / "network.yml")
    os.symlink("nowhere", folder / "system.json")
    assert notes_of(folder) == []


def test_a_run_that_needs_them_and_stops_says_so_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run")
    with pytest.raises(InputError) as stopped:
        notes_of(folder, dialect="astra-sim-2", cluster=str(folder / "my net.yml"))
    codes = [one.code for one in stopped.value.diagnostics]
    assert codes == ["execution-stopped", "files-not-taken"]
    assert notes_of(folder, **asked(stopped.value.diagnostics[-1])) == []


def test_a_network_written_line_by_line_is_found(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run")
    (folder / "my net.yml").write_text(
        "topology:\n  - Ring\nnpus_count:\n  - 2\nbandwidth:\n  - 50.0\nlatency:\n  - 500\n"
    )
    (note,) = notes_of(folder)
    assert "cluster" in asked(note)
    assert notes_of(folder, **asked(note)) == []
