"""ASTRA-sim's other files in the folder of a set of execution traces that the parameters do not name.

Files of a network, a system, groups and a memory are recognized by their content, not by their names, from
the first 64 KiB of each; nothing is parsed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from simcore.cached_methods import cached_on
from simcore.chakra.files import is_trace_name
from simcore.cluster import DEFAULT_PRESET, ClusterParameters, choose_cluster
from simcore.compat.astra2 import leading_number
from simcore.compat.astra2_system import read_astra_system, read_groups, read_memory
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.executing.execution_result import ZERO, Execution, group_name
from simcore.names import ASTRA_SIM_2
from simcore.parameters import flag_of
from simcore.records import NamedTuple
from simcore.shell_words import join_words

if TYPE_CHECKING:
    from simcore.chakra.opening import ExecutionSet

T = TypeVar("T")
_MOST_COMMAND = 4096
# The parameters that name them, in the order in which they are listed.
_FILES = ("cluster", "system", "comm_groups", "remote_memory")
# Parameters for which ASTRA-sim has no factors.
_OTHERS = ("compute_scale", "comm_scale", "slow_rank")
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
# How the attribute with the group of a collective begins.
_PG_NAME = b"\n\x07pg_name"
_GROUPS = re.compile(rb'\s*\{\s*"[0-9]{1,9}"\s*:\s*\[\s*[0-9]')


def note_untaken_files(setup: Execution) -> list[Diagnostic]:
    """Returns a note on sibling files of a network, a system, groups or a remote memory that are not used.

    It names the files and the command line that uses them, by ASTRA-sim's rules where a network's is among
    them.
    """
    taking = with_sibling_files(setup)
    if taking is None:
        return []
    traces, parameters, new_parameters = setup.opened, setup.parameters, taking.parameters
    paths = {name: getattr(new_parameters, name) for name in _FILES}
    fields = {name: path for name, path in paths.items() if path != getattr(parameters, name)}
    networked = parameters.cluster is not None or bool(parameters.dim)
    folder = os.path.dirname(traces.prefix) or os.curdir
    names = [printable(os.path.relpath(path, folder), 60) for path in fields.values()]
    listed = " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
    are, them = ("are", "them") if len(names) > 1 else ("is", "it")
    is_astra = parameters.dialect == ASTRA_SIM_2
    rules = "ASTRA-sim's rules" if is_astra else "wltui's rules"
    on = f" on {DEFAULT_PRESET}" if not networked else ""
    if new_parameters.dialect != parameters.dialect:
        # The cycles of the other backend differ: users who compare their own would take these for wrong.
        aware = "" if parameters.network == "links" else ", congestion-unaware (--network links: aware)"
        them += f" as ASTRA-sim runs {them}{aware}"
    command = join_words(["wltui", traces.path, *new_parameters.as_flags()])
    message = (
        f"{listed} {are} there and not taken: this run is by {rules}{on}; with {them}: "
        f"{printable(command, _MOST_COMMAND)}"
    )
    brief = f"not taken: {listed}"
    return [Diagnostic("note", "files-not-taken", message, traces.path, brief=brief)]


def with_sibling_files(setup: Execution) -> Execution | None:
    """Returns the run that uses the sibling files of a set, too; None where no file is unused."""
    traces, parameters = setup.opened, setup.parameters
    files = _find_siblings(traces)
    fields: dict[str, Any] = {}
    networked = parameters.cluster is not None or bool(parameters.dim)
    if files.network is not None and not networked:
        fields["cluster"] = files.network
    # Lists of a system file have one entry a dimension, so the network must be known.
    if files.system is not None and parameters.system is None and (networked or "cluster" in fields):
        fields["system"] = files.system
    if files.groups is not None and parameters.comm_groups is None:
        fields["comm_groups"] = files.groups
    if files.memory is not None and parameters.remote_memory is None:
        fields["remote_memory"] = files.memory
    if not fields:
        return None
    others = any(getattr(parameters, name) != flag_of(name).default for name in _OTHERS)
    there = networked or "cluster" in fields
    groups = fields.get("comm_groups", parameters.comm_groups)
    if there and parameters.dialect != ASTRA_SIM_2 and not others and _has_groups_of_astra(traces, groups):
        fields["dialect"] = ASTRA_SIM_2
    return setup.with_changes(**fields)


def _find_siblings(traces: ExecutionSet) -> SiblingFiles:
    """Returns the sibling files. The search runs once a set, though each change of a parameter needs them."""
    return cached_on(
        traces,
        "sibling files",
        lambda: _keep_fitting(_search_folders(traces.prefix, traces.files[-1].rank + 1), traces),
    )


class SiblingFiles(NamedTuple):
    """The file of each kind as a path, None where there is none."""

    network: str | None = None
    """One of as many NPUs as there are ranks."""
    system: str | None = None
    """The system file."""
    groups: str | None = None
    """The file of communicator groups."""
    memory: str | None = None
    """That of an existing remote memory."""


def _keep_fitting(files: SiblingFiles, traces: ExecutionSet) -> SiblingFiles:
    """Returns the files that can be read and fit the set: no others are offered."""
    world = traces.files[-1].rank + 1
    dimensions = 0
    if files.network is not None:
        cluster = _read(lambda: choose_cluster(ClusterParameters(cluster=files.network)).cluster(world))
        dimensions = 0 if cluster is None else len(cluster.dims)
        files = files._replace(network=files.network if dimensions else None)
    system = files.system
    if system is not None and dimensions and _read(lambda: read_astra_system(system, dimensions)) is None:
        files = files._replace(system=None)
    memory = files.memory
    if memory is not None and _read(lambda: read_memory(memory)) is None:
        files = files._replace(memory=None)
    path = files.groups
    if path is None:
        return files
    groups = _read(lambda: read_groups(path, world, with_zero=True))
    fits = groups is not None and all(leading_number(name) in groups for name in _group_names(traces))
    return files if fits else files._replace(groups=None)


def _group_names(traces: ExecutionSet) -> set[str]:
    """Returns the names of the groups of a set that are not all ranks."""

    def find_names() -> set[str]:
        # Nodes have millions of attributes and few groups: one set of attributes of each is decoded.
        set_ids: dict[bytes, int] = {}
        for blobs, set_id in traces.table.attributes.items():
            for blob in blobs:
                if blob.startswith(_PG_NAME):
                    set_ids.setdefault(blob, set_id)
        return {group_name(traces.kinds.attributes(set_id)) for set_id in set_ids.values()} - {"", ZERO}

    return cached_on(traces, "group names", find_names)


def _has_groups_of_astra(traces: ExecutionSet, path: str | None) -> bool:
    """Returns whether ASTRA-sim takes the groups of a set from the file at `path`: without group 0, with
    which it aborts, and with each that is named.
    """
    world, names = traces.files[-1].rank + 1, _group_names(traces)
    if path is None:
        return not names
    groups = _read(lambda: read_groups(path, world))
    return groups is not None and all(leading_number(name) in groups for name in names)


def _read(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (InputError, UsageError):
        return None


def _search_folders(prefix: str, world: int) -> SiblingFiles:
    """Returns the first of each kind by name in the folder of a set of so many ranks, else in the
    folder above.
    """
    folder = os.path.dirname(prefix) or os.curdir
    paths: dict[str, str] = {}
    for directory in (folder, os.path.normpath(os.path.join(folder, os.pardir))):
        for path in _candidates(directory):
            kind = _kind_of(path, world)
            if kind is not None:
                paths.setdefault(kind, path)
    return SiblingFiles(**paths)


def _candidates(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    some = [name for name in names if name.lower().endswith(_SUFFIXES) and not is_trace_name(name)]
    return [os.path.normpath(os.path.join(folder, name)) for name in some[:_MOST_FILES]]


def _kind_of(path: str, world: int) -> str | None:
    """Returns the field of `SiblingFiles` that a file is for."""
    try:
        # A read from a pipe, or from a file of the system without a size, could wait for ever.
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
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
