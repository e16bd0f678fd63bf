"""How flows become packets: what SimAI's configuration file states and the flow model takes of it."""

from __future__ import annotations

from simcore.records import Struct

# What a packet has beside its payload (link 14, IP 20, UDP 8, sequence 10), and an acknowledgement, bytes.
HEADER_BYTES = 52
ACK_BYTES = 60

NO_CONTROL, DCQCN = 0, 1
# The number of a congestion control in the file -> its name; every other number is none.
CONTROLS = {DCQCN: "DCQCN", 3: "HPCC", 7: "TIMELY", 8: "DCTCP", 10: "HPCC-PINT"}


class PacketRules(Struct, frozen=True):
    """Packets, window and congestion control; the defaults are those of the file that SimAI ships."""

    payload: int = 9000
    """Bytes of a full packet without its header."""
    window: bool = True
    """Whether a flow has at most one bandwidth-delay product in flight."""
    control: int = DCQCN
    """The number of the congestion control."""
    mark_from: tuple[tuple[float, int], ...] = (
        (25.0, 100), (50.0, 200), (100.0, 400), (200.0, 300), (400.0, 800), (1600.0, 600),
    )  # fmt: skip
    """(Gb/s of a port, kB of its queue from which packets are marked)."""

    @property
    def control_name(self) -> str:
        """The name of the congestion control, "" for none."""
        return CONTROLS.get(self.control, "")

    def full_ns(self, gbps: float) -> int:
        """Returns the ns of a full packet on a link, cut to whole ns as ns-3 does it."""
        return int((self.payload + HEADER_BYTES) * 8 / gbps)

    def ack_ns(self, gbps: float) -> int:
        """Returns the ns of an acknowledgement on a link, cut to whole ns."""
        return int(ACK_BYTES * 8 / gbps)
