"""What SimAI's two bus-bandwidth models share: the formula of a collective, and its group sizes.

SimAI-analytical, versions 2025-03 to 1.7: a collective of S bytes over n ranks takes
floor(S/2^30 / (r*B) * 1e9 * k * (n-1)/n) ns, B a bus bandwidth in GiB/s, r a ratio, r*B a product
of single precision, k = 2 for all-reduce and 1 for all others. Figures in GiB/s stay in this room.

What SimAI-analytical itself does with a file: where it crashes, hangs or prints nonsense. wltui reads all
these files, and users who compare its figures with SimAI's need the reason of the difference.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from struct import pack, unpack

from simcore.cluster import TransferShape
from simcore.cluster.parsing import BANDWIDTHS
from simcore.collectives import NAMES
from simcore.collectives.exact import scaled
from simcore.diagnostics import Diagnostic, InputError, UsageError, did_you_mean, printable
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.names import GPU_TYPES, NIC_TYPES
from simcore.networks.model import GroupCollective, NetworkParameters
from simcore.program.blocks import Structure
from simcore.records import NamedTuple
from simcore.units import group_digits, plain_number, plural
from simcore.workload import Workload
from simcore.workload.model import PHASES, GroupKind, Phase
from simcore.workload.policies import TRANSFORMER

# SimAI keeps the time of a cell in 32 bits with a sign.
_TOO_LONG_NS = 2**31


def layers_per_stage(workload: Workload, structure: Structure) -> int:
    """Returns `vpp` of the header, else the layers that a stage has by its rows, at least 1."""
    if workload.header.vpp:
        return workload.header.vpp
    return max((1, *structure.layers_per_block[:1]))


def accumulations(workload: Workload, structure: Structure) -> int:
    """Returns `ga` of the header, else the micro-batches of the rows, at least 1."""
    return workload.header.ga or max(1, len(structure.blocks))


def estimated_rows(workload: Workload) -> int:
    """Returns how many rows SimAI's estimate covers: as many as line 2 states, if they are there."""
    declared = workload.declared_rows
    return len(workload) if declared is None else min(declared, len(workload))


def simai_notes(workload: Workload, structure: Structure) -> list[Diagnostic]:
    """Returns a note for each reason why SimAI itself fails on a file, and what the estimate does instead.

    An op table, or a policy that SimAI does not know, has one note: SimAI reads no further.
    """
    header = workload.header
    notes = []

    def note(message: str, line: int | None = None) -> None:
        notes.append(Diagnostic("note", "simai-fails", f"SimAI itself {message}", workload.path, line))

    if workload.format == "op-table":
        note("does not read op tables")
        return notes
    if workload.policy.upper() not in TRANSFORMER:
        note(f"crashes on policy {printable(workload.policy, 40)}", header.line)
        return notes
    keys = {"model_parallel_NPU_group": header.tp, "ep": header.ep, "pp": header.pp}
    missing = [key for key, value in keys.items() if value is None]
    if missing:
        note(f"crashes on this file: the header has no {', '.join(missing)}", header.line)
    for key, value, fallback in (
        ("vpp", header.vpp, plural(layers_per_stage(workload, structure), "layer") + " a stage"),
        ("ga", header.ga, plural(accumulations(workload, structure), "micro-batch")),
    ):
        if not value and not missing:
            actual = "no" if value is None else "0 for"
            note(
                f"prints Inf for bubble and total: {actual} {key} in the header; {fallback} taken",
                header.line,
            )
    comment = next(
        (diagnostic for diagnostic in workload.diagnostics if _stops_simai(workload, diagnostic)), None
    )
    if comment is not None:
        what = "a comment" if comment.code == "comment" else "a number with a point or exponent"
        note(f"prints nothing for this file and ends with status 0: {what}", comment.line)
    columns = [workload.cells(phase).compute_ns[: estimated_rows(workload)] for phase in PHASES]
    longest = max(max(column, default=0) for column in columns)
    if longest >= _TOO_LONG_NS:
        row = min(column.index(longest) for column in columns if longest in column)
        note(f"hangs on this file: a cell of {longest} ns, 2^31 or more", workload.line[row])
    declared = workload.declared_rows
    if declared is not None and declared > len(workload):
        note(f"counts the last row {plural(declared - len(workload), 'time')} more")
    return notes


