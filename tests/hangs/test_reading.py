"""Dumps are read whatever wrote them, and nothing but plain values comes out of a pickle."""

from __future__ import annotations

import copyreg
import gzip
import json
import pickle
import pickletools
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError
from simcore.flight import FlightRecord
from simcore.flight.opening import COLUMNS
from simcore.flight.record import COMPLETED
from simcore.flight.verdict import find_verdict
from simcore.sources.checking import check_file_of
from simcore.sources.inputs import open_input
from simcore.unpickling import worker
from simcore.unpickling.files import rank_of_name
from simcore.unpickling.process import read_tables
from tests.hangs.incidents import INCIDENTS, Fault, dumps_of, write_dumps

DUMPS = dumps_of(Fault())


def opened(path: Path) -> FlightRecord:
    record = open_input(str(path))
    assert isinstance(record, FlightRecord)
    return record


def refusal(data: bytes) -> str:
    """Why a dump cannot be read; "" where it can."""
    (table,) = read_tables(COLUMNS, [data], 1)
    return table if isinstance(table, str) else ""


def codes(path: Path) -> list[str]:
    return [one.code for one in check_file_of(lambda: open_input(str(path))).diagnostics]


# -- what a pickle may not do --------------------------------------------------------------

_MARK = Path("/tmp/wltui-unpickled")
_PROTOCOL = b"\x80\x04"
_CALLS = {
    "GLOBAL": b"cos\nsystem\n(S'true'\ntR.",
    "STACK_GLOBAL": b"\x8c\x02os\x8c\x06system\x93(\x8c\x04true\x85R.",
    "INST": b"(S'true'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nS'true'\no.",
    "NEWOBJ": b"cos\nsystem\n)\x81.",
    "NEWOBJ_EX": b"cos\nsystem\n)}\x92.",
    "EXT1": b"\x82\x01.",
    "EXT2": b"\x83\x01\x00.",
    "EXT4": b"\x84\x01\x00\x00\x00.",
    "PERSID": b"Pname\n.",
    "BINPERSID": b"K\x01Q.",
    "REDUCE": b"X\x01\x00\x00\x00a)R.",
    "BUILD": b"]}b.",
    "NEXT_BUFFER": b"\x97.",
    "READONLY_BUFFER": b"\x97\x98.",
}


@pytest.mark.parametrize("opcode", _CALLS)
def test_opcode_that_could_do_more_is_refused(opcode: str) -> None:
    assert refusal(_PROTOCOL + _CALLS[opcode])


def test_every_opcode_that_makes_or_asks_for_an_object_is_tried() -> None:
    plain = {
        "ANY", "none", "bool", "int", "float", "str", "bytes", "bytearray", "tuple", "list", "dict", "set",
        "frozenset", "mark",
    }  # fmt: skip
    risky = {
        opcode.name
        for opcode in pickletools.opcodes
        if opcode.name in _CALLS
        or any(
            kind.name in ("any", "buffer", "object") and kind.name not in plain for kind in opcode.stack_after
        )
    }
    # What moves what is there already makes nothing.
    assert risky - {"GET", "BINGET", "LONG_BINGET", "DUP", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"} == {
        *_CALLS
    }


def test_extension_codes_reach_no_registered_class(monkeypatch: pytest.MonkeyPatch) -> None:
    copyreg.add_extension("os", "system", 1)
    try:
        with pytest.raises(worker.DumpError):
            worker.load(_PROTOCOL + b"\x82\x01.")
    finally:
        copyreg.remove_extension("os", "system", 1)


class _Touches:
    def __reduce__(self) -> Any:
        return Path.touch, (_MARK,)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickled_object_is_not_made(protocol: int, tmp_path: Path) -> None:
    _MARK.unlink(missing_ok=True)
    (tmp_path / "rank_0").write_bytes(pickle.dumps({"pg_config": {}, "entries": [_Touches()]}, protocol))
    with pytest.raises(InputError) as caught:
        open_input(str(tmp_path))
    assert [one.code for one in caught.value.diagnostics] == ["bad-dump"]
    assert not _MARK.exists()


