"""The process that unpickles: dumps come in on standard input, columns of plain values go out.

It runs this file alone, as a program, because a pickle can end a process before any class is asked for: nine
bytes let the memo grow to 2 GB, 3 MB of nested tuples overflow the stack where one is hashed. The system
bounds its memory and its processor time for each dump. A pickle makes plain containers here and nothing
else: every request for a class or for an object by its id is refused.

A request is the length of a dump, 8 bytes, and the dump, or (OF_FILE) those of the path of its file; a
reply the length and what `marshal` writes, which holds no objects: the table of the dump, or in words why it
cannot be read.
"""

from __future__ import annotations

import gc
import marshal
import sys
from _pickle import Unpickler, UnpicklingError
from array import array
from itertools import chain, repeat
from operator import itemgetter, ne

if False:  # `typing` takes 5 ms to import.
    from collections.abc import Callable
    from typing import Any

# Objects take up to 20 times the bytes of a dump whose strings and frames are shared.
_MEMORY_BYTES, _MEMORY_RATIO = 96 << 20, 40
# A dump of 2,000 entries, 0.6 MB, takes 20 ms.
_SECONDS, _SECONDS_A_BYTE = 5, 2e-6
# The bytes that an entry takes at least.
_LEAST_ENTRY = 16
_MOST_SIZES, _MOST_FRAMES, _MOST_TEXT = 256, 256, 4096
# The bit of a length that says that a path follows.
OF_FILE = 1 << 62
_NONE, _LEAST, _MOST = -1, -(1 << 63), (1 << 63) - 1

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


class _PlainUnpickler(Unpickler):
    """Makes plain containers alone."""

    def find_class(self, module: str, name: str) -> object:
        raise UnpicklingError(f"it asks for {module[:60]}.{name[:60]}")

    def persistent_load(self, name: object) -> object:
        raise UnpicklingError("it asks for an object by its id")


