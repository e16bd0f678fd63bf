"""What nccl-tests measured: its table as text, or its JSON (`-J`).

    # Collective test starting: all_reduce_perf
    #  Rank  0 Group  0 Pid   6899 on     node-1 device  0 [0000:04:00] NVIDIA H100 80GB HBM3
    #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw ...
        33554432       8388608     float     sum      -1   195.40  171.72  300.51       0   195.40  171.73 ...

A file may have the tables of several tests. Sizes are bytes of the whole buffer, as nccl-tests counts them.
NCCL's inspector plugin states of each call of a job the same, an object of JSON a line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from math import ceil, floor, isfinite
from statistics import median
from typing import Any

from simcore.collectives.pricing import bus_bandwidth
from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.records import NamedTuple, Struct
from simcore.workload.formats import head_of
from simcore.workload.formats.recordings import is_nccl_tests
from simcore.workload.opening import read_beginning, read_file

# With NCCL_DEBUG=INFO a run of a thousand ranks prints some 10 MB.
_MOST_BYTES = 1 << 26
_MOST_RANKS = 1 << 24
_MOST_SIZE = 1 << 62
# The collectives of NCCL's inspector: its test, and whether its bytes are those of one rank of the buffer.
_INSPECTED = {
    "AllReduce": ("all_reduce", False),
    "AllGather": ("all_gather", True),
    "ReduceScatter": ("reduce_scatter", True),
}
_COLLECTIVE_OF = {
    "all_reduce": "ALLREDUCE",
    "all_gather": "ALLGATHER",
    "reduce_scatter": "REDUCESCATTER",
    "alltoall": "ALLTOALL",
    "sendrecv": "SENDRECV",
}
_FITTING = ", ".join(f"{name}_perf" for name in _COLLECTIVE_OF)
# Longer names first: `reduce` is a part of `all_reduce` and of `reduce_scatter`.
_TEST = re.compile(
    r"(?<![A-Za-z])(all_reduce|all_gather|reduce_scatter|alltoallv?|sendrecv|broadcast|gather|scatter|reduce"
    r"|hypercube)_perf"
)
_FILE_NAME = re.compile(
    r"(?i)all[-_ ]?reduce|all[-_ ]?gather|reduce[-_ ]?scatter|all[-_ ]?to[-_ ]?all|send[-_ ]?recv"
)
_RANK = re.compile(
    r"\bRank\s{1,9}(\d{1,8})(?:\s{1,9}Group\s{1,9}(\d{1,8}))?\s{1,9}Pid\s{1,9}\d{1,12} on"
    r"\s{1,99}(\S{1,255}) device\b"
)
# What mpirun (`[1,0]<stdout>:`) and srun (`0: `) put before each line.
_LABEL = re.compile(r"\s{0,9}(?:\[[0-9,]{1,20}\]<std\w{2,4}>:|[0-9]{1,8}:(?=\s))")
_HEADING = ("size", "count", "type")
_TIMES = ("time", "cputime")


class MeasuredTime(NamedTuple):
    """A size of a table."""

    size: int
    """Bytes of the whole buffer."""
    ns: float
    """The time of one call, out of place where both were measured; of several lines the median."""
    line: int | None
    """Its line in the file."""


class MeasuredCollective(Struct, frozen=True):
    """A table: one collective of one group of ranks."""

    path: str
    collective: str
    """As in a workload."""
    ranks: int | None
    """The members of the group, None where the file does not tell."""
    hosts: int | None
    """How many hosts they are on, None where the file does not tell."""
    times: tuple[MeasuredTime, ...]
    """By size, each once."""
    line: int | None
    """The line of its heading."""

    @property
    def test(self) -> str:
        """The name of the test: `all_reduce_perf`."""
        name = next(name for name, collective in _COLLECTIVE_OF.items() if collective == self.collective)
        return f"{name}_perf"

    def words(self) -> str:
        """Returns what was measured: `all_reduce_perf, 16 ranks on 2 hosts`."""
        where = f" on {self.hosts} host{'' if self.hosts == 1 else 's'}" if self.hosts is not None else ""
        return f"{self.test}, {'ranks unknown' if self.ranks is None else f'{self.ranks} ranks{where}'}"

    def ns_of(self, size: int) -> float:
        """Returns the time of `size` bytes: linear between measured sizes, that of the smallest below it, and
        of the largest's bandwidth above it.
        """
        before = self.times[0]
        if size <= before.size:
            return before.ns
        for after in self.times[1:]:
            if size <= after.size:
                share = (size - before.size) / (after.size - before.size)
                return before.ns + share * (after.ns - before.ns)
            before = after
        return before.ns * size / before.size

    def busbw_of(self, size: int, ranks: int | None = None) -> float:
        """Returns busbw at `size` bytes, GB/s. ranks: where the file does not tell how many there were."""
        members = self.ranks or ranks or 2
        return bus_bandwidth(self.collective, members, 1, 1) * size / self.ns_of(size)


class _Row(NamedTuple):
    """A line of a table, with what it states."""

    size: int
    us: float
    algbw: float
    busbw: float
    line: int | None


class _Table:
    """A table that is being read."""

    def __init__(self, test: str | None, line: int | None) -> None:
        self.test, self.line = test, line
        self.rows: list[_Row] = []
        self.members: dict[str, set[int]] = {}
        self.host_names: set[str] = set()
        # Where they are stated, not listed.
        self.ranks = self.hosts = 0

    def add_rank(self, rank: int, group: str, host: str) -> None:
        """Adds a rank of a group, as lines above the heading state them."""
        self.members.setdefault(group, set()).add(rank)
        self.host_names.add(host)


def is_measured(path: str) -> bool:
    """Returns whether the file at `path` is what nccl-tests prints; False for one that cannot be read."""
    try:
        return is_nccl_tests(head_of(read_beginning(path)))
    except InputError:
        return False


def read_measured(path: str, collective: str | None = None) -> tuple[MeasuredCollective, ...]:
    """Returns the tables of the file at `path`. collective: that of tables that do not say which they are.

    Raises InputError for a file that is none, and one without a table of a collective that is priced here.
    """
    text = read_file(path, _MOST_BYTES).decode("utf-8-sig", "replace")
    if text.lstrip()[:1] != "{":
        tables = _read_text(path, text)
    else:
        tables = _read_inspector(text) if '"coll_perf"' in text else _read_json(path, text)
    if not tables:
        raise _error(
            path,
            "found no table of nccl-tests, expected a heading `# size count type redop root time algbw busbw "
            "...` with its lines, the JSON of -J, or lines of NCCL's inspector",
        )
    filled = [table for table in tables if table.rows]
    if not filled:
        raise _error(path, "found a table without the line of a size, expected some", tables[0].line)
    fallback = collective or _collective_of_name(path)
    measured = tuple(one for table in filled if (one := _finish(path, table, fallback)) is not None)
    if not measured:
        test = f"{filled[0].test}_perf"
        raise _error(path, f"found measurements of {test}, expected one of {_FITTING}", filled[0].line)
    return measured


def _error(path: str, message: str, line: int | None = None) -> InputError:
    return InputError(Diagnostic("error", "nccl-tests", message, path, line))


def _collective_of_name(path: str) -> str | None:
    """Returns the collective in a file's name: `all_reduce_64.txt`."""
    match = _FILE_NAME.search(os.path.basename(path))
    return None if match is None else re.sub(r"[-_ ]", "", match[0]).upper()


