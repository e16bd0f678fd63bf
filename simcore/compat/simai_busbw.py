"""`busbw:FILE`: SimAI's bus bandwidths as its `busbw.yaml` states them (SimAI-analytical 2025-03).

The reader of SimAI's `busbw.yaml`: bus bandwidths in GiB/s by group and collective.

    a title
    TP:
    allreduce,: 300        # the comma belongs to SimAI's keys; blanks before them do not matter
    ...
    PP:
    busbw: 47.5

It has the name of a YAML file and is none (a title above a mapping): SimAI reads it line by line, and
so does this reader.
"""

from __future__ import annotations

from simcore.cluster import Cluster, TransferShape
from simcore.cluster.files.source import ClusterText, quoted
from simcore.cluster.parsing import BANDWIDTHS, number_within
from simcore.collectives import NAMES
from simcore.compat.simai_network import BusBandwidth, SimaiNetwork
from simcore.diagnostics import Diagnostic, InputError
from simcore.layout import Layout
from simcore.networks.model import Network, NetworkParameters
from simcore.records import NamedTuple
from simcore.workload.model import GroupKind

_COLLECTIVES = ("allreduce", "allgather", "reducescatter", "alltoall")
_FILE_KEYS = {"TP": _COLLECTIVES, "DP": _COLLECTIVES, "EP": _COLLECTIVES, "PP": ("busbw",)}
_SECTIONS = ", ".join(_FILE_KEYS)
_CODE = "busbw-file"
_EMPTY = ("null", "~", "")


class BusbwEntry(NamedTuple):
    """One entry of the file. gibps: None for `null`. location: its (line, column)."""

    gibps: float | None
    location: tuple[int, int]


class BusbwFile:
    """The entries of the file at `path`, by `SECTION.key`. Raises InputError.

    diagnostics: those of entries that mean nothing.
    """

    def __init__(self, path: str) -> None:
        self._source = ClusterText(path)
        self._entries: dict[str, BusbwEntry] = {}
        self._sections: dict[str, tuple[int, int]] = {}
        self._ignored: list[tuple[str, tuple[int, int]]] = []
        self.diagnostics: tuple[Diagnostic, ...] = ()
        self._read()
        self.diagnostics += self._source.note_ignored(self._ignored)
        self._note_unused()

    def get(self, name: str) -> float | None:
        """Returns the GiB/s of `TP.allreduce` or the like; None where the file has none."""
        entry = self._entries.get(name)
        return entry.gibps if entry else None

    def require(self, name: str, what: str) -> float:
        """Returns the GiB/s of an entry. Raises InputError where the file has none; `what`: what needs it."""
        value = self.get(name)
        if value is not None:
            return value
        entry = self._entries.get(name)
        location = entry.location if entry else self._sections.get(name.partition(".")[0])
        actual = f"null for {name}" if entry else f"no {name}"
        message = f"found {actual}, expected its bandwidth in GiB/s: {what}"
        raise self._source.make_error("busbw-missing", message, location)

    def _read(self) -> None:
        section = ""
        for line_number, line in enumerate(self._source.text.split("\n"), 1):
            text = line.partition("#")[0].strip()
            location = (line_number, len(line) - len(line.lstrip()) + 1)
            if line_number == 1 and not self._is_section(text):
                continue
            if not text:
                continue
            if line_number == 1:
                message = f"found {quoted(text)} on line 1, which SimAI takes for a title; read as a section"
                self.diagnostics = (self._make_diagnostic("warning", "busbw-title", message, location),)
            key, colon, value = (part.strip() for part in text.partition(":"))
            if not colon:
                raise self._make_error(
                    f"found {quoted(text)}, expected a section ({_SECTIONS}) or KEY: GIBPS", location
                )
            key = key.rstrip(",").rstrip()
            if self._is_section(text) or (not value and key not in (*_COLLECTIVES, "busbw")):
                section = key
                if section in _FILE_KEYS:
                    self._sections[section] = location
                else:
                    self._ignored.append((section, location))
            elif key in _FILE_KEYS:
                at = (line_number, line.index(value, line.index(":")) + 1)
                raise self._make_error(
                    f"found {quoted(value)} after {key}:, expected its entries below it", at
                )
            elif section in _FILE_KEYS:
                self._add_entry(section, key, value.rstrip(",").rstrip(), location, line)
            elif not section:
                raise self._make_error(
                    f"found {quoted(key)} before any section, expected one of {_SECTIONS}", location
                )
        if not self._sections:
            raise self._make_error(f"found no section, expected {_SECTIONS} after a title", (1, 1))

    @staticmethod
    def _is_section(text: str) -> bool:
        return text.endswith(":") and text[:-1].strip() in _FILE_KEYS

    def _add_entry(self, section: str, key: str, value: str, location: tuple[int, int], line: str) -> None:
        """Adds an entry of a known section; of two with one name the last counts, as in SimAI."""
        name = f"{section}.{key}"
        if key not in _FILE_KEYS[section]:
            self._ignored.append((name, location))
            return
        if name in self._entries:
            message = f"found {name} again, after line {self._entries[name].location[0]}; the last one counts"
            self.diagnostics += (self._make_diagnostic("warning", "busbw-repeated", message, location),)
        gibps = None if value in _EMPTY else number_within(value, BANDWIDTHS)
        if gibps is None and value not in _EMPTY:
            at = (location[0], line.index(value, line.index(":")) + 1)
            expected = "a number from 1e-6 to 1e9 (GiB/s) or null"
            raise self._make_error(f"found {quoted(value)} for {name}, expected {expected}", at)
        self._entries[name] = BusbwEntry(gibps, location)

    def _note_unused(self) -> None:
        """Notes reduce-scatters that differ: SimAI takes their bandwidth from `allgather`."""
        for section in ("TP", "DP", "EP"):
            entry = self._entries.get(f"{section}.reducescatter")
            if entry and entry.gibps is not None and entry.gibps != self.get(f"{section}.allgather"):
                message = f"{section}.reducescatter is ignored: SimAI takes {section}.allgather in its place"
                self.diagnostics += (
                    self._make_diagnostic("note", "cluster-key-ignored", message, entry.location),
                )

    def _make_diagnostic(
        self, severity: str, code: str, message: str, location: tuple[int, int]
    ) -> Diagnostic:
        return Diagnostic(severity, code, message, self._source.path, *location)  # type: ignore[arg-type]

    def _make_error(self, message: str, location: tuple[int, int]) -> InputError:
        return self._source.make_error(_CODE, message, location)


