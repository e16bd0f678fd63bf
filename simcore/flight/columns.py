"""The entries of a flight recorder dump as columns; runs in the process of `simcore/unpickling/worker.py`."""

from __future__ import annotations

import marshal
from array import array
from itertools import chain, repeat
from operator import itemgetter, ne

from simcore.unpickling.worker import NONE, DumpError, index_stacks, index_values, integer_of, text_of

if False:  # `typing` takes 5 ms to import.
    from typing import Any

# The bytes that an entry takes at least.
_LEAST_ENTRY = 16
_MOST_SIZES = 256
# A year, in ms.
_MOST_DURATION_MS = 366 * 86_400_000

STATES = ("scheduled", "started", "completed")
_STATE_OF = {name: index for index, name in enumerate(STATES)}
# Keys of entries that are whole numbers, and the keys of a group's status.
NUMBER_KEYS = (
    "pg_id", "collective_seq_id", "p2p_seq_id", "time_created_ns",
    "time_discovered_started_ns", "time_discovered_completed_ns", "timeout_ms",
)  # fmt: skip
_KEYS = (
    *NUMBER_KEYS, "duration_ms", "state", "is_p2p", "retired", "profiling_name",
    "process_group", "input_sizes", "output_sizes", "input_dtypes", "output_dtypes", "frames",
)  # fmt: skip
STATUS = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
_DUMP_KEYS = ("entries", "pg_config", "pg_status")


def read_table(dump: object, size: int) -> dict[str, Any]:
    """Returns the columns of a dump of `size` bytes. Raises `DumpError`, MemoryError."""
    if not isinstance(dump, dict) or not any(key in dump for key in _DUMP_KEYS):
        raise DumpError(f"it has none of {', '.join(_DUMP_KEYS)}")
    entries = dump.get("entries", [])
    if not isinstance(entries, (list, tuple)):
        raise DumpError("its entries are no list")
    if len(entries) * _LEAST_ENTRY > size:
        raise DumpError(f"it repeats its entries {len(entries)} times")
    table = _Columns(entries).table()
    table["missing"] = [key for key in _DUMP_KEYS if key not in dump]
    for key in ("version", "nccl_version", "comm_lib_version"):
        table[key] = text_of(dump.get(key))
    config, statuses = dump.get("pg_config"), dump.get("pg_status")
    table["groups"], table["statuses"] = _groups(config), _statuses(statuses)
    counts = {"pg_config": _count_wrong_groups(config), "pg_status": _count_wrong_statuses(statuses)}
    table["wrong"] |= {name: count for name, count in counts.items() if count}
    return table


def _groups(config: object) -> list[tuple[str, str, str]]:
    """Returns (name, description, ranks as text) of each group."""
    groups = []
    for key, value in config.items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            ranks = value.get("ranks", "")
            if isinstance(ranks, (list, tuple)):
                ranks = ",".join(map(str, map(integer_of, ranks)))
            name = text_of(key) or text_of(value.get("name"))
            whole = ranks.encode(errors="replace").decode() if isinstance(ranks, str) else ""
            groups.append((name, text_of(value.get("desc")), whole))
    return groups


def _count_wrong_groups(config: object) -> int:
    """Returns how many groups are none, or have members that are no ranks."""
    if not isinstance(config, dict):
        return int(config is not None)
    groups = config.values()
    return sum(not isinstance(group, dict) or not _are_ranks(group.get("ranks", "")) for group in groups)


def _are_ranks(ranks: object) -> bool:
    """Returns whether members are a list of ranks or its text."""
    if isinstance(ranks, str):
        return not ranks.strip("[]0123456789,. ")
    return isinstance(ranks, (list, tuple)) and all(type(rank) is int and rank >= 0 for rank in ranks)


def _count_wrong_statuses(statuses: object) -> int:
    """Returns how many statuses of groups are none, or have numbers of calls that are none."""
    if not isinstance(statuses, dict):
        return int(statuses is not None)
    return sum(
        not isinstance(value, dict)
        or any((call_id := value.get(name)) is not None and integer_of(call_id) != call_id for name in STATUS)
        for value in statuses.values()
    )


def _statuses(statuses: object) -> list[tuple[int, int, int, int]]:
    """Returns (id of the group, last enqueued, last started, last completed)."""
    rows = []
    for key, value in statuses.items() if isinstance(statuses, dict) else ():
        if isinstance(value, dict):
            enqueued, started, completed = (integer_of(value.get(name)) for name in STATUS)
            # JSON has keys of text alone.
            known_text = str(key)[:20]
            is_id = known_text.isascii() and known_text.isdecimal()
            rows.append((int(known_text) if is_id else NONE, enqueued, started, completed))
    return rows