def _stops_simai(workload: Workload, diagnostic: Diagnostic) -> bool:
    """Returns whether SimAI stops reading at a diagnostic's location."""
    return diagnostic.code == "comment" or (
        diagnostic.code == "float-value" and diagnostic.line != workload.header.line
    )


# A forward collective of 1 to 4095 bytes counts as one of 4096.
_LEAST_FORWARD_BYTES = 4096
_LIFTING_POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
_OVERLAPS = {"dp": 0.0, "tp": 0.0, "ep": 0.0, "pp": 1.0}


def simai_bandwidths(parameters: NetworkParameters) -> dict[str, float]:
    """Returns the GiB/s of NVLink (`nvlink`) and of one NIC (`nic`): as stated, else those of the type.

    Raises UsageError for a type that SimAI does not know and an impossible figure.
    """
    figures = {}
    for field, of_type, types in (("nvlink", "gpu_type", GPU_TYPES), ("nic", "nic_type", NIC_TYPES)):
        name = getattr(parameters, of_type)
        if name not in types:
            flag = "--" + of_type.replace("_", "-")
            raise UsageError(f"{flag} {printable(name, 60)}: one of {', '.join(types)} is expected"
                             f"{did_you_mean(name, types)}")  # fmt: skip
        value = getattr(parameters, field)
        if value is not None and not BANDWIDTHS[0] <= value <= BANDWIDTHS[1]:
            raise UsageError(f"--{field} {value!r}: a number from 1e-6 to 1e9 (GiB/s) is expected")
        figures[field] = types[name] if value is None else value
    return figures


def overlap_ratios(texts: Sequence[str]) -> dict[str, float]:
    """Returns the share of communication that SimAI's estimate takes as hidden: `--overlap dp=0.5,tp=0.3`.

    By default 0, and 1 for pp. Raises UsageError.
    """
    ratios = dict(_OVERLAPS)
    for text in ",".join(texts).split(",") if texts else ():
        kind, _, value_text = text.partition("=")
        value = plain_number(value_text)
        if kind not in ratios or value is None or value > 1:
            raise UsageError(
                f"--overlap {printable(text, 60)}: KIND=RATIO is expected, KIND one of "
                f"{', '.join(ratios)}, RATIO from 0 to 1, for example dp=0.5,tp=0.3"
            )
        ratios[kind] = value
    return ratios


def least_forward_bytes(workload: Workload) -> int:
    """Returns the bytes that a smaller forward collective counts as; 0 where SimAI has no such rule."""
    return _LEAST_FORWARD_BYTES if workload.policy.upper() == _LIFTING_POLICY else 0


def priced_bytes(workload: Workload, phase: Phase, size: int) -> int:
    """Returns the bytes by which SimAI prices a cell's collective of `size` bytes."""
    return max(size, least_forward_bytes(workload)) if phase == "fwd" and size else size


class BusBandwidth(NamedTuple):
    """The bandwidth of a collective."""

    gibps: float
    """B; 0 where SimAI has none, and the collective costs nothing."""
    origin: str
    """Where B comes from, in words."""
    ratio: float = 1.0
    """r."""
    ratio_origin: str = ""
    """Where r comes from, in words."""


def single(value: float) -> float:
    """Returns the nearest number of single precision, as SimAI stores its figures."""
    nearest: float = unpack("<f", pack("<f", value))[0]
    return nearest


def estimate_kind(phase: Phase, group: GroupKind) -> GroupKind:
    """Returns the group by which SimAI itself prices a cell: it knows _EP forward and _DP_EP of weights."""
    if phase == "wg":
        return "dp_ep" if group == "dp_ep" else "dp"
    return "ep" if group == "ep" else "tp"