def _read_text(path: str, text: str) -> list[_Table]:
    tables: list[_Table] = []
    coming = _Table(None, None)
    columns: dict[str, list[int]] = {}
    width = 0
    for line_number, line in enumerate(text.splitlines(), 1):
        label = _LABEL.match(line)
        if label is not None:
            line = line[label.end() :]
        test = _TEST.search(line)
        if test is not None and "concluded" not in line:
            coming.test = test[1]
        if "Using devices" in line:
            coming.members, coming.host_names = {}, set()
        rank = _RANK.search(line)
        if rank is not None:
            coming.add_rank(int(rank[1]), rank[2] or "0", rank[3])
            continue
        words = line.lstrip("# \t").split()
        if tuple(words[:3]) == _HEADING and "busbw" in words:
            columns = {}
            for index, word in enumerate(words):
                columns.setdefault("time" if word in _TIMES else word, []).append(index)
            width = max(max(at) for name, at in columns.items() if name != "timestamp")
            coming.line = line_number
            tables.append(coming)
            last, coming = coming, _Table(coming.test, None)
            coming.members, coming.host_names = last.members, last.host_names
        elif (
            tables
            and "time" in columns
            and len(words) > width
            and words[0].isdecimal()
            and words[1].isdecimal()
        ):
            row = _read_row(path, words, columns, line_number)
            if row is not None:
                tables[-1].rows.append(row)
    return tables