def test_process_that_reads_imports_nothing_of_a_dump() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (Path(worker.__file__), COLUMNS)]
    assert not any(word in source for source in sources for word in ("import_module", "__import__"))
    assert [source.count("Unpickler(") for source in sources] == [2, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded where the system can")
@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02}r\x00\x00\x00\x08.",
        b"\x80\x02}r\xff\xff\xff\xff.",
        b"\x80\x02}p99999999999\n.",
        b"\x80\x05}\x96" + (1 << 40).to_bytes(8, "little") + b".",
        b"\x80\x02}(" + b")" + b"\x85" * 3_000_000 + b"K\x01u.",
        b"\x80\x02" + b"\x8f" * 400_000 + b".",
    ],
    ids=["memo", "memo-4G", "memo-text", "bytearray", "nested", "sets"],
)
def test_bomb_is_refused_within_bounds(data: bytes) -> None:
    assert refusal(data)
    # The process that takes the place of the one that ended reads on.
    first, second = read_tables(COLUMNS, [data, pickle.dumps(DUMPS[0], 2)], 2)
    assert isinstance(first, str)
    assert isinstance(second, dict)


def test_dump_that_repeats_its_entries_is_refused() -> None:
    entry = b"\x80\x02}X\x07\x00\x00\x00entries](}q\x01" + b"h\x01" * 100_000 + b"es."
    assert "repeats" in refusal(entry)


def test_damaged_dumps_are_refused_or_read() -> None:
    data, choose = pickle.dumps(DUMPS[0], 2), random.Random(9)
    damaged = [data[: choose.randrange(len(data))] for _ in range(40)]
    for _ in range(120):
        at = choose.randrange(len(data))
        damaged.append(data[:at] + bytes([choose.randrange(256)]) + data[at + 1 :])
    for table in read_tables(COLUMNS, damaged, len(damaged)):
        assert isinstance(table, (dict, str))


# -- what is read --------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pickle", "json", "gz", "json.gz", "protocol 4", "older"])
def test_forms_of_a_dump_say_the_same(form: str, tmp_path: Path) -> None:
    dumps = INCIDENTS["sleeps"].make()
    expected = find_verdict(opened(write_dumps(tmp_path / "plain", dumps)))
    (tmp_path / "other").mkdir()
    for rank, dump in dumps.items():
        if form == "older":
            dump = dump | {"version": "2.4"}
            dump["entries"] = [
                {
                    key: value
                    for key, value in entry.items()
                    if key not in ("thread_id", "thread_name", "record_id")
                }
                for entry in dump["entries"]
            ]
        data = json.dumps(dump).encode() if "json" in form else pickle.dumps(dump, 4 if "4" in form else 2)
        name = f"comm_lib_trace_rank_{rank}" + (".json" if "json" in form else "")
        packed = gzip.compress(data) if "gz" in form else data
        (tmp_path / "other" / (name + (".gz" if "gz" in form else ""))).write_bytes(packed)
    verdict = find_verdict(opened(tmp_path / "other"))
    assert verdict.waits == expected.waits
    assert verdict.culprits == expected.culprits


def test_single_dump_opens_alone(tmp_path: Path) -> None:
    write_dumps(tmp_path, DUMPS)
    record = opened(tmp_path / "nccl_trace_rank_5")
    assert [dump.rank for dump in record.dumps] == [5]
    assert len(record.dumps[0].entries) == len(DUMPS[5]["entries"])


@pytest.mark.parametrize(
    ("name", "rank"),
    [("nccl_trace_rank_7", 7), ("comm_lib_trace_rank_12", 12), ("_dump_3", 3), ("job42_rank_0", 0),
     ("trace_5.pkl", 5), ("trace_5.json.gz", 5), ("dump", None)],
)  # fmt: skip
def test_rank_is_the_last_number_of_the_name(name: str, rank: int | None) -> None:
    assert rank_of_name(name) == rank


def test_two_files_of_a_rank_a_missing_rank_and_a_name_without_one_are_said(tmp_path: Path) -> None:
    write_dumps(tmp_path, {rank: DUMPS[rank] for rank in range(3)})
    write_dumps(tmp_path, {1: DUMPS[1]}, "again_{}")
    (tmp_path / "dump").write_bytes(pickle.dumps(DUMPS[4] | {"pg_config": {}}, 2))
    record = opened(tmp_path)
    assert [dump.rank for dump in record.dumps] == [0, 1, 2]
    assert {"repeated-rank", "rank-unknown", "ranks-missing"} <= {one.code for one in record.diagnostics}
    assert [*record.missing] == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("name", ["dump", "dump_20250923", "attempt_9000"])
