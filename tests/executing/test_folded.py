"""Ranks that run alike are read and run once: nothing of a run changes by it."""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.chakra import ExecutionSet, find_set, open_set
from simcore.chakra.opening import Reader
from simcore.chakra.wire import TextTable, read_columns
from simcore.diagnostics import InputError
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.executed import ExecutedRun, run_execution
from simcore.trace.run import mean_ns
from tests.executing.encoding import COLL, COMP, RECV, SEND, et_bytes, write_json, write_network

_KINDS = (0, 2, 6, 7)


_GRIDS = [(2, 2, 2), (4, 1, 2), (1, 4, 3), (2, 3, 1), (8, 2, 2), (1, 12, 1), (2, 8, 1)]


def grid_set(seed: int, folder: Path, most_ranks: int = 32) -> Parameters:
    """A random step of a grid of ranks; some are put out of step: another duration, group or order."""
    draw = random.Random(seed)
    tp, dp, pp = draw.choice([grid for grid in _GRIDS if math.prod(grid) <= most_ranks])
    world = tp * dp * pp
    groups: dict[str, list[int]] = {}
    first = draw.choice([1, 90, 120])  # names and ranks of other lengths are other bytes

    def number(ranks: list[int]) -> str:
        known = next((name for name, there in groups.items() if there == ranks), None)
        if known is None:
            known = str(first + len(groups))
            groups[known] = ranks
        return known

    stages = [_stage(draw) for _ in range(pp)]
    files = []
    for rank in range(world):
        x, y, z = rank % tp, rank // tp % dp, rank // (tp * dp)
        of = {
            "tp": [one for one in range(world) if one // tp == rank // tp],
            "dp": [x + tp * (one + dp * z) for one in range(dp)],
            "pp": [x + tp * (y + dp * one) for one in range(pp)],
            "world": list(range(world)),
        }
        nodes = []
        for index, (kind, micros, data, what, size) in enumerate(stages[z]):
            attributes: dict[str, Any] = {"is_cpu_op": False}
            if kind == COLL:
                name = number(of[what])
                attributes |= {"comm_type": _KINDS[size % 4], "comm_size": size * 1000, "pg_name": name}
            elif kind == SEND:
                ring = x + tp * ((y + 1) % dp + dp * z)
                attributes |= {"comm_src": rank, "comm_dst": ring, "comm_tag": index, "comm_size": size}
            elif kind == RECV:
                ring = x + tp * ((y - 1) % dp + dp * z)
                attributes |= {"comm_src": ring, "comm_dst": rank, "comm_tag": index - 1, "comm_size": size}
            if kind in (SEND, RECV) and dp < 2:
                kind, attributes = COMP, {"is_cpu_op": True}
            nodes.append({"id": 5 + 3 * index, "name": f"n{index % 4}", "type": kind, "micros": micros,
                          "data": [5 + 3 * one for one in data], "attributes": attributes})  # fmt: skip
        files.append(nodes)
    for _ in range(draw.choice([0, 0, 1, 2])):
        node = draw.choice(draw.choice(files))
        draw.choice([
            lambda node=node: node.update(micros=node.get("micros", 0) + 3),
            lambda node=node: node["attributes"].update(comm_size=777),
            lambda node=node: node.update(name="another"),
        ])()  # fmt: skip
    for rank, nodes in enumerate(files):
        (folder / f"wl.{rank}.et").write_bytes(et_bytes(nodes, packed=draw.random() < 0.9))
    dims = [("Switch", tp * dp, 100.0, 50.0), ("Switch", pp, 10.0, 500.0)]
    network = write_network(folder / "network.yml", [one for one in dims if one[1] > 1])
    written = write_json(folder / "groups.json", groups)
    listed = written if groups and draw.random() < 0.5 else None
    slow = (f"{draw.randrange(world)}=1.5",) if draw.random() < 0.2 else ()
    return Parameters(cluster=network, comm_groups=listed, slow_rank=slow)


def _stage(draw: random.Random) -> list[tuple[int, int, list[int], str, int]]:
    """(type, us, the nodes it waits for, group, size) of the nodes of a rank of a stage."""
    found: list[tuple[int, int, list[int], str, int]] = []
    for _ in range(draw.randrange(1, 12)):
        data = sorted({draw.randrange(len(found)) for _ in range(draw.randrange(3))}) if found else []
        if draw.random() < 0.2:
            size = draw.randrange(1, 5000)
            found.append((SEND, 0, data, "", size))
            found.append((RECV, 0, data, "", size))
        elif draw.random() < 0.5:
            found.append((COLL, 0, data, draw.choice(["tp", "dp", "tp", "dp", "pp", "world"]),
                          draw.randrange(1, 9)))  # fmt: skip
        else:
            found.append((COMP, draw.randrange(6), data, "", 0))
    return found


def run(traces: ExecutionSet, parameters: Parameters) -> ExecutedRun | str:
    try:
        return run_execution(Execution(traces, parameters))
    except InputError as error:
        # The note on files that lie there has the command line in it.
        return "\n".join(one.text() for one in error.diagnostics if one.severity == "error")


def check(seed: int, dialect: str | None = None) -> int:
    """Compares the run of a random set, one rank of each class and rank by rank; the ranks saved."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = grid_set(seed, folder)
        if dialect is not None:
            groups = str(folder / "groups.json")
            asked = replace(asked, slow_rank=(), dialect=dialect, comm_groups=groups)
        found = find_set(str(folder))
        assert found is not None
        traces = open_set(found)
        assert_read_alike(traces)
        folded, whole = run(traces, asked), run(traces, replace(asked, no_fold=True))
    if isinstance(folded, str) or isinstance(whole, str):
        assert folded == whole
        return 0
    assert len(whole.executed.units.first) == len(whole.ranks)
    for column in ("start", "begin", "end", "lanes", "ranks"):
        assert getattr(folded.executed, column) == getattr(whole.executed, column), column
    assert folded.group_table == whole.group_table
    assert mean_ns(folded) == mean_ns(whole)
    assert folded.executed.units.spread(folded.slacks) == whole.slacks
    for table in ("mean_streams", "track_uses"):
        assert getattr(folded.figures, table) == getattr(whole.figures, table), table
    for mine, theirs in zip(folded.accounts, whole.accounts, strict=True):
        assert (mine.edge, mine.account, mine.op) == (theirs.edge, theirs.account, theirs.op)
    sums = [[(one.name, one.kind, one.runs.count, one.runs.total_ns, one.runs.waits_ns, one.use.slack_ns)
             for one in run.name_table] for run in (folded, whole)]  # fmt: skip
    assert sums[0] == sums[1]
    ranks = folded.ranks
    for rank in ranks:
        for place in range(len(folded.executed.nodes[rank])):
            for asked_of in ("send_of", "group_of", "receives_of"):
                answers = [getattr(one.executed, asked_of)(rank, place) for one in (folded, whole)]
                assert answers[0] == answers[1], asked_of
            assert folded.last_member(rank, place) == whole.last_member(rank, place)
    return len(ranks) - len(folded.executed.units.first)


def assert_read_alike(traces: ExecutionSet) -> None:
    """Each file has the columns that it has when it is read by itself."""
    for file in traces.files:
        table = TextTable()
        alone = read_columns(Path(file.path).read_bytes(), table, 1)
        for column in ("id", "type", "duration", "data", "data_to", "ctrl", "ctrl_to", "at"):
            assert getattr(alone, column) == getattr(file.columns, column), column
        for there, column in (("names", "name"), ("attributes", "attributes")):
            mine, theirs = list(getattr(table, there)), list(getattr(traces.table, there))
            assert [mine[one] for one in getattr(alone, column)] == [
                theirs[one] for one in getattr(file.columns, column)
            ]


@given(st.integers(0, 1 << 32))
def test_one_rank_of_each_class_is_as_good_as_all(seed: int) -> None:
    check(seed)


@given(st.integers(0, 1 << 32))
def test_ranks_that_ran_alike_by_astra_sims_rules_have_one_set_of_figures(seed: int) -> None:
    check(seed, "astra-sim-2")


@pytest.mark.parametrize("dialect", [None, "astra-sim-2"])
def test_random_sets_have_classes_and_end(dialect: str | None) -> None:
    saved = [check(seed, dialect) for seed in range(12)]
    # Under the dialect more of them never end.
    assert sum(one > 0 for one in saved) >= (4 if dialect is None else 2), saved


def test_a_name_that_looks_like_a_group_does_not_let_files_pass_as_alike() -> None:
    """`pg_name` and a value inside of a node's name are not an attribute."""

    def data(group: str) -> bytes:
        name = "\n\x07pg_name\xea\x01\x01"
        return et_bytes([{"id": 1, "name": name, "type": COLL,
                          "attributes": {"comm_type": 0, "comm_size": 8, "pg_name": group}}])  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        for rank, letter in enumerate("abc"):
            # The name is written as raw bytes: as text of UTF-8 the pattern would not be in it.
            raw = data(str(rank)).replace(b"\xc3\xaa\x01\x01", b"\xea\x01\x01" + letter.encode())
            Path(folder, f"wl.{rank}.et").write_bytes(raw)
        found = find_set(folder)
        assert found is not None
        traces = open_set(found)
        assert_read_alike(traces)
        names = {traces.kinds.name(file.columns.name[0])[-1] for file in traces.files}
        assert names == {"a", "b", "c"}


@pytest.mark.parametrize("count", [2, 40])
def test_alike_files_share_their_columns(count: int) -> None:
    table = TextTable()
    reader = Reader(table)
    with tempfile.TemporaryDirectory() as folder:
        read = []
        for rank in range(count):
            path = Path(folder, f"wl.{rank}.et")
            path.write_bytes(et_bytes([
                {"id": 1, "type": COLL,
                 "attributes": {"comm_type": 0, "comm_size": 8, "pg_name": str(10 + rank)}},
                {"id": 2, "type": COMP, "micros": 5, "data": [1]},
            ]))  # fmt: skip
            read.append(reader.columns(str(path), path.read_bytes(), 1))
    assert all(one.id is read[0].id for one in read)
    assert len({one.attributes[0] for one in read}) == count
