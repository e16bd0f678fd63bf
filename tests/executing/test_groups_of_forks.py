"""Groups as ASTRA-sim's forks name them, and sets in the JSON form, opened as a folder or by one file.

Figures: of 1 MiB on two pairs of a ring of four, ASTRA-sim 2 prints 53,015 cycles.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.runs.executed import run_execution
from simcore.sources.inputs import open_input

FOLDER = Path("fixtures/inputs")
ASTRA = {"dialect": "astra-sim-2", "cluster": f"{FOLDER}/net4.yml", "system": f"{FOLDER}/sys1.json"}


def run_of(path: str | Path, **parameters: Any) -> Any:
    opened = open_input(str(path))
    assert opened.source == "executed"  # type: ignore[union-attr]
    return run_execution(Execution(opened, Parameters(**parameters)))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["group0", "group0/t.0.json", "group0/t", "group0/t.3.json"])
@pytest.mark.parametrize("groups", [None, f"{FOLDER}/group0/comm_group.json"])
def test_two_pairs_of_which_one_is_group_0_run_alike_and_at_once(path: str, groups: str | None) -> None:
    run = run_of(FOLDER / path, comm_groups=groups)
    ranks = [[(run.executed.start[rank][0], run.executed.end[rank][0])] for rank in range(4)]
    assert ranks == [ranks[0]] * 4
    assert [run.executed.group_of(rank, 0) for rank in range(4)] == [("0", (0, 1))] * 2 + [("1", (2, 3))] * 2


def test_1_0_is_group_1_as_stoi_reads_it() -> None:
    groups = f"{FOLDER}/group1f/comm_group.json"
    assert run_of(FOLDER / "group1f", **ASTRA, comm_groups=groups).step_time_ns == 53_015
    run = run_of(FOLDER / "group1f", comm_groups=groups)
    assert run.step_time_ns == run_of(FOLDER / "group0").step_time_ns
    assert run.executed.group_of(0, 0) == ("1", (0, 1))


def test_group_0_is_all_ranks_where_all_name_it_or_a_file_of_groups_lacks_it(tmp_path: Path) -> None:
    nodes = json.loads((FOLDER / "group0/t.0.json").read_text("utf-8"))
    for rank in range(4):
        (tmp_path / f"t.{rank}.json").write_text(json.dumps(nodes))
    (tmp_path / "g.json").write_text('{"1": [0, 1]}')
    for groups in (None, str(tmp_path / "g.json")):
        assert run_of(tmp_path, comm_groups=groups).executed.group_of(0, 0) == ("", (0, 1, 2, 3))


def test_astra_sim_itself_aborts_with_group_0_and_the_error_names_the_way_on() -> None:
    with pytest.raises(InputError, match="without --dialect"):
        run_of(FOLDER / "group0", **ASTRA, comm_groups=f"{FOLDER}/group0/comm_group.json")


@pytest.mark.parametrize("packed", [False, True])
def test_one_file_of_any_name_is_rank_0_of_a_set(tmp_path: Path, packed: bool) -> None:
    data = (FOLDER / "group1f/t.0.json").read_bytes()
    path = tmp_path / ("nodes.json" + ".gz" * packed)
    path.write_bytes(gzip.compress(data) if packed else data)
    assert len(run_of(path).executed.nodes) == 1


def test_other_json_beside_a_set_is_none_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(FOLDER / "group1f", folder)
    (folder / "trace.0.json").write_text('{"nodes": [], "schema": "1.1.1"}')
    assert len(run_of(folder).executed.nodes) == 4


def offered(path: Path, **parameters: Any) -> dict[str, Any]:
    """The parameters of the command line that the note on files beside a set offers."""
    from simcore.executing.sibling_files import with_sibling_files

    opened = open_input(str(path))
    taking = with_sibling_files(Execution(opened, Parameters(**parameters)))  # type: ignore[arg-type]
    if taking is None:
        return {}
    run_execution(taking)
    explicit = {flag.field for flag in taking.parameters.explicit_flags()}
    return {name: getattr(taking.parameters, name) for name in explicit}


def test_what_the_note_offers_runs(tmp_path: Path) -> None:
    """Files that cannot be read, groups that lack a name and a dialect that would abort are not offered."""
    assert offered(FOLDER / "group1f")["dialect"] == "astra-sim-2"
    assert "dialect" not in offered(FOLDER / "group0")
    assert "dialect" not in offered(FOLDER / "group0", comm_groups=f"{FOLDER}/group0/comm_group.json")
    folder = tmp_path / "above" / "set"
    shutil.copytree(FOLDER / "group1f", folder)
    shutil.copy(FOLDER / "net4.yml", folder)
    (folder / "comm_group.json").write_text('{"1": [0, 1]}')
    assert offered(folder) == {"cluster": str(folder / "net4.yml")}
    (folder / "comm_group.json").write_text('{"1": [0, 1], "2": [2, 9]}')
    (folder / "system.json").write_text('{"all-reduce-implementation": ["no such"]}')
    assert offered(folder) == {"cluster": str(folder / "net4.yml")}
