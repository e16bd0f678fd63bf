"""The memory of runs: how much a run takes, how much is free, and the error where that is too little."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from simcore.diagnostics import UsageError
from simcore.units import byte_size, is_whole

# Bytes, measured on CPython 3.11 as the growth of whole `wltui report` processes; a test measures
# them again. An op of a stage: its columns, runs and messages; where collectives queue by priority
# (dialect astra-sim-1) its position in the queues too. An op of a class: its times, and the accounts,
# critical path and slack made from them; only its times where another class has equal ones. A class: its
# actor, groups and links. A rank that is listed: its cell in the graph that is folded.
_STAGE_OP, _QUEUED_STAGE_OP, _CLASS_OP, _EQUAL_CLASS_OP = 40, 700, 100, 22
_CLASS, _LISTED_RANK = 2_900, 1_100
# Smaller needs are not checked: without so much memory nothing else would run either.
_ALWAYS_THERE = 32 * 10**6


def run_bytes(
    stage_ops: int,
    class_ops: int,
    classes: int,
    listed_ranks: int = 0,
    *,
    queued: bool = False,
    has_equal_ranks: bool = False,
) -> int:
    """Returns the peak memory of a run and its report, bytes, without the program itself and the file.

    stage_ops: ops of all stages, each stage once. class_ops: ops that are timed, those of all rank classes.
    listed_ranks: ranks that are listed one by one before they are folded. queued: collectives wait in one
    queue for each dimension (`Program.queued`). has_equal_ranks: most classes are equal ranks that are not
    folded, so that what is made from times is made once for all of them.
    """
    of_stages = stage_ops * (_QUEUED_STAGE_OP if queued else _STAGE_OP)
    of_ops = class_ops * (_EQUAL_CLASS_OP if has_equal_ranks else _CLASS_OP)
    return of_stages + of_ops + classes * _CLASS + listed_ranks * _LISTED_RANK


def check_memory(needed: int, what: str, hint: str) -> None:
    """Raises `UsageError` where `needed` bytes are not free.

    what: what needs them, for the message. hint: what would need less.
    """
    if needed <= _ALWAYS_THERE:
        return
    free = free_bytes()
    if free is not None and needed > free:
        raise UsageError(
            f"the run would need about {byte_size(needed)} of memory and {byte_size(free)} are free: "
            f"{what} ({hint})"
        )


def free_bytes(root: str = "/") -> int | None:
    """Returns the bytes that this process may still take: of the machine, its own limit, its control groups.

    Only Linux states them; None elsewhere. root: where the system's files are.
    """
    free = [*_of_machine(root), *_of_limit(root), *_of_groups(root)]
    return max(min(free), 0) if free else None


def resident_bytes(root: str = "/") -> int:
    """Returns how much of this process is in memory; 0 where the system does not say, as on macOS."""
    kilobytes = _field(os.path.join(root, "proc/self/status"), "VmRSS:")
    return 0 if kilobytes is None else kilobytes * 1024


def _of_machine(root: str) -> Iterator[int]:
    """Yields what the kernel says can be taken without swapping."""
    kilobytes = _field(os.path.join(root, "proc/meminfo"), "MemAvailable:")
    if kilobytes is not None:
        yield kilobytes * 1024


def _of_limit(root: str) -> Iterator[int]:
    """Yields what the limit on the address space (RLIMIT_AS, `ulimit -v`) leaves."""
    # Imported here: only a large run needs it.
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    kilobytes = _field(os.path.join(root, "proc/self/status"), "VmSize:")
    if limit != resource.RLIM_INFINITY and kilobytes is not None:
        yield limit - kilobytes * 1024


# Files of a control group's memory: limit, use, and the word for cached files that can be dropped.
_VERSION_2 = ("memory.max", "memory.current", "inactive_file")
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _of_groups(root: str) -> Iterator[int]:
    """Yields what the limits of the control groups leave: that of this process and all around it."""
    for line in _lines(os.path.join(root, "proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            folder, names = os.path.join(root, "sys/fs/cgroup"), _VERSION_2
        elif "memory" in controllers.split(","):
            folder, names = os.path.join(root, "sys/fs/cgroup/memory"), _VERSION_1
        else:
            continue
        yield from _of_group(folder, *names)
        for part in path.split("/"):
            if part not in ("", ".."):
                folder = os.path.join(folder, part)
                yield from _of_group(folder, *names)


def _of_group(folder: str, limit_name: str, use_name: str, file_name: str) -> Iterator[int]:
    limit = "".join(_lines(os.path.join(folder, limit_name)))
    use = "".join(_lines(os.path.join(folder, use_name)))
    if is_whole(limit, 20) and is_whole(use, 20):
        yield int(limit) - int(use) + (_field(os.path.join(folder, "memory.stat"), file_name) or 0)


def _field(path: str, name: str) -> int | None:
    """Returns the number behind a word at the beginning of a line; None where it is missing."""
    for line in _lines(path):
        columns = line.split()
        if len(columns) > 1 and columns[0] == name and is_whole(columns[1], 20):
            return int(columns[1])
    return None


def _lines(path: str) -> list[str]:
    """Returns the lines of a file of the system; none where it is missing or must not be read."""
    with suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read().splitlines()
    return []
