"""Opens flight recorder dumps: one file a rank, whose rank is the last number of its name."""

from __future__ import annotations

import os
import re
import stat
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, Severity, printable
from simcore.flight.record import (
    UNSTATED,
    Entries,
    FlightRecord,
    Group,
    GroupStatus,
    Names,
    RankDump,
)
from simcore.ranks import RankSet
from simcore.records import replace
from simcore.units import is_whole, plural
from simcore.unpickling.process import read_tables
from simcore.workload.formats import format_of
from simcore.workload.ignored_files import IgnoredFiles
from simcore.workload.opening import read_beginning, read_file
from simcore.workload.source import GZIP, MOST_BYTES

# The file that makes the columns of a dump, in a process of its own.
COLUMNS = Path(__file__).with_name("columns.py")
_HEAD_BYTES, _FIRST_FILES = 1 << 16, 8
_DIGITS = re.compile(r"(?<![0-9])[0-9]{1,7}(?![0-9])")
# What a name may end with behind the rank.
_ENDINGS = (".gz", ".pkl", ".pickle", ".json", ".txt", ".bin", ".dump")
_KNOWN_VERSIONS = {f"2.{minor}" for minor in range(1, 11)}
_LISTED = 8


def is_dump(head: bytes) -> bool:
    """Returns whether a file begins as a flight recorder dump does."""
    file_format = format_of(head)
    return file_format is not None and file_format.kind == "dump"


def begins_with_pickles(path: str) -> bool:
    """Returns whether any of the first files of a directory begins as a pickle does. Most recordings of other
    kinds do not: then nobody has to look at all of its files for dumps first.
    """
    try:
        for name in sorted(os.listdir(path))[:_FIRST_FILES]:
            file_path = os.path.join(path, name)
            if os.path.isfile(file_path):
                with open(file_path, "rb") as file:
                    if file.read(1) == b"\x80":
                        return True
    except OSError:
        pass
    return False


def find_dumps(path: str, fits: Callable[[bytes], bool] = is_dump) -> tuple[list[str], IgnoredFiles]:
    """Returns (the names of the dumps in a directory, the other files in it). fits: whether a file begins as
    one does.
    """
    names: list[str] = []
    others = IgnoredFiles()
    try:
        listed = sorted(os.listdir(path))
    except OSError:
        return names, others
    for name in listed:
        file_path = os.path.join(path, name)
        head = b""
        try:
            if not stat.S_ISREG(os.stat(file_path).st_mode):
                continue
            with open(file_path, "rb") as file:
                head = file.read(_HEAD_BYTES)
            if head.startswith(GZIP):
                head = read_beginning(file_path)[:_HEAD_BYTES]
        except (OSError, InputError):
            pass
        if fits(head):
            names.append(name)
        else:
            others.add(name, head)
    return names, others


def rank_of_name(name: str) -> int | None:
    """Returns the rank that a file's name ends with: the last number in it; None without one."""
    stem = name
    while stem.endswith(_ENDINGS):
        stem = stem[: stem.rindex(".")]
    sequences = _DIGITS.findall(stem)
    return int(sequences[-1]) if sequences else None


def open_dumps(path: str, names: Sequence[str], others: IgnoredFiles) -> FlightRecord:
    """Returns the record of a directory's dumps. others: its other files.

    Raises InputError where no dump can be read.
    """
    record = _Reader(path)
    if others.count:
        record.say("note", "other-files", others.message(", no dumps"))
    files: list[tuple[int | None, str]] = []
    by_rank: dict[int, str] = {}
    for name in sorted(names, key=lambda name: (len(name), name)):
        rank = rank_of_name(name)
        if rank is not None and by_rank.setdefault(rank, name) is not name:
            record.say_repeated(rank, by_rank[rank], name)
        else:
            files.append((rank, os.path.join(path, name)))
    # By rank, those whose names have none last.
    files.sort(key=lambda file: (file[0] is None, file[0] or 0))
    return record.read(files, [lambda of=file: bytes_or_path(of) for _, file in files])


def bytes_or_path(path: str) -> bytes | str:
    """Returns what is read of a file here, or its path, where the process that unpickles can read it."""
    try:
        with open(path, "rb") as file:
            is_plain = file.read(len(GZIP)) != GZIP and os.fstat(file.fileno()).st_size <= MOST_BYTES
    except OSError:
        is_plain = False
    return path if is_plain else read_file(path)


def read_dump(path: str, data: bytes) -> FlightRecord:
    """Returns the record of a single dump. Raises InputError where it cannot be read."""
    return _Reader(path).read([(rank_of_name(os.path.basename(path)), path)], [lambda: data])