class SimaiNetwork(ABC):
    """Prices by group kind and size alone; satisfies `Network`. Positions play no part."""

    name: str
    """The name of the model."""
    pp_gibps: float | None = None
    """What SimAI's estimate uses for transfers, None where it has nothing."""

    def __init__(self, parameters: NetworkParameters, layout: Layout) -> None:
        self.layout = layout
        self.server = parameters.gpus_per_server
        self.overlap = overlap_ratios(parameters.overlap)
        self._cache: dict[tuple[GroupKind, str, int], int] = {}
        self._free: dict[tuple[GroupKind, str], Diagnostic] = {}

    @abstractmethod
    def bandwidth(self, kind: GroupKind, collective: str, size: int) -> BusBandwidth:
        """Returns the bandwidth of a collective of `size` bytes in a group of more than one.

        Raises InputError or UsageError where the model needs a bandwidth that is missing.
        """

    @abstractmethod
    def transfer_gibps(self, shape: TransferShape) -> float:
        """Returns the GiB/s of a pipeline transfer. Raises InputError where there is none."""

    @abstractmethod
    def words(self) -> str:
        """Returns what the prices depend on, on one line."""

    def fixed_ns(self, kind: GroupKind, size: int) -> int | None:
        """Returns the time of a small message where the model has one that no bandwidth gives, ns."""
        return None

    def assumptions(self) -> list[Diagnostic]:
        """Returns notes on what the model assumes."""
        return []

    def members(self, kind: GroupKind) -> int:
        """Returns how many ranks SimAI counts in a group: an expert shard has max(1, floor(dp/ep)) replicas.

        The groups of a model have the sizes of its layout: SimAI knows no experts that are whole on tp.
        Raises UsageError for a kind that it does not know.
        """
        layout = self.layout
        if kind == "all":
            raise UsageError(
                f"--network {self.name}: SimAI has no bandwidth for a collective over all ranks, "
                "only for groups tp, ep, dp and dp_ep; analytical has one"
            )
        if kind != "dp_ep":
            return layout.group_size(kind)
        return layout.group_size("dp_ep") if layout.whole_experts else max(1, layout.dp // layout.ep)

    def ns(self, kind: GroupKind, collective: str, size: int) -> int:
        """Returns the ns of a collective of `size` bytes in all; no bytes and a group of one are free.

        Raises InputError or UsageError as `bandwidth` does.
        """
        key = (kind, collective, size)
        if key not in self._cache:
            self._cache[key] = self._ns(kind, collective, size)
        return self._cache[key]

    def _ns(self, kind: GroupKind, collective: str, size: int) -> int:
        members = self.members(kind)
        if members == 1 or not size:
            return 0
        constant_ns = self.fixed_ns(kind, size)
        if constant_ns is not None:
            return constant_ns
        bus_bandwidth = self.bandwidth(kind, collective, size)
        if not bus_bandwidth.gibps:
            return 0
        bandwidth = single(single(bus_bandwidth.ratio) * single(bus_bandwidth.gibps))
        factor = 2 if collective == "ALLREDUCE" else 1
        # The order of the operations is part of the figure.
        return math.floor(size / 2**30 / bandwidth * 1e9 * factor * (members - 1) / members)

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        return transfer_ns(size, self.transfer_gibps(shape)) if size else 0

    def collective_ns(self, group_collective: GroupCollective, scale: float = 1.0) -> int:
        return scaled(
            self.ns(group_collective.group, group_collective.collective, group_collective.size), scale
        )

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        gibps, ns = self.transfer_gibps(shape), self.transfer_ns(shape, ports, size)
        return f"{group_digits(size)} B / 2^30 / {gibps:.8g} GiB/s x 1e9 = {group_digits(ns)} ns"

    def explain_collective(self, group_collective: GroupCollective) -> str:
        group, _, _, collective, size = group_collective
        members = self.members(group)
        ns = f"{group_digits(self.ns(group, collective, size))} ns"
        head = f"{NAMES[collective]}, {group} group of {members}: {group_digits(size)} B"
        if members == 1 or not size:
            return f"{head}: free"
        if self.fixed_ns(group, size) is not None:
            return f"{head}, between 1 B and 1 MiB\nSimAI's constant for a group of {members}: {ns}"
        bus_bandwidth = self.bandwidth(group, collective, size)
        if not bus_bandwidth.gibps:
            return f"{head}\n{ns}, as in SimAI: {bus_bandwidth.origin}"
        ratio = (
            f" x {bus_bandwidth.ratio:.6g} ({bus_bandwidth.ratio_origin})"
            if bus_bandwidth.ratio_origin
            else ""
        )
        rate = (
            f"{bus_bandwidth.gibps:.8g} GiB/s"
            if not ratio
            else f"({bus_bandwidth.gibps:.8g} GiB/s x {bus_bandwidth.ratio:.6g})"
        )
        factor = " x 2" if collective == "ALLREDUCE" else ""
        return (
            f"{head} at {bus_bandwidth.gibps:.8g} GiB/s ({bus_bandwidth.origin}){ratio}\n"
            f"{group_digits(size)} B / 2^30 / {rate} x 1e9{factor} x {members - 1}/{members} = {ns}"
        )

    def diagnostics(self, workload: Workload, structure: Structure) -> tuple[Diagnostic, ...]:
        """Returns what the model assumes, what costs nothing in it, and what SimAI itself does with the file.

        Prices every cell of the file, so that a missing bandwidth is reported before anything runs.
        Raises as `bandwidth`.
        """
        estimate: list[Diagnostic] = []
        forward = zip(workload.fwd.collective, workload.fwd.bytes, strict=True)
        least = least_forward_bytes(workload)
        lifted = sum(1 for collective, size in forward if collective and 0 < size < least)
        for phase in PHASES:
            cells = workload.cells(phase)
            collectives = dict.fromkeys(zip(cells.collective, cells.group, cells.bytes, strict=True))
            for collective, group, size in collectives:
                # A send-recv is a transfer, which every network prices.
                if collective is None or group in (None, "pp") or not size:
                    continue
                if self.layout.group_size(group) == 1:
                    continue
                if group == "pp":  # a SENDRECV is a transfer, not a collective: SimAI knows none
                    continue
                size = priced_bytes(workload, phase, size)
                self.ns(group, collective, size)
                self._note_free(group, collective, size)
                if not estimate:
                    estimate = self._unpriced(estimate_kind(phase, group), collective, size, workload.path)
        lift = []
        if lifted:
            verb = "counts" if lifted == 1 else "count"
            what = f"{plural(lifted, 'forward collective')} of 1 to {least - 1} B"
            message = f"{what} {verb} as {least} B, as in SimAI"
            lift = [Diagnostic("note", "simai-forward-size", message, workload.path)]
        free = list(self._free.values())
        # SimAI reads no op table, so its assumptions do not matter there.
        assumed = [] if workload.format == "op-table" else self.assumptions()
        return (*assumed, *free, *lift, *estimate, *simai_notes(workload, structure))

    def _note_free(self, group: GroupKind, collective: str, size: int) -> None:
        if self.members(group) == 1:
            origin = f"it counts max(1, floor(dp {self.layout.dp} / ep {self.layout.ep})) = 1 rank in a group"
        elif self.fixed_ns(group, size) is None and not self.bandwidth(group, collective, size).gibps:
            origin = self.bandwidth(group, collective, size).origin
        else:
            return
        message = f"{NAMES[collective]} of {group} groups costs nothing, as in SimAI: {origin}"
        self._free.setdefault((group, collective), Diagnostic("warning", "simai-free", message))

    def _unpriced(self, kind: GroupKind, collective: str, size: int, path: str) -> list[Diagnostic]:
        """Returns a note where SimAI would price a cell by another group, for which there is no bandwidth."""
        try:
            self.ns(kind, collective, size)
        except (InputError, UsageError) as error:
            why = error.diagnostics[0].message if isinstance(error, InputError) else str(error)
            return [Diagnostic("note", "simai-no-estimate", f"no estimate of SimAI: {why}", path)]
        return []


def transfer_ns(size: int, gibps: float) -> int:
    """Returns the ns of a point-to-point transfer of `size` bytes at B GiB/s: floor(S/2^30 / B * 1e9)."""
    return math.floor(size / 2**30 / single(gibps) * 1e9)