def _read_row(path: str, words: Sequence[str], columns: dict[str, list[int]], line: int) -> _Row | None:
    """Returns a line of a table, of the first of its times that is one. Raises InputError for a cell that is
    no number.
    """
    for at in zip(columns["time"], columns["algbw"], columns["busbw"], strict=False):
        cells = [words[index] for index in at]
        if cells[0] == "N/A":
            continue
        values = [_parse_number(cell) for cell in cells]
        if None in values:
            cell = next(cell for cell, value in zip(cells, values, strict=True) if value is None)
            message = f"found `{printable(cell, 40)}`, expected a time in us, algbw and busbw in GB/s"
            raise _error(path, message, line)
        us, algbw, busbw = values
        return _row(int(words[0][:20]), us or 0.0, algbw or 0.0, busbw or 0.0, line)
    return None


def _row(size: int, us: float, algbw: float, busbw: float, line: int | None) -> _Row | None:
    """Returns a line of a size; None for no bytes, or no time."""
    return _Row(size, us, algbw, busbw, line) if 0 < size <= _MOST_SIZE and us > 0 else None


def _parse_number(text: object) -> float | None:
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if isfinite(value) and 0 <= value < 1e15 else None


def _read_json(path: str, text: str) -> list[_Table]:
    import json

    try:
        values = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise _error(path, f"this is not JSON: {printable(str(error), 80)}", line) from None
    except RecursionError:
        raise _error(path, "found too many nested lists, expected the JSON of -J") from None
    if not isinstance(values, dict) or not isinstance(values.get("results"), list):
        raise _error(path, "found no list `results`, expected the JSON of -J")
    arguments = values.get("args")
    test = _TEST.search(" ".join(map(str, arguments))) if isinstance(arguments, list) else None
    table = _Table(None if test is None else test[1], None)
    _read_devices(table, values)
    for index, result in enumerate(values["results"]):
        row = _read_result(path, index, result)
        if row is not None:
            table.rows.append(row)
    return [table]