def test_rank_that_no_name_has_is_the_one_in_all_groups_of_the_dump(name: str, tmp_path: Path) -> None:
    write_dumps(tmp_path, {rank: DUMPS[rank] for rank in range(3)})
    (tmp_path / name).write_bytes(pickle.dumps(DUMPS[4], 2))
    record = opened(tmp_path)
    assert [dump.rank for dump in record.dumps] == [0, 1, 2, 4]
    assert "rank-assumed" in {one.code for one in record.diagnostics}


@pytest.mark.parametrize("key", ["version", "pg_config", "pg_status", "entries", "nccl_version"])
def test_missing_key_is_said_and_the_rest_is_read(key: str, tmp_path: Path) -> None:
    dumps = {
        rank: {name: value for name, value in dump.items() if name != key} for rank, dump in DUMPS.items()
    }
    record = opened(write_dumps(tmp_path, dumps))
    assert len(record.dumps) == len(DUMPS)
    found = {one.code for one in record.diagnostics}
    assert ("missing-key" in found) == (key in ("pg_config", "pg_status", "entries"))
    find_verdict(record)


def test_groups_without_a_list_have_the_ranks_that_use_them(tmp_path: Path) -> None:
    dumps = {rank: dump | {"pg_config": {}} for rank, dump in INCIDENTS["sleeps"].make().items()}
    record = opened(write_dumps(tmp_path, dumps))
    assert {group.ranks for group in record.groups if group.description == "default_pg"} == {tuple(range(8))}


@pytest.mark.parametrize("value", [None, "text", -5, 1 << 70, 1.5, [], [[]], {}, [["x"]], True])
def test_value_of_another_kind_is_no_error(value: Any) -> None:
    dumps = []
    for key in DUMPS[0]["entries"][0]:
        entries = [dict(entry) for entry in DUMPS[0]["entries"]]
        entries[1][key] = value
        dumps.append(pickle.dumps(DUMPS[0] | {"entries": [*entries, 3]}, 2))
    for table in read_tables(COLUMNS, dumps, len(dumps)):
        assert isinstance(table, dict)
        assert table["count"] == len(DUMPS[0]["entries"])
        assert table["wrong"]["entries"] == 1


def test_values_of_another_kind_are_said(tmp_path: Path) -> None:
    entries = [
        entry | {"time_created_ns": "noon", "state": 7, "frames": None} for entry in DUMPS[0]["entries"]
    ]
    record = opened(write_dumps(tmp_path, {0: DUMPS[0] | {"entries": entries}, 1: DUMPS[1]}))
    assert [one.code for one in record.diagnostics].count("bad-value") == 2
    find_verdict(record)


def test_columns_have_what_the_dump_has(tmp_path: Path) -> None:
    record = opened(write_dumps(tmp_path, DUMPS))
    for dump in record.dumps:
        for row, entry in enumerate(DUMPS[dump.rank]["entries"]):
            entries, names = dump.entries, record.names
            assert names.operations[entries.operation[row]] == entry["profiling_name"]
            assert list(map(list, names.sizes[entries.input_size[row]])) == entry["input_sizes"]
            assert names.dtypes[entries.input_dtype[row]] == entry["input_dtypes"][0]
            assert entries.collective[row] == entry["collective_seq_id"]
            assert entries.created[row] == entry["time_created_ns"]
            assert entries.state[row] == COMPLETED
            assert record.groups[entries.group[row]].description == entry["process_group"][1]
            assert f"train.py\t{entry['frames'][1]['line']}" in names.stacks[entries.stack[row]]


def test_directory_without_a_readable_dump_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(b"\x80\x02}X\x09\x00\x00\x00pg_config")
    assert codes(tmp_path) == ["bad-dump"]
    write_dumps(tmp_path, {1: DUMPS[1]})
    assert "bad-dump" in codes(tmp_path)
    assert len(opened(tmp_path).dumps) == 1
