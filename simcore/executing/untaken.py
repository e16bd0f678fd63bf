"""ASTRA-sim's other files that lie beside a set of execution traces and that nobody asked for."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from simcore.chakra.beside import FilesBeside, files_beside
from simcore.cluster import DEFAULT_PRESET
from simcore.diagnostics import Diagnostic, printable
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Parameters, as_flags, flag_of
from simcore.records import replace

if TYPE_CHECKING:
    from simcore.chakra.opening import ExecutionSet

_MOST_COMMAND = 4096
# What asks for them, in the order in which they are listed.
_FILES = ("cluster", "system", "comm_groups", "remote_memory")
# What ASTRA-sim has no factors for.
_OTHERS = ("compute_scale", "comm_scale", "slow_rank")


def untaken(traces: ExecutionSet, parameters: Parameters) -> list[Diagnostic]:
    """A note where files of a network, a system, groups or a remote memory lie beside a set and are not
    taken: which, and the command line that takes them, by ASTRA-sim's rules where they are a network's.
    """
    asked = taken(traces, parameters)
    if asked is None:
        return []
    given = {name: getattr(asked, name) for name in _FILES}
    fields = {name: path for name, path in given.items() if path != getattr(parameters, name)}
    networked = parameters.cluster is not None or bool(parameters.dim)
    folder = os.path.dirname(traces.prefix) or os.curdir
    names = [printable(os.path.relpath(path, folder), 60) for path in fields.values()]
    listed = " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
    are, them = ("are", "them") if len(names) > 1 else ("is", "it")
    is_astra = parameters.dialect == ASTRA_SIM_2
    rules = "ASTRA-sim's rules" if is_astra else "wltui's rules"
    on = f" on {DEFAULT_PRESET}" if not networked else ""
    if asked.dialect != parameters.dialect:
        # Whose own cycles come of the other backend would take these for wrong ones.
        aware = "" if parameters.network == "links" else ", congestion-unaware (--network links: aware)"
        them += f" as ASTRA-sim runs {them}{aware}"
    command = shlex.join(["wltui", traces.path, *as_flags(asked)])
    message = (
        f"{listed} {are} there and not taken: this run is by {rules}{on}; with {them}: "
        f"{printable(command, _MOST_COMMAND)}"
    )
    return [Diagnostic("note", "files-not-taken", message, traces.path)]


def taken(traces: ExecutionSet, parameters: Parameters) -> Parameters | None:
    """The parameters that take the files beside a set too; None where there are none that are not taken."""
    files = _beside(traces)
    fields: dict[str, Any] = {}
    networked = parameters.cluster is not None or bool(parameters.dim)
    if files.network is not None and not networked:
        fields["cluster"] = files.network
    # Lists of a system file are of the dimensions of a network that is known.
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
    if there and parameters.dialect != ASTRA_SIM_2 and not others:
        fields["dialect"] = ASTRA_SIM_2
    return replace(parameters, **fields)


def _beside(traces: ExecutionSet) -> FilesBeside:
    """Looked for once a set: a run is asked for anew with each change of a parameter."""
    known: FilesBeside | None = traces.__dict__.get("_beside")
    if known is None:
        known = traces.__dict__["_beside"] = files_beside(traces.prefix, traces.files[-1].rank + 1)
    return known