_KEYS = {
    "ALLREDUCE": "allreduce",
    "ALLGATHER": "allgather",
    "REDUCESCATTER": "allgather",
    "ALLTOALL": "alltoall",
}


class Busbw(SimaiNetwork):
    """The network of one run; satisfies `Network`."""

    name = "busbw"

    def __init__(self, parameters: NetworkParameters, layout: Layout) -> None:
        super().__init__(parameters, layout)
        self.path = parameters.argument
        self._file = BusbwFile(self.path)
        self.pp_gibps = self._file.get("PP.busbw")

    def bandwidth(self, kind: GroupKind, collective: str, size: int) -> BusBandwidth:
        entry, reason = self._entry(kind, _KEYS[collective])
        if entry is None:
            return BusBandwidth(0.0, reason)
        what = (
            f"{NAMES[collective]} of {kind} groups needs it, and SimAI's own time wraps to 2^64 ns without it"
        )
        return BusBandwidth(self._file.require(entry, what), f"{entry} of the file")

    def _entry(self, kind: GroupKind, key: str) -> tuple[str | None, str]:
        """Returns the entry that SimAI takes; None, and why, where it takes none."""
        tp, server = self.layout.tp, self.server
        if kind == "tp":
            return f"TP.{key}", ""
        if kind == "ep":
            if tp > server:
                return None, f"it takes no bandwidth where tp {tp} is above the {server} GPUs of a server"
            names = {"allreduce": "TP.allreduce", "alltoall": "EP.alltoall"}
            return names.get(key), "it takes no bandwidth for all-gathers and reduce-scatters of ep groups"
        if self.layout.world == server and tp <= server:
            return (
                "TP.allreduce" if key == "allreduce" else None
            ), "inside a single server it takes a bandwidth for all-reduce only"
        section = "DP" if kind == "dp" else "EP"
        return f"{section}.{'allreduce' if key == 'allreduce' else 'allgather'}", ""

    def transfer_gibps(self, shape: TransferShape) -> float:
        return self._file.require("PP.busbw", "a transfer between pipeline stages needs it")

    def words(self) -> str:
        return f"bus bandwidths of SimAI, servers of {self.server} GPUs"

    def assumptions(self) -> list[Diagnostic]:
        return list(self._file.diagnostics)


def opened(parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
    """Returns the network of a run: see `NetworkModel`; of what nccl-tests measured, one of its figures."""
    from simcore.collectives.nccl_tests import is_measured

    if is_measured(parameters.argument):
        from simcore.networks.measured import MeasuredNetwork

        return MeasuredNetwork(parameters, layout)
    return Busbw(parameters, layout)