class _Bytes:
    """Bytes as a file that is read ahead to its end at once: of one that is not, each opcode is a call."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def peek(self, count: int) -> bytes:
        return self.data[self.at :]

    def read(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def readline(self) -> bytes:
        end = self.data.find(b"\n", self.at) + 1 or len(self.data)
        return self.read(end - self.at)


class DumpError(ValueError):
    """Why a dump cannot be read."""


def load(data: bytes) -> object:
    """Returns the plain containers in a dump, a pickle or JSON. Raises `DumpError`."""
    try:
        if data[:1] == b"\x80":
            return _PlainUnpickler(_Bytes(data)).load()
        import json

        return json.loads(data)
    except MemoryError:
        raise
    except RecursionError:
        raise DumpError("it is nested too deeply") from None
    except Exception as error:
        words = str(error) or type(error).__name__
        message = f"it is damaged, or holds more than plain values: {words[:200]}"
        raise DumpError(message) from None


def read_table(data: bytes) -> dict[str, Any]:
    """Returns the columns of a dump. Raises `DumpError`, MemoryError."""
    dump = load(data)
    if not isinstance(dump, dict) or not any(key in dump for key in _DUMP_KEYS):
        raise DumpError(f"it has none of {', '.join(_DUMP_KEYS)}")
    entries = dump.get("entries", [])
    if not isinstance(entries, (list, tuple)):
        raise DumpError("its entries are no list")
    if len(entries) * _LEAST_ENTRY > len(data):
        raise DumpError(f"it repeats its entries {len(entries)} times")
    table = _Columns(entries).table()
    table["missing"] = [key for key in _DUMP_KEYS if key not in dump]
    for key in ("version", "nccl_version", "comm_lib_version"):
        table[key] = _text(dump.get(key))
    config, statuses = dump.get("pg_config"), dump.get("pg_status")
    table["groups"], table["statuses"] = _groups(config), _statuses(statuses)
    counts = {"pg_config": _count_wrong_groups(config), "pg_status": _count_wrong_statuses(statuses)}
    table["wrong"] |= {name: count for name, count in counts.items() if count}
    return table


def _text(value: object) -> str:
    return value[:_MOST_TEXT].encode(errors="replace").decode() if isinstance(value, str) else ""


def _integer(value: object) -> int:
    return value if type(value) is int and _LEAST <= value <= _MOST else _NONE


def _groups(config: object) -> list[tuple[str, str, str]]:
    """Returns (name, description, ranks as text) of each group."""
    groups = []
    for key, value in config.items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            ranks = value.get("ranks", "")
            if isinstance(ranks, (list, tuple)):
                ranks = ",".join(map(str, map(_integer, ranks)))
            name = _text(key) or _text(value.get("name"))
            whole = ranks.encode(errors="replace").decode() if isinstance(ranks, str) else ""
            groups.append((name, _text(value.get("desc")), whole))
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
        or any((call_id := value.get(name)) is not None and _integer(call_id) != call_id for name in STATUS)
        for value in statuses.values()
    )


def _statuses(statuses: object) -> list[tuple[int, int, int, int]]:
    """Returns (id of the group, last enqueued, last started, last completed)."""
    rows = []
    for key, value in statuses.items() if isinstance(statuses, dict) else ():
        if isinstance(value, dict):
            enqueued, started, completed = (_integer(value.get(name)) for name in STATUS)
            # JSON has keys of text alone.
            known_text = str(key)[:20]
            is_id = known_text.isascii() and known_text.isdecimal()
            rows.append((int(known_text) if is_id else _NONE, enqueued, started, completed))
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
            ("name", self._texts("profiling_name")), ("group", self._groups()), ("stack", self._stacks())
        ):  # fmt: skip
            columns[key] = table, index.tobytes()
        columns |= self._sizes()
        columns["count"], columns["wrong"] = len(self.entries), self.wrong
        return columns

    def _integers(self, name: str) -> array[int]:
        values = self.values[name]
        try:
            return array("q", [_NONE if value is None else value for value in values])
        except (TypeError, OverflowError):
            column = array("q", map(_integer, values))
        # Absent and null are how a dump says that something has not happened.
        wrong = sum(map(_NONE.__eq__, column)) - values.count(None) - values.count(_NONE)
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
        return array("d", [value if is_duration else _NONE for value, is_duration in durations])

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
        return _indexed(values, _text)

    def _groups(self) -> tuple[list[tuple[str, str]], array[int]]:
        """Returns (name and description of the distinct groups, the index of each)."""
        values = self.values["process_group"]
        try:
            return _indexed(list(map(tuple, values)), _texts_of_pair)
        except TypeError:
            return _indexed([("", value if type(value) is str else "") for value in values], _texts_of_pair)

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

    def _stacks(self) -> tuple[list[str], array[int]]:
        """Returns (the distinct stacks, a frame a line, the innermost first; the index of each)."""
        stacks = self.values["frames"]
        if not any(stacks):
            return [""], array("I", bytes(4 * len(stacks)))
        # Lists that are shared are looked at once: a dump can name one a million times.
        distinct = {id(stack): stack for stack in stacks}
        # Equal stacks are told by their lines and one comparison: a key of all texts takes twice as long.
        first: dict[object, object] = {}
        equal_ones: dict[int, int] = {}
        for key, stack in distinct.items():
            try:
                other = first.setdefault(tuple(map(_LINE, stack[:_MOST_FRAMES])), stack)
                equal_ones[key] = id(other) if other == stack else key
            except (TypeError, KeyError, IndexError):
                equal_ones[key] = key
        key_of = {key: _stack_key(distinct[key]) for key in {*equal_ones.values()}}
        try:
            return _indexed([key_of[equal_ones[id(stack)]] for stack in stacks], _stack_text)
        except TypeError:
            return [""], array("I", bytes(4 * len(stacks)))


# What `marshal` writes between two lists that each hold one list.
_ONE_TENSOR = b"[\1\0\0\0["


def _index_sizes(values: list[Any]) -> tuple[list[Any], array[int]]:
    """Returns (the sizes of tensors as tuples, the index of each value)."""
    try:
        # One text of all values, cut into them, takes a third of a tuple for each.
        texts = marshal.dumps(values, 2).split(_ONE_TENSOR)
        if len(texts) == len(values) + 1:
            table, index = _indexed(texts[1:], lambda text: (tuple(marshal.loads(b"[" + text)),))
        else:
            table, index = _indexed([tuple(map(tuple, value)) for value in values], _same)
        if {*map(type, chain.from_iterable(chain.from_iterable(table)))} <= {int}:
            return table, index
    except (TypeError, ValueError, EOFError):
        pass
    return _indexed(list(map(_plain_sizes, values)), _same)


def _index_types(values: list[Any]) -> tuple[list[Any], array[int]]:
    """Returns (the dtypes of tensors as text, the index of each value)."""
    try:
        if {*map(len, values)} == {1}:
            return _indexed([value[0] for value in values], _text)
        return _indexed(list(map(tuple, values)), _join_types)
    except (TypeError, KeyError):
        return _indexed(list(map(_plain_types, values)), _join_types)


def _same(value: Any) -> Any:
    return value


def _indexed(values: list[Any], text: Callable[[Any], Any]) -> tuple[list[Any], array[int]]:
    """Returns (the distinct values as `text` gives them, the index of each). Raises TypeError for lists."""
    distinct = dict.fromkeys(values)
    index_of = dict(zip(distinct, range(len(distinct)), strict=True))
    return list(map(text, distinct)), array("I", list(map(index_of.__getitem__, values)))


def _texts_of_pair(pair: tuple[Any, ...]) -> tuple[str, str]:
    return (_text(pair[0]), _text(pair[1])) if len(pair) == 2 else ("", "")


def _plain_sizes(value: object) -> tuple[tuple[int, ...], ...]:
    """Returns the sizes of tensors of which some are not as they should be."""
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_SIZES:
        return ()
    if not all(isinstance(dims, (list, tuple)) and len(dims) <= _MOST_SIZES for dims in value):
        return ()
    return tuple(tuple(map(_integer, dims)) for dims in value)


def _plain_types(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_SIZES:
        return ()
    return tuple(_text(one) for one in value)


def _join_types(types: tuple[str, ...]) -> str:
    return ",".join(_text(one) for one in dict.fromkeys(types))


_LINE, _FRAME = itemgetter("line"), itemgetter("name", "filename", "line")


def _stack_key(stack: object) -> tuple[object, ...]:
    if not isinstance(stack, (list, tuple)):
        return ()
    frames = stack[:_MOST_FRAMES]
    try:
        return tuple(map(_FRAME, frames))
    except (TypeError, KeyError, IndexError):
        return tuple(
            (frame.get("name"), frame.get("filename"), _integer(frame.get("line")))
            for frame in frames
            if isinstance(frame, dict)
        )


def _stack_text(stack: tuple[tuple[object, object, object], ...]) -> str:
    """Returns a frame a line: name, file and line number with tabs between them."""
    lines = (f"{_text(name)}\t{_text(file)}\t{_integer(line)}" for name, file, line in stack)
    return "\n".join(" ".join(line.split("\n")) for line in lines)


def reply_to(data: bytes) -> dict[str, Any] | str:
    """Returns the table of a dump, or in words why it cannot be read."""
    try:
        return read_table(data)
    except DumpError as error:
        return str(error)
    except MemoryError:
        return f"it needs more memory than a dump of {len(data)} bytes may take"
    except RecursionError:
        return "it is nested too deeply"


def _set_limits(size: int) -> None:
    """Bounds the memory and the processor time of this process for a dump of `size` bytes."""
    try:
        import resource
    except ImportError:
        return
    try:
        with open("/proc/self/statm", "rb") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        used = 0
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limits = (
        (resource.RLIMIT_AS, used + _MEMORY_BYTES + _MEMORY_RATIO * size),
        (resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime + _SECONDS + _SECONDS_A_BYTE * size) + 1),
    )
    for limit, value in limits:
        hard = resource.getrlimit(limit)[1]
        try:
            resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
        except (OSError, ValueError):
            continue


def main() -> None:
    """Answers requests until standard input ends."""
    # A dump has no circles, and a collection walks through all of it many times.
    gc.disable()
    receive, send = sys.stdin.buffer, sys.stdout.buffer
    while len(head := receive.read(8)) == 8:
        request = int.from_bytes(head, "little")
        data = receive.read(request & ~OF_FILE)
        answer: dict[str, Any] | str = ""
        if request & OF_FILE:
            try:
                with open(data, "rb") as file:
                    data = file.read()
            except OSError as error:
                answer = f"the file cannot be read: {error.strerror or error}"
        _set_limits(len(data))
        try:
            reply = marshal.dumps(answer or reply_to(data))
        except (MemoryError, ValueError):
            reply = marshal.dumps("its columns need more memory than a dump may take")
        del data, answer
        send.write(len(reply).to_bytes(8, "little"))
        send.write(reply)
        send.flush()


if __name__ == "__main__":
    main()
