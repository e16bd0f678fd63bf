"""How flows become packets: what SimAI's configuration file states and the flow model takes of it."""

from __future__ import annotations

from simcore.records import NamedTuple, Struct

# What a packet has beside its payload (link 14, IP 20, UDP 8, sequence 10), and an acknowledgement, bytes.
HEADER_BYTES = 52
ACK_BYTES = 60

NO_CONTROL, DCQCN = 0, 1
# The number of a congestion control in the file -> its name; every other number is none.
CONTROLS = {DCQCN: "DCQCN", 3: "HPCC", 7: "TIMELY", 8: "DCTCP", 10: "HPCC-PINT"}


class Marks(NamedTuple):
    """The queue of a port from which DCQCN marks packets."""

    least: float
    """Bytes from which some are marked."""
    most: float
    """Bytes from which all are."""
    chance: float
    """The share that is marked just below `most`."""


class PacketRules(Struct, frozen=True):
    """Packets, window and congestion control; the defaults are those of the file that SimAI ships."""

    payload: int = 9000
    """Bytes of a full packet without its header."""
    window: bool = True
    """Whether a flow has at most one bandwidth-delay product in flight."""
    control: int = DCQCN
    """The number of the congestion control."""
    mark_from: tuple[tuple[float, float], ...] = (
        (25.0, 100), (50.0, 200), (100.0, 400), (200.0, 300), (400.0, 800), (1600.0, 600),
    )  # fmt: skip
    """(Gb/s of a port, kB of its queue from which some packets are marked)."""
    mark_all_from: tuple[tuple[float, float], ...] = (
        (25.0, 400), (50.0, 800), (100.0, 1600), (200.0, 1200), (400.0, 3200), (1600.0, 2400),
    )  # fmt: skip
    """The same for all packets."""
    mark_chances: tuple[tuple[float, float], ...] = (
        (25.0, 0.2), (50.0, 0.2), (100.0, 0.2), (200.0, 0.8), (400.0, 0.2), (1600.0, 0.2),
    )  # fmt: skip
    """(Gb/s, the share of packets that are marked just below that)."""

    @property
    def control_name(self) -> str:
        """The name of the congestion control, "" for none."""
        return CONTROLS.get(self.control, "")

    def marks(self, gbps: float) -> Marks | None:
        """Returns the thresholds of a port; None where the file has none for its rate."""
        least = dict(self.mark_from).get(gbps)
        if least is None:
            return None
        most = dict(self.mark_all_from).get(gbps, least)
        return Marks(1000 * least, 1000 * most, dict(self.mark_chances).get(gbps, 1.0))

    def full_ns(self, gbps: float) -> int:
        """Returns the ns of a full packet on a link, cut to whole ns as ns-3 does it."""
        return int((self.payload + HEADER_BYTES) * 8 / gbps)

    def ack_ns(self, gbps: float) -> int:
        """Returns the ns of an acknowledgement on a link, cut to whole ns."""
        return int(ACK_BYTES * 8 / gbps)
