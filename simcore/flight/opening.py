"""Opens flight recorder dumps: one file a rank, whose rank is the last number of its name."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic, printable
from simcore.flight.record import (
    UNSTATED,
    Entries,
    FlightRecord,
    Group,
    GroupStatus,
    Names,
    RankDump,
)
from simcore.units import is_whole
from simcore.unpickling.files import FileReader, numbers_in, rank_of_name
from simcore.workload.ignored_files import IgnoredFiles

# The file that makes the columns of a dump, in a process of its own.
COLUMNS = Path(__file__).with_name("columns.py")
_KNOWN_VERSIONS = {f"2.{minor}" for minor in range(1, 11)}


def open_dumps(path: str, names: Sequence[str], others: IgnoredFiles) -> FlightRecord:
    """Returns the record of a directory's dumps. others: its other files.

    Raises InputError where no dump can be read.
    """
    reader = _Reader(path)
    if others.count:
        reader.say("note", "other-files", others.message(", no dumps"))
    return reader.read(reader.files_by_rank(names))


def read_dump(path: str, data: bytes) -> FlightRecord:
    """Returns the record of a single dump. Raises InputError where it cannot be read."""
    return _Reader(path).read([(rank_of_name(os.path.basename(path)), path)], data)


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


class _Reader(FileReader):
    """Reads dumps into one record."""

    columns = COLUMNS

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.groups, self.operations, self.sizes = _Table(), _Table(), _Table()
        self.dtypes, self.stacks = _Table(), _Table()
        self.ranks_of_text: dict[str, tuple[int, ...]] = {}
        # Ranks that use groups whose ranks no dump states.
        self.users: dict[int, set[int]] = {}

    def read(self, files: Sequence[tuple[int | None, str]], data: bytes | None = None) -> FlightRecord:
        """Returns the record. files, data: see `tables_of`."""
        dumps: dict[int, RankDump] = {}
        for of_name, path, table in self.tables_of(files, data):
            rank = self._find_rank(of_name, path, table, is_alone=len(files) == 1)
            if rank in dumps:
                self.say_repeated(rank, *(os.path.basename(name) for name in (dumps[rank].path, path)))
            elif rank is not None:
                dumps[rank] = self._dump(rank, path, table)
        self.report_unread(has_read=bool(dumps))
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

    def refuse(self, path: str, why: str) -> None:
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
        self.say_wrong(path, table["wrong"])

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
    return tuple(dict.fromkeys(numbers_in(text)))
