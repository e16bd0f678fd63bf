"""Cut, flipped and hostile traces: a result or an error with file, byte and node, never a traceback or a
hang.

`WLTUI_MUTANTS=20000` runs so many (150 without it).
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.chakra.opening import find_structure
from simcore.diagnostics import InputError, UsageError
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.render.report.pages import run_json, run_page
from simcore.runs.executed import run_execution
from tests.executing.encoding import (
    COLL,
    COMP,
    RECV,
    SEND,
    attribute,
    et_bytes,
    field,
    varint,
    write_json,
    write_set,
)
from tests.findings import named

COUNT = int(os.environ.get("WLTUI_MUTANTS", "150"))
SMALL: list[dict[str, Any]] = [
    {"id": 1, "type": COMP, "micros": 5, "attributes": {"num_ops": 1, "tensor_size": 1}},
    {"id": 2, "type": COLL, "data": [1], "attributes": {"comm_type": 0, "comm_size": 4096}},
    {"id": 3, "type": COMP, "ctrl": [1, 2], "micros": 7, "attributes": {}},
]
PAIR = [
    [
        *SMALL,
        {"id": 4, "type": SEND, "data": [3], "attributes": {"comm_dst": 1, "comm_tag": 1, "comm_size": 64}},
    ],
    [
        *SMALL,
        {"id": 4, "type": RECV, "data": [3], "attributes": {"comm_src": 0, "comm_tag": 1, "comm_size": 64}},
    ],
]
WLTUI = Parameters()
ASTRA = Parameters(dialect="astra-sim-2", dim=("ring:2:50:500",))


def run(prefix: str, parameters: Parameters = WLTUI) -> Any:
    found = find_set(prefix)
    assert found is not None
    return run_execution(Execution(open_set(found), parameters))


def errors_of(prefix: str, parameters: Parameters = WLTUI) -> list[tuple[str, str, list[str]]]:
    """Of each error the name of its file, its code, and the figures of its message."""
    with pytest.raises(InputError) as raised:
        run(prefix, parameters)
    return [(Path(one.file).name, one.code, named(one.message)) for one in raised.value.diagnostics]


def test_the_pair_runs_by_both_rules(tmp_path: Path) -> None:
    prefix = write_set(tmp_path, PAIR)
    assert run(prefix).step_time_ns > 12_000
    assert run(prefix, ASTRA).step_time_ns > 12_000


@pytest.mark.slow
@pytest.mark.parametrize("rules", [Parameters(), ASTRA], ids=["wltui", "astra-sim-2"])
def test_mutants_have_a_result_or_an_error(rules: Parameters, tmp_path: Path) -> None:
    whole = [et_bytes(nodes) for nodes in PAIR]
    for number in range(COUNT):
        draw = random.Random(number)
        data = bytearray(whole[0])
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(data))
            what = draw.randrange(5)
            if what == 0:
                del data[at:]
                data = data or bytearray(b"\x00")
            elif what == 1:
                data[at] ^= 1 << draw.randrange(8)
            elif what == 2:
                data[at:at] = varint(draw.choice((2**63, 2**64 - 1, 2**31, 127, 0)))
            elif what == 3:
                data[at : at + draw.randint(1, 9)] = data[draw.randrange(len(data)) :][: draw.randint(0, 9)]
                data = data or bytearray(b"\x00")
            else:
                data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 6)))
        (tmp_path / "wl.0.et").write_bytes(data)
        (tmp_path / "wl.1.et").write_bytes(whole[1])
        said = "wl"
        try:
            results = run(str(tmp_path / "wl"), rules)
            run_json(results)
            # Each tenth with the changes that it tries, some 20 runs.
            page = run_page(results, with_what_if=not number % 10)
        except (InputError, UsageError) as error:
            said, page = str(error), ""
        assert "\x1b" not in page + said, number
        assert "wl" in said, (number, said)


def test_a_cut_file_is_an_error_with_its_byte_and_a_warning_under_the_dialect(tmp_path: Path) -> None:
    prefix = write_set(tmp_path, [[SMALL[0], SMALL[2] | {"ctrl": [1]}]] * 2)
    data = (tmp_path / "wl.0.et").read_bytes()
    (tmp_path / "wl.0.et").write_bytes(data[:-3])
    # The byte where its length stands, of how many bytes how many are there, the last node that was read.
    assert errors_of(prefix) == [("wl.0.et", "damaged-trace", [str(len(data) - 14), "13", "10", "3"])]
    assert [one.code for one in run(prefix, ASTRA).diagnostics] == ["damaged-trace"]


def test_a_length_of_2_to_the_63_is_refused_at_its_byte(tmp_path: Path) -> None:
    prefix = write_set(tmp_path, [SMALL[:1]])
    path = tmp_path / "wl.0.et"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + varint(2**63) + b"abc")
    ((_, code, said),) = errors_of(prefix)
    assert (code, said[:2]) == ("damaged-trace", [str(size), str(2**63)])


def test_an_id_twice_is_an_error_and_the_last_counts_under_the_dialect(tmp_path: Path) -> None:
    twice = [SMALL[0], SMALL[0] | {"micros": 9}]
    prefix = write_set(tmp_path, [twice, twice])
    assert [(file, code, said[1]) for file, code, said in errors_of(prefix)] == [
        (f"wl.{rank}.et", "node-twice", "1") for rank in range(2)
    ]
    results = run(prefix, ASTRA)
    assert results.step_time_ns == 9000
    assert {one.code for one in results.diagnostics} == {"node-twice"}


def test_a_circle_is_an_error_that_names_its_nodes(tmp_path: Path) -> None:
    circle = [SMALL[0], {"id": 5, "type": COMP, "data": [6]}, {"id": 6, "type": COMP, "ctrl": [5]}]
    prefix = write_set(tmp_path, [[dict(one, attributes={}) for one in circle]])
    ((_, code, said),) = errors_of(prefix)
    assert (code, said[1:]) == ("node-cycle", ["5", "6"])


def test_a_dependency_on_a_node_that_is_not_there_names_both(tmp_path: Path) -> None:
    prefix = write_set(tmp_path, [[SMALL[0] | {"data": [77]}]] * 2)
    for _, code, said in errors_of(prefix):
        assert (code, said[1:]) == ("node-missing", ["1", "77", "data_deps"])
    ((file, code, said),) = errors_of(prefix, ASTRA)
    assert (file, code, said[:4]) == ("wl.0.et", "execution-stopped", ["0", "1", "1", "77"])


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    prefix = write_set(tmp_path, [SMALL[:1]] * 4)
    (tmp_path / "wl.2.et").unlink()
    assert errors_of(prefix) == [("wl", "ranks-missing", ["2"])]
    astra = Parameters(dialect="astra-sim-2", dim=("ring:4:50:500",))
    assert errors_of(prefix, astra) == [("wl.2.et", "ranks-missing", ["2", "4", "R1"])]


def test_a_receive_without_its_send_names_rank_and_node(tmp_path: Path) -> None:
    lonely = [SMALL[0], {"id": 9, "type": RECV, "attributes": {"comm_src": 0, "comm_tag": 3, "comm_size": 8}}]
    prefix = write_set(tmp_path, [SMALL[:1], lonely])
    assert errors_of(prefix) == [("wl.1.et", "never-ends", ["1", "9"])]
    assert errors_of(prefix, ASTRA) == [("wl.1.et", "execution-stopped", ["1", "9", "ASTRA", "R6"])]


def test_collectives_that_differ_are_an_error(tmp_path: Path) -> None:
    other = SMALL[1] | {"attributes": {"comm_type": 2, "comm_size": 4096}}
    prefix = write_set(tmp_path, [SMALL[:2], [SMALL[0], other]])
    assert errors_of(prefix) == [
        ("wl.1.et", "collectives-differ", ["1", "2", "ALL_GATHER", "0", "ALL_REDUCE", "2"])
    ]


def test_hostile_names_reach_no_page(tmp_path: Path) -> None:
    name = "\x1b[2J\u202elayer\n[bold]x[/]"
    prefix = write_set(tmp_path, [[SMALL[0] | {"name": name}]])
    page = run_page(run(prefix))
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "layer" in page


@pytest.mark.slow
def test_a_node_of_a_million_attributes_is_refused_by_name(tmp_path: Path) -> None:
    one = attribute("x", 1)
    body = field(1, 1) + field(3, COMP) + field(7, 3) + field(10, one) * 1_000_000
    (tmp_path / "wl.0.et").write_bytes(varint(0) + varint(len(body)) + body)
    ((_, code, said),) = errors_of(str(tmp_path / "wl"))
    assert (code, said[1:3]) == ("damaged-trace", ["65536", "1"])


def test_check_names_what_does_not_hold_together(tmp_path: Path) -> None:
    found = find_set(write_set(tmp_path, [[SMALL[0] | {"data": [77]}]]))
    assert found is not None
    assert [one.code for one in find_structure(open_set(found)).errors] == ["node-missing"]


def test_a_group_without_a_file_of_groups_is_refused_with_its_flag(tmp_path: Path) -> None:
    node = {"id": 1, "type": COLL, "attributes": {"comm_type": 0, "comm_size": 64, "pg_name": "3"}}
    write_set(tmp_path, [[node]] * 2)
    found = find_set(str(tmp_path))
    assert found is not None
    asked = Parameters(dialect="astra-sim-2", dim=("switch:2:50:500",))
    with pytest.raises(InputError, match=r"group 3 .* no --comm-groups FILE"):
        run_execution(Execution(open_set(found), asked))
    groups = write_json(tmp_path / "groups.json", {"1": [0, 1]})
    with pytest.raises(InputError, match=r"group 3 .* not in .* --comm-groups"):
        run_execution(Execution(open_set(found), replace(asked, comm_groups=groups)))
