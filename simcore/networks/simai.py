"""What SimAI's two bus-bandwidth models share: the formula of a collective, and its group sizes.

SimAI-analytical, versions 2025-03 to 1.7: a collective of S bytes over n ranks takes
floor(S/2^30 / (r*B) * 1e9 * k * (n-1)/n) ns, B a bus bandwidth in GiB/s, r a ratio, r*B a product
of single precision, k = 2 for all-reduce and 1 for all others. Figures in GiB/s stay in this room.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from struct import pack, unpack
from typing import NamedTuple

from simcore.cluster import TransferShape
from simcore.collectives import NAMES
from simcore.collectives.exact import scaled
from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.folding.classes import PortFactors
from simcore.layout import Layout
from simcore.networks.model import PlacedCollective
from simcore.networks.simai_inputs import least_forward_bytes, overlap_ratios, priced_bytes
from simcore.networks.simai_notes import simai_notes
from simcore.parameters import Parameters
from simcore.program.blocks import Structure
from simcore.units import digits, plural
from simcore.workload import Workload
from simcore.workload.model import PHASES, GroupKind, Phase


class Bandwidth(NamedTuple):
    """What a collective gets. gibps: B; 0 where SimAI has none, and the collective costs nothing.

    ratio: r. origin: where B comes from, in words.
    """

    gibps: float
    origin: str
    ratio: float = 1.0
    ratio_origin: str = ""


def single(value: float) -> float:
    """The nearest number of single precision, as SimAI keeps its figures."""
    nearest: float = unpack("<f", pack("<f", value))[0]
    return nearest


def estimate_kind(phase: Phase, group: GroupKind) -> GroupKind:
    """The group that SimAI itself prices a cell on: it knows _EP forward and _DP_EP of weights."""
    if phase == "wg":
        return "dp_ep" if group == "dp_ep" else "dp"
    return "ep" if group == "ep" else "tp"


class SimaiNetwork(ABC):
    """Prices by group kind and size alone; satisfies `Network`. Places play no part.

    name: of the model. pp_gibps: what SimAI's estimate takes for transfers, None where it has
    nothing. overlap: see `overlap_ratios`.
    """

    name: str
    pp_gibps: float | None = None

    def __init__(self, parameters: Parameters, layout: Layout) -> None:
        self.layout = layout
        self.server = parameters.gpus_per_server
        self.overlap = overlap_ratios(parameters)
        self._known: dict[tuple[GroupKind, str, int], int] = {}
        self._free: dict[tuple[GroupKind, str], Diagnostic] = {}

    @abstractmethod
    def bandwidth(self, kind: GroupKind, collective: str, size: int) -> Bandwidth:
        """The bandwidth of a collective of `size` bytes in a group of more than one.

        Raises InputError or UsageError where the model needs one that is not there.
        """

    @abstractmethod
    def transfer_gibps(self, shape: TransferShape) -> float:
        """GiB/s of a pipeline transfer. Raises InputError where there is none."""

    @abstractmethod
    def words(self) -> str:
        """What the prices rest on, on one line."""

    def fixed_ns(self, kind: GroupKind, size: int) -> int | None:
        """The time of a small message where the model has one that no bandwidth gives, ns."""
        return None

    def assumptions(self) -> list[Diagnostic]:
        """What the model took for given."""
        return []

    def members(self, kind: GroupKind) -> int:
        """How many ranks SimAI counts in a group: an expert shard has max(1, floor(dp/ep)) replicas.

        Raises UsageError for a kind that it does not know.
        """
        layout = self.layout
        if kind == "all":
            raise UsageError(
                f"--network {self.name}: SimAI has no bandwidth for a collective over all ranks, "
                "only for groups tp, ep, dp and dp_ep; analytical has one"
            )
        sizes = {"tp": layout.tp, "ep": layout.ep, "dp": layout.dp}
        return sizes[kind] if kind in sizes else max(1, layout.dp // layout.ep)

    def ns(self, kind: GroupKind, collective: str, size: int) -> int:
        """ns of a collective of `size` bytes in all; none and a group of one are free.

        Raises InputError or UsageError as `bandwidth` does.
        """
        key = (kind, collective, size)
        if key not in self._known:
            self._known[key] = self._ns(kind, collective, size)
        return self._known[key]

    def _ns(self, kind: GroupKind, collective: str, size: int) -> int:
        members = self.members(kind)
        if members == 1 or not size:
            return 0
        fixed = self.fixed_ns(kind, size)
        if fixed is not None:
            return fixed
        found = self.bandwidth(kind, collective, size)
        if not found.gibps:
            return 0
        bandwidth = single(single(found.ratio) * single(found.gibps))
        factor = 2 if collective == "ALLREDUCE" else 1
        # The order of the operations is part of the figure.
        return math.floor(size / 2**30 / bandwidth * 1e9 * factor * (members - 1) / members)

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        return transfer_ns(size, self.transfer_gibps(shape)) if size else 0

    def collective_ns(self, placed: PlacedCollective, scale: float = 1.0) -> int:
        return scaled(self.ns(placed.group, placed.collective, placed.size), scale)

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        gibps, ns = self.transfer_gibps(shape), self.transfer_ns(shape, ports, size)
        return f"{digits(size)} B / 2^30 / {gibps:.8g} GiB/s x 1e9 = {digits(ns)} ns"

    def explain_collective(self, placed: PlacedCollective) -> str:
        group, _, _, collective, size = placed
        members = self.members(group)
        ns = f"{digits(self.ns(group, collective, size))} ns"
        head = f"{NAMES[collective]}, {group} group of {members}: {digits(size)} B"
        if members == 1 or not size:
            return f"{head}: free"
        if self.fixed_ns(group, size) is not None:
            return f"{head}, between 1 B and 1 MiB\nSimAI's constant for a group of {members}: {ns}"
        found = self.bandwidth(group, collective, size)
        if not found.gibps:
            return f"{head}\n{ns}, as in SimAI: {found.origin}"
        ratio = f" x {found.ratio:.6g} ({found.ratio_origin})" if found.ratio_origin else ""
        rate = f"{found.gibps:.8g} GiB/s" if not ratio else f"({found.gibps:.8g} GiB/s x {found.ratio:.6g})"
        factor = " x 2" if collective == "ALLREDUCE" else ""
        return (
            f"{head} at {found.gibps:.8g} GiB/s ({found.origin}){ratio}\n"
            f"{digits(size)} B / 2^30 / {rate} x 1e9{factor} x {members - 1}/{members} = {ns}"
        )

    def diagnostics(self, workload: Workload, structure: Structure) -> tuple[Diagnostic, ...]:
        """What the model assumes, what costs nothing in it, and what SimAI itself does with the file.

        Prices every cell of the file, so that what is missing is said before anything runs.
        Raises as `bandwidth`.
        """
        estimate: list[Diagnostic] = []
        forward = zip(workload.fwd.collective, workload.fwd.bytes, strict=True)
        least = least_forward_bytes(workload)
        lifted = sum(1 for collective, size in forward if collective and 0 < size < least)
        for phase in PHASES:
            cells = workload.cells(phase)
            asked = dict.fromkeys(zip(cells.collective, cells.group, cells.bytes, strict=True))
            for collective, group, size in asked:
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
        # What SimAI prints of an op table is no question: it reads none.
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
        """A note where SimAI would price a cell on another group, for which there is no bandwidth."""
        try:
            self.ns(kind, collective, size)
        except (InputError, UsageError) as error:
            why = error.diagnostics[0].message if isinstance(error, InputError) else str(error)
            return [Diagnostic("note", "simai-no-estimate", f"no estimate of SimAI: {why}", path)]
        return []


def transfer_ns(size: int, gibps: float) -> int:
    """floor(S/2^30 / B * 1e9), ns: a point-to-point transfer of `size` bytes at B GiB/s."""
    return math.floor(size / 2**30 / single(gibps) * 1e9)
