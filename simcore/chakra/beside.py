"""Which of ASTRA-sim's other files lie beside a set of execution traces: network, system, groups, memory.

They are told by what is in them, not by their names, from the first 64 KiB of each; nothing is parsed.
"""

from __future__ import annotations

import os
import re
import stat
from math import prod

from simcore.chakra.files import is_trace_name
from simcore.records import NamedTuple

# A folder may have thousands of other files, and a system file has a few hundred bytes.
_MOST_FILES, _HEAD_BYTES = 64, 1 << 16
_SUFFIXES = (".yml", ".yaml", ".json")
_TOPOLOGY = re.compile(rb"^topology\s*:", re.MULTILINE)
# A list in brackets or a line an item.
_NPUS = re.compile(rb"^npus_count\s*:\s*(\[[0-9\s,]{1,200}\]|(?:-\s*[0-9]{1,7}\s*){1,20})", re.MULTILINE)
_SYSTEM = re.compile(
    rb'"(?:all-reduce|all-gather|reduce-scatter|all-to-all)-implementation(?:-custom)?"\s*:\s*\['
)
_MEMORY = re.compile(rb'"memory-type"\s*:\s*"([A-Z_]{1,60})"')
_NO_MEMORY = b"NO_MEMORY_EXPANSION"
_GROUPS = re.compile(rb'\s*\{\s*"[0-9]{1,9}"\s*:\s*\[\s*[0-9]')


class FilesBeside(NamedTuple):
    """The file of each kind as a path, None where there is none. network: of as many NPUs as there are ranks.
    memory: of a remote memory that is there.
    """

    network: str | None = None
    system: str | None = None
    groups: str | None = None
    memory: str | None = None


def files_beside(prefix: str, world: int) -> FilesBeside:
    """The first of each kind by name in the folder of a set of so many ranks, else in the folder above."""
    folder = os.path.dirname(prefix) or os.curdir
    paths: dict[str, str] = {}
    for beside in (folder, os.path.normpath(os.path.join(folder, os.pardir))):
        for path in _candidates(beside):
            kind = _kind_of(path, world)
            if kind is not None:
                paths.setdefault(kind, path)
    return FilesBeside(**paths)


def _candidates(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    some = [name for name in names if name.lower().endswith(_SUFFIXES) and not is_trace_name(name)]
    return [os.path.normpath(os.path.join(folder, name)) for name in some[:_MOST_FILES]]


def _kind_of(path: str, world: int) -> str | None:
    """The field of `FilesBeside` that a file is for."""
    try:
        # A pipe could be waited for for ever.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if not path.lower().endswith(".json"):
        sizes = _NPUS.search(head) if _TOPOLOGY.search(head) else None
        npus = [int(size) for size in re.findall(rb"[0-9]+", sizes[1])] if sizes else []
        return "network" if npus and prod(npus) == world else None
    if _SYSTEM.search(head):
        return "system"
    memory = _MEMORY.search(head)
    if memory is not None:
        return None if memory[1] == _NO_MEMORY else "memory"
    return "groups" if _GROUPS.match(head) else None
