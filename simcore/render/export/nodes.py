"""The nodes of a rank as Chakra execution traces have them, one after another, whatever made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from simcore.chakra.schema import attribute, frame, metadata, node_head
from simcore.cluster import Cluster
from simcore.diagnostics import Diagnostic
from simcore.records import NamedTuple

# Durations in the schema are whole microseconds; the exact ones, sizes of whole buffers, kinds of group and
# phases are attributes `wltui_*`, which ASTRA-sim ignores and wltui's own rules prefer.
GPU, CPU = (attribute("is_cpu_op", is_cpu) for is_cpu in (False, True))


class TraceSet(NamedTuple):
    """What is written, in a few words, and how much that is. files: of each rank its number, its nodes and
    how much they are. groups: of ranks, by their numbers from 1. cluster: that network and system are of.
    found: in making the run; said: what ASTRA-sim will do otherwise than wltui.
    """

    what: str
    total: int
    files: Iterator[tuple[int, bytes, int]]
    groups: Sequence[Sequence[int]]
    cluster: Cluster
    run_diagnostics: tuple[Diagnostic, ...]
    export_diagnostics: tuple[Diagnostic, ...]


# What the attributes are of a node that differ from rank to rank, for who fills them in.
OwnAttributes = tuple[str, str, int]


class NodeList:
    """The nodes of a rank, or of ranks that do the same, in the order in which they are issued; a node's id
    is its place. held: what the next one is behind.
    """

    def __init__(self) -> None:
        self.predecessors: list[int] = []
        self._nodes: list[bytes | tuple[bytes, OwnAttributes]] = [metadata()]

    def __len__(self) -> int:
        return len(self._nodes) - 1

    def add(
        self, name: bytes, kind: int, ns: int, attributes: bytes, ctrl: Sequence[int] = (),
        own: OwnAttributes | None = None,
    ) -> int:  # fmt: skip
        """Adds a node behind what holds it, and gives its id. ctrl: more that it is behind."""
        node = node_head(len(self), name, kind, self.predecessors, [*ctrl], round(ns / 1000)) + attributes
        self._nodes.append(frame(node) if own is None else (node, own))
        return len(self) - 1

    def encode(self, fill: Callable[[OwnAttributes], bytes] = lambda own: b"") -> bytes:
        """The file of a rank. fill: gives its own attributes, asked once for all nodes with the same."""
        cached_fill = cache(fill)
        return b"".join(
            node if isinstance(node, bytes) else frame(node[0] + cached_fill(node[1])) for node in self._nodes
        )


def exact_duration(ns: int) -> bytes:
    """The duration of a node to the nanosecond."""
    return attribute("wltui_ns", ns, "uint64")


def collective_attributes(kind: int, share: int, buffer_bytes: int) -> bytes:
    """Kind and size of a collective. share: bytes of each member, whole: of the whole buffer."""
    sizes = attribute("comm_size", share) + attribute("wltui_bytes", buffer_bytes, "uint64")
    return GPU + attribute("comm_type", kind) + sizes


def transfer_attributes(size: int, tag: int, ends: bytes = b"") -> bytes:
    """Size and tag of a transfer; ASTRA-sim takes none of 0 bytes."""
    tagged = attribute("comm_tag", tag, "int32") + attribute("wltui_bytes", size, "uint64")
    return GPU + attribute("comm_size", max(size, 1)) + ends + tagged


def endpoint_attributes(source: int, target: int) -> bytes:
    """The ranks at both ends of a transfer."""
    return attribute("comm_src", source, "int32") + attribute("comm_dst", target, "int32")


def one_slot_note(who: str, what: str, path: str) -> Diagnostic:
    """A note that ASTRA-sim runs one after another what runs beside each other. who: has or have `how`."""
    verb = "has" if who.startswith("1 ") else "have"
    message = f"{who} {verb} {what}: ASTRA-sim runs one collective or send of a rank at a time"
    return Diagnostic("note", "one-slot", message, path)