def _read_inspector(text: str) -> list[_Table]:
    """Returns the calls of NCCL's inspector, a table for each collective of each size of group; a line that
    is damaged, or not there as a whole yet, is passed over.
    """
    import json

    tables: dict[tuple[str, int, int], _Table] = {}
    for line_number, line in enumerate(text.splitlines(), 1):
        if '"coll_perf"' not in line:
            continue
        try:
            call = json.loads(line)
            header, values = call["header"], call["coll_perf"]
            test, is_of_rank = _INSPECTED[values["coll"]]
            ranks, hosts = int(header["n_ranks"]), int(header.get("nnodes") or 0)
            size = int(values["coll_msg_size_bytes"]) * (ranks if is_of_rank else 1)
            us = _parse_number(values["coll_exec_time_us"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            continue
        row = None if us is None else _row(size, us, 0.0, 0.0, line_number)
        if row is not None and 1 < ranks <= _MOST_RANKS:
            table = tables.setdefault((test, ranks, hosts), _Table(test, line_number))
            table.ranks, table.hosts = ranks, hosts
            table.rows.append(row)
    return list(tables.values())


def _read_devices(table: _Table, values: dict[str, Any]) -> None:
    """Takes the ranks of the JSON. Of a process with several devices it names the first alone."""
    config = values.get("config")
    if not isinstance(config, dict):
        config = {}
    devices = config.get("devices", values.get("devices"))
    if not isinstance(devices, list):
        return
    named_devices = [device for device in devices if isinstance(device, dict)]
    each = 1
    for key in ("nthreads", "ngpus"):
        count = config.get(key)
        each *= count if isinstance(count, int) and 0 < count <= _MOST_RANKS else 1
    ranks = [device.get("rank") for device in named_devices]
    # Where devices of one process are all named, their ranks are neighbours.
    each = 1 if len(ranks) > 1 and ranks[:2] == [0, 1] else each
    if not 0 < len(named_devices) * each <= _MOST_RANKS:
        return
    for rank, device in enumerate(named_devices):
        group = str(device.get("group", 0))
        for of_device in range(each):
            table.add_rank(rank * each + of_device, group, str(device.get("hostname", "")))


def _read_result(path: str, index: int, result: Any) -> _Row | None:
    where = f"results[{index}]"
    if not isinstance(result, dict) or not isinstance(result.get("size"), int):
        raise _error(path, f"found {where} without a whole number `size`, expected the JSON of -J")
    times = result.get("out_of_place") or result.get("in_place")
    if not isinstance(times, dict):
        raise _error(path, f"found {where} with neither out_of_place nor in_place, expected one of them")
    values = [_parse_number(times.get(key)) for key in ("alg_bw", "bus_bw")]
    us = _parse_number(times.get("time", times.get("cpu_time")))
    if us is None or None in values:
        raise _error(path, f"found {where} without numbers time, alg_bw and bus_bw, expected them")
    return _row(result["size"], us, values[0] or 0.0, values[1] or 0.0, None)


def _finish(path: str, table: _Table, fallback: str | None) -> MeasuredCollective | None:
    """Returns a table that was read; None for a test that is not priced here. Raises InputError where it says
    neither which it is nor could it be told by the file's name, and for a group of one.
    """
    collective = fallback if table.test is None else _COLLECTIVE_OF.get(table.test)
    if collective is None and table.test is None:
        raise _error(
            path,
            "found a table that does not say which test it is of, expected a line such as `# Collective test "
            "starting: all_reduce_perf` above it, or a file named all_reduce.txt",
            table.line,
        )
    if collective is None:
        return None
    ranks = table.ranks or max(map(len, table.members.values()), default=0)
    ranks = ranks or _ranks_by_ratio(collective, table.rows) or 0
    if ranks == 1:
        raise _error(path, "found measurements of 1 rank, expected a group of 2 or more", table.line)
    by_size: dict[int, list[_Row]] = {}
    for row in table.rows:
        by_size.setdefault(row.size, []).append(row)
    times = tuple(
        MeasuredTime(size, 1000 * median(row.us for row in rows), rows[0].line)
        for size, rows in sorted(by_size.items())
    )
    hosts = table.hosts or len(table.host_names)
    return MeasuredCollective(path, collective, ranks or None, hosts or None, times, table.line)


def _ranks_by_ratio(collective: str, rows: Sequence[_Row]) -> int | None:
    """Returns the one number of ranks that gives the ratio of busbw to algbw of all lines; None where several
    do, or none.
    """
    largest = max(rows, key=lambda row: row.algbw)
    if collective == "SENDRECV" or not largest.algbw:
        return None
    times = 2 if collective == "ALLREDUCE" else 1
    # Half a unit of the last digit that is printed.
    slack = 0.5 * 10 ** -_digits(largest)
    if largest.algbw <= slack:
        return None
    # (n-1)/n lies between the two.
    low, high = ((largest.busbw + sign * slack) / (largest.algbw - sign * slack) / times for sign in (-1, 1))
    if high >= 1:
        return None
    fitting = range(max(2, ceil(1 / (1 - low))), floor(1 / (1 - high)) + 1)
    return fitting[0] if len(fitting) == 1 else None


def _digits(row: _Row) -> int:
    """Returns how many digits behind the point nccl-tests prints of a bandwidth so large."""
    largest = max(row.algbw, row.busbw)
    return 2 if largest < 1000 else 1 if largest < 10000 else 0