class _Columns:
    """The entries of a dump as columns. wrong: how many values of each key are none that it can have."""

    def __init__(self, entries: list[object] | tuple[object, ...]) -> None:
        self.entries = [entry for entry in entries if type(entry) is dict]
        self.wrong: dict[str, int] = {}
        # Entry by entry: key by key each of 2,000 entries is looked up in memory 20 times.
        try:
            rows = list(map(itemgetter(*_KEYS), self.entries))
        except KeyError:
            rows = [tuple(map(entry.get, _KEYS)) for entry in self.entries]
        self.values = dict(zip(_KEYS, zip(*rows, strict=True) if rows else repeat(()), strict=False))
        if len(self.entries) < len(entries):
            self.wrong["entries"] = len(entries) - len(self.entries)

    def table(self) -> dict[str, Any]:
        """Returns the columns by name: bytes of arrays, and tables of texts with an index into each."""
        columns: dict[str, Any] = {name: self._integers(name).tobytes() for name in NUMBER_KEYS}
        columns["duration_ms"] = self._durations().tobytes()
        columns["state"], columns["is_p2p"], columns["retired"] = (
            self._states(), self._flags("is_p2p"), self._flags("retired"),
        )  # fmt: skip
        for key, (table, index) in (
            ("name", self._texts("profiling_name")), ("group", self._groups()),
            ("stack", index_stacks(self.values["frames"])),
        ):  # fmt: skip
            columns[key] = table, index.tobytes()
        columns |= self._sizes()
        columns["count"], columns["wrong"] = len(self.entries), self.wrong
        return columns

    def _integers(self, name: str) -> array[int]:
        values = self.values[name]
        try:
            return array("q", [NONE if value is None else value for value in values])
        except (TypeError, OverflowError):
            column = array("q", map(integer_of, values))
        # Absent and null are how a dump says that something has not happened.
        wrong = sum(map(NONE.__eq__, column)) - values.count(None) - values.count(NONE)
        if wrong > 0:
            self.wrong[name] = wrong
        return column

    def _durations(self) -> array[float]:
        """Returns the durations, ms; -1 of what has none."""
        values = self.values["duration_ms"]
        fit = [type(value) in (int, float) and -1 <= value < _MOST_DURATION_MS for value in values]
        wrong = fit.count(False) - values.count(None)
        if wrong:
            self.wrong["duration_ms"] = wrong
        durations = zip(values, fit, strict=True)
        return array("d", [value if is_duration else NONE for value, is_duration in durations])

    def _states(self) -> bytes:
        values = self.values["state"]
        try:
            states = bytes(map(_STATE_OF.get, values, repeat(len(STATES))))
        except TypeError:
            states = bytes(_STATE_OF.get(value, 3) if isinstance(value, str) else 3 for value in values)
        if wrong := states.count(len(STATES)):
            self.wrong["state"] = wrong
        return states

    def _flags(self, name: str) -> bytes:
        values = self.values[name]
        try:
            return bytes(values)
        except (TypeError, ValueError):
            return bytes(value is True for value in values)

    def _texts(self, name: str) -> tuple[list[str], array[int]]:
        """Returns (the distinct texts of a key, the index of each)."""
        values = list(self.values[name])
        if {*map(type, values)} != {str}:
            values = [value if type(value) is str else "" for value in values]
        return index_values(values, text_of)

    def _groups(self) -> tuple[list[tuple[str, str]], array[int]]:
        """Returns (name and description of the distinct groups, the index of each)."""
        values = self.values["process_group"]
        try:
            return index_values(list(map(tuple, values)), _texts_of_pair)
        except TypeError:
            return index_values(
                [("", value if type(value) is str else "") for value in values], _texts_of_pair
            )

    def _sizes(self) -> dict[str, object]:
        """Returns the sizes and dtypes that go in and out: the distinct ones, with the index of each."""
        columns: dict[str, object] = {}
        for table, of, index in (("sizes", "size", _index_sizes), ("dtypes", "dtype", _index_types)):
            ins, outs = self.values[f"input_{table}"], self.values[f"output_{table}"]
            # Mostly what comes out is as large as what goes in.
            differ = [row for row, is_other in enumerate(map(ne, ins, outs)) if is_other]
            columns[table], indices = index([*ins, *map(outs.__getitem__, differ)])
            of_ins, of_others = indices[: len(ins)], indices[len(ins) :]
            of_outs = of_ins[:]
            for row, other in zip(differ, of_others, strict=True):
                of_outs[row] = other
            columns[f"input_{of}"], columns[f"output_{of}"] = of_ins.tobytes(), of_outs.tobytes()
        return columns


# What `marshal` writes between two lists that each hold one list.
_ONE_TENSOR = b"[\1\0\0\0["


def _index_sizes(values: list[Any]) -> tuple[list[Any], array[int]]:
    """Returns (the sizes of tensors as tuples, the index of each value)."""
    try:
        # One text of all values, cut into them, takes a third of a tuple for each.
        texts = marshal.dumps(values, 2).split(_ONE_TENSOR)
        if len(texts) == len(values) + 1:
            table, index = index_values(texts[1:], lambda text: (tuple(marshal.loads(b"[" + text)),))
        else:
            table, index = index_values([tuple(map(tuple, value)) for value in values], _same)
        if {*map(type, chain.from_iterable(chain.from_iterable(table)))} <= {int}:
            return table, index
    except (TypeError, ValueError, EOFError):
        pass
    return index_values(list(map(_plain_sizes, values)), _same)


def _index_types(values: list[Any]) -> tuple[list[Any], array[int]]:
    """Returns (the dtypes of tensors as text, the index of each value)."""
    try:
        if {*map(len, values)} == {1}:
            return index_values([value[0] for value in values], text_of)
        return index_values(list(map(tuple, values)), _join_types)
    except (TypeError, KeyError):
        return index_values(list(map(_plain_types, values)), _join_types)


def _same(value: Any) -> Any:
    return value


def _texts_of_pair(pair: tuple[Any, ...]) -> tuple[str, str]:
    return (text_of(pair[0]), text_of(pair[1])) if len(pair) == 2 else ("", "")


def _plain_sizes(value: object) -> tuple[tuple[int, ...], ...]:
    """Returns the sizes of tensors of which some are not as they should be."""
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_SIZES:
        return ()
    if not all(isinstance(dims, (list, tuple)) and len(dims) <= _MOST_SIZES for dims in value):
        return ()
    return tuple(tuple(map(integer_of, dims)) for dims in value)


def _plain_types(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_SIZES:
        return ()
    return tuple(text_of(one) for one in value)


def _join_types(types: tuple[str, ...]) -> str:
    return ",".join(text_of(one) for one in dict.fromkeys(types))