class _Table(dict[Any, int]):
    """A table of values: the index of each, in the order in which they come."""

    def __missing__(self, value: Any) -> int:
        index = self[value] = len(self)
        return index

    def map(self, values: tuple[Sequence[Any], bytes]) -> array[int]:
        """Returns the indices of a column of a dump. values: its own table, and an index into it for each."""
        table, indices = values
        here = array("I", [self[value] for value in table])
        own = array("I", indices)
        # Most dumps come with the same table in the same order.
        if list(here) == list(range(len(here))):
            return own
        return array("I", map(here.__getitem__, own))


class _Reader:
    """Reads dumps into one record."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.diagnostics: list[Diagnostic] = []
        self.errors: list[Diagnostic] = []
        self.groups, self.operations, self.sizes = _Table(), _Table(), _Table()
        self.dtypes, self.stacks = _Table(), _Table()
        self.ranks_of_text: dict[str, tuple[int, ...]] = {}
        # Ranks that use groups whose ranks no dump states.
        self.users: dict[int, set[int]] = {}

    def say(self, severity: Severity, code: str, message: str, file: str = "") -> None:
        self.diagnostics.append(Diagnostic(severity, code, message, file or self.path))

    def say_repeated(self, rank: int, first: str, second: str) -> None:
        message = f"rank {rank} is in {printable(first, 80)} and {printable(second, 80)}: the first is shown"
        self.say("warning", "repeated-rank", message)

    def read(self, files: Sequence[tuple[int | None, str]], readers: Sequence[Any]) -> FlightRecord:
        """Returns the record. files: (rank by its name, path) of each; readers: return their bytes."""
        dumps: dict[int, RankDump] = {}
        unread: dict[int, InputError] = {}

        def data() -> Iterator[bytes | str]:
            for index, reader in enumerate(readers):
                try:
                    yield reader()
                except InputError as error:
                    unread[index] = error
                    yield b""

        tables = read_tables(COLUMNS, data(), len(files))
        for index, ((of_name, path), table) in enumerate(zip(files, tables, strict=True)):
            if index in unread:
                self.errors += unread[index].diagnostics
            elif isinstance(table, str):
                self._refuse(path, table)
            else:
                rank = self._find_rank(of_name, path, table, is_alone=len(files) == 1)
                if rank in dumps:
                    self.say_repeated(rank, *(os.path.basename(name) for name in (dumps[rank].path, path)))
                elif rank is not None:
                    dumps[rank] = self._dump(rank, path, table)
        if not dumps:
            raise InputError(*self.errors[:_LISTED])
        self.diagnostics += [
            replace(one, severity="warning", message=f"{one.message}; left out") for one in self.errors
        ]
        return self._record([dumps[rank] for rank in sorted(dumps)])

    def _find_rank(self, of_name: int | None, path: str, table: dict[str, Any], is_alone: bool) -> int | None:
        """Returns the rank of a dump: that of its name; where it has none, or one that no group has, the only
        rank that all of its groups have. None where neither tells it, but 0 of the only dump.
        """
        listed = [set(self._ranks(text)) for _, _, text in table["groups"] if text.strip("[] ")]
        common = set.intersection(*listed) if listed else set()
        if of_name is not None and (not common or of_name in set.union(*listed)):
            return of_name
        name = printable(os.path.basename(path), 80)
        has = "has no number" if of_name is None else f"has rank {of_name}, which is in none of its groups"
        if len(common) == 1:
            (rank,) = common
            message = f"the name {name} {has}; taken as rank {rank}, which all of its groups have"
            self.say("note", "rank-assumed", message)
            return rank
        rank_text = "taken as rank 0" if is_alone and of_name is None else "left aside"
        if of_name is not None:
            rank_text = "shown as that"
        self.say("warning", "rank-unknown", f"the name {name} {has}, expected its rank; {rank_text}")
        return of_name if of_name is not None else 0 if is_alone else None

    def _ranks(self, text: str) -> tuple[int, ...]:
        """Returns the ranks of a group's text, each text read once."""
        if text not in self.ranks_of_text:
            self.ranks_of_text[text] = _ranks_of(text)
        return self.ranks_of_text[text]

    def _refuse(self, path: str, why: str) -> None:
        message = f"found no dump that can be read: {printable(why)}"
        self.errors.append(Diagnostic("error", "bad-dump", message, path, 1, 1))

    # -- a dump ------------------------------------------------------------------------

    def _dump(self, rank: int, path: str, table: dict[str, Any]) -> RankDump:
        groups = self._groups_of(rank, table)
        own_groups, indices = table["group"]
        for name, description in own_groups:
            if name not in groups:
                groups[name] = self._unlisted_group(rank, description or name)
        group_of = [groups[name] for name, _ in own_groups]
        of_entry = array("I", indices)
        group = array("I", map(group_of.__getitem__, of_entry))

        def column(name: str, typecode: str = "q") -> array[Any]:
            return array(typecode, table[name])

        entries = Entries(
            group, column("collective_seq_id"), column("p2p_seq_id"), column("time_created_ns"),
            column("time_discovered_started_ns"), column("time_discovered_completed_ns"),
            column("duration_ms", "d"), column("timeout_ms"), table["state"], table["is_p2p"],
            table["retired"], self.operations.map(table["name"]),
            self.sizes.map((table["sizes"], table["input_size"])),
            self.sizes.map((table["sizes"], table["output_size"])),
            self.dtypes.map((table["dtypes"], table["input_dtype"])),
            self.dtypes.map((table["dtypes"], table["output_dtype"])),
            self.stacks.map(table["stack"]),
        )  # fmt: skip
        self._say_of(rank, path, table)
        statuses = self._statuses_of(groups, table, entries)
        return RankDump(rank, path, entries, statuses, table["version"])

    def _groups_of(self, rank: int, table: dict[str, Any]) -> dict[str, int]:
        """Returns the index of each group that the dump lists, by its name there."""
        results: dict[str, int] = {}
        ordinals: dict[tuple[str, tuple[int, ...]], int] = {}
        for name, description, ranks_text in sorted(table["groups"], key=lambda group: _by_number(group[0])):
            ranks = self._ranks(ranks_text)
            key = description or name, ranks
            ordinal = ordinals[key] = ordinals.get(key, -1) + 1
            if rank in ranks:
                results[name] = self.groups[Group(*key, ordinal)]
            else:
                # gloo lists no ranks.
                results[name] = self._unlisted_group(rank, key[0])
        return results

    def _unlisted_group(self, rank: int, description: str) -> int:
        """Returns a group whose ranks are not stated: all that use it."""
        index = self.groups[Group(description, ())]
        self.users.setdefault(index, set()).add(rank)
        return index

    def _statuses_of(
        self, groups: dict[str, int], table: dict[str, Any], entries: Entries
    ) -> dict[int, GroupStatus]:
        """Returns the status of each group. The dump has them by an id that only entries tie to a name; the
        others follow where names and ids are equally many, for both count in the order of creation.
        """
        statuses = {sequence: GroupStatus(*last) for sequence, *last in table["statuses"]}
        ids: dict[int, int] = dict(zip(entries.group, array("q", table["pg_id"]), strict=True))
        by_order = dict(
            zip([groups[name] for name in sorted(groups, key=_by_number)], sorted(statuses), strict=False)
        )
        fits = len(groups) == len(statuses) and all(by_order.get(group) == at for group, at in ids.items())
        if fits:
            ids = by_order
        return {group: statuses.get(ids.get(group, UNSTATED), GroupStatus()) for group in groups.values()}

    def _say_of(self, rank: int, path: str, table: dict[str, Any]) -> None:
        """Reports what is odd in a dump."""
        version = table["version"]
        if version not in _KNOWN_VERSIONS:
            known_text = f"version {printable(version, 20)}" if version else "no version"
            self.say(
                "note", "unknown-version", f"{known_text}, expected 2.1 to 2.10; read as these are", path
            )
        lacking = [key for key in ("entries", "pg_config", "pg_status") if key in table["missing"]]
        if lacking:
            message = f"found no {', '.join(lacking)}: what they would say is not known"
            self.say("warning", "missing-key", message, path)
        for key, count in table["wrong"].items():
            message = f"{printable(key)}: {plural(count, 'value')} of another kind than expected; ignored"
            self.say("warning", "bad-value", message, path)

    # -- all of them -------------------------------------------------------------------

    def _record(self, dumps: list[RankDump]) -> FlightRecord:
        from simcore.measured.run import merge_repeated

        groups = [
            group if group.ranks else group._replace(ranks=tuple(sorted(self.users.get(index, ()))))
            for index, group in enumerate(self.groups)
        ]
        names = Names(*(list(table) for table in (
            self.operations, self.sizes, self.dtypes, self.stacks)))  # fmt: skip
        record = FlightRecord(self.path, tuple(dumps), tuple(groups), names, ())
        if len(record.missing):
            noun = "rank" if len(record.missing) == 1 else "ranks"
            has = "has" if len(record.missing) == 1 else "have"
            message = f"{noun} {record.missing.text()} of {record.world} {has} no dump"
            self.say("warning", "ranks-missing", f"{message}: what they did last is not known")
        object_diagnostics = tuple(merge_repeated(self.diagnostics))
        return FlightRecord(self.path, record.dumps, record.groups, names, object_diagnostics)


def _by_number(name: str) -> tuple[bool, int, str]:
    """Returns a key that sorts names that are numbers as numbers, before all others."""
    is_number = is_whole(name, 19)
    return not is_number, int(name) if is_number else 0, name


def _ranks_of(text: str) -> tuple[int, ...]:
    """Returns the ranks of `[0, 4]`, in its order, each once."""
    ranks = (int(sequence) for sequence in _DIGITS.findall(text))
    return tuple(dict.fromkeys(ranks))


def rank_words(ranks: Sequence[int]) -> str:
    """Returns `rank 12`, `ranks 9,14`."""
    return f"rank{'' if len(ranks) == 1 else 's'} {RankSet.of(ranks).text()}"
