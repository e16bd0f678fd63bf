"""Which files are the ranks of a set of execution traces: `NAME.RANK.et`, gzip or not, or `NAME.RANK.json`.

It imports nothing of the reader, as every file that is opened is checked here first.
"""

from __future__ import annotations

import os
import re
import stat

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.records import NamedTuple
from simcore.workload.formats.protobuf import is_delimited

_NAME = re.compile(r"(.*?)\.([0-9]{1,7})\.(et|eg|json)(\.gz)?", re.DOTALL)
_LISTED = 8
# The first node of a file is among so many bytes.
_HEAD_BYTES = 1 << 14
_NODES = re.compile(
    rb'"(?:workload_graph|workloadGraph)"|"(?:INVALID|METADATA|MEM_LOAD|MEM_STORE|COMP|COMM_SEND|COMM_RECV|'
    rb'COMM_COLL)_NODE"|"(?:mem_load|mem_store|comp|comm_send|comm_recv|coll_comm)_node"'
)


class SetFiles(NamedTuple):
    """The files of one set."""

    path: str
    """As the user stated it."""
    prefix: str
    """Their names up to the rank."""
    by_rank: dict[int, str]
    """Rank -> file."""


def find_set(path: str, with_json: bool = False) -> SetFiles | None:
    """Returns the set of execution traces that `path` names: a directory with one, a prefix, or one of its
    files.

    with_json: whether a directory may have them in `.json` files alone. None for anything else. Raises
    InputError for a directory of several sets.
    """
    if os.path.isdir(path):
        sets = _find_sets(path, "", with_json)
        if not sets:
            return None
        if len(sets) > 1:
            names = sorted(sets)
            listed = ", ".join(printable(name, 60) for name in names[:_LISTED])
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            message = (
                f"found {len(names)} sets of execution traces: {listed}{more}, expected one: name its prefix"
            )
            raise InputError(Diagnostic("error", "several-sets", message, path))
        prefix, only = next(iter(sets.items()))
        return SetFiles(path, os.path.join(path, prefix), only)
    folder, name = os.path.split(path)
    if os.path.lexists(path):
        match = _NAME.fullmatch(name)
        if match is None and with_json:
            return SetFiles(path, path, {0: path})
        if match is None or (match[3] == "json" and not with_json):
            return None
        name = match[1]
    elif not name:
        return None
    files = _find_sets(folder or ".", name).get(name)
    return None if not files else SetFiles(path, os.path.join(folder, name), files)


def is_trace_name(name: str) -> bool:
    """Returns whether a file name is that of one rank of a set, in the JSON form too."""
    return _NAME.fullmatch(name) is not None


def is_trace_json(data: bytes) -> bool:
    """Returns whether a file that begins with `data` is an execution trace in the JSON form."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    return b'"traceEvents"' not in data and _NODES.search(data) is not None


def is_trace(data: bytes) -> bool:
    """Returns whether a file that begins with `data` is an execution trace, whatever its name: STAGE writes
    protocol buffers into any.
    """
    return is_trace_json(data) or is_delimited(data)


def _begins_as_trace(path: str) -> bool:
    """Returns whether a regular file is an execution trace, gzip or not."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            data = file.read(_HEAD_BYTES)
    except OSError:
        return False
    if data.startswith(b"\x1f\x8b"):
        # Imported here: few of them are packed.
        import zlib

        try:
            data = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _HEAD_BYTES)
        except zlib.error:
            return False
    return is_trace(data)


def _find_sets(folder: str, prefix: str, with_json: bool = False) -> dict[str, dict[int, str]]:
    """Returns prefix -> rank -> file of a folder; with a `prefix` that one alone, of which .json files count
    too, as `with_json` has those that are traces by their content.
    """
    sets: dict[str, dict[int, str]] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return sets
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None or (prefix and match[1] != prefix):
            continue
        # The first .json file of a set tells of all of it.
        first_json = match[3] == "json" and not prefix and match[1] not in sets
        if first_json and not (with_json and _begins_as_trace(os.path.join(folder, name))):
            continue
        # Of wl.0.et and wl.0.et.gz the first is used.
        sets.setdefault(match[1], {}).setdefault(int(match[2]), os.path.join(folder, name))
    return sets
