"""The nodes of a rank in Chakra execution traces, one after another, for any kind of run."""

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
    """A set of execution traces to be written."""

    what: str
    """What is written, in a few words."""
    total: int
    """How many spans, or segments of a recording, are written, for the progress."""
    files: Iterator[tuple[int, bytes, int]]
    """(number, nodes, how many spans or segments they are) of each rank."""
    groups: Sequence[Sequence[int]]
    """The ranks of each group; groups have numbers from 1."""
    cluster: Cluster
    """The cluster of the network and system files."""
    run_diagnostics: tuple[Diagnostic, ...]
    """Diagnostics of making the run."""
    export_diagnostics: tuple[Diagnostic, ...]
    """What ASTRA-sim will do differently from wltui."""


# A key of the attributes of a node that differ from rank to rank, for the function that fills them in.
OwnAttributes = tuple[str, str, int]


class NodeList:
    """The nodes of a rank, or of equal ranks, in the order of issue; the id of a node is its index.

    predecessors: the nodes that the next one waits for.
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
        """Adds a node after its predecessors, and returns its id. ctrl: further nodes that it waits for."""
        node = node_head(len(self), name, kind, self.predecessors, [*ctrl], round(ns / 1000)) + attributes
        self._nodes.append(frame(node) if own is None else (node, own))
        return len(self) - 1

    def encode(self, fill: Callable[[OwnAttributes], bytes] = lambda own: b"") -> bytes:
        """Returns the file of a rank. fill: returns its own attributes, called once for all nodes with the
        same.
        """
        cached_fill = cache(fill)
        return b"".join(
            node if isinstance(node, bytes) else frame(node[0] + cached_fill(node[1])) for node in self._nodes
        )


def exact_duration(ns: int) -> bytes:
    """Returns the duration of a node to the nanosecond."""
    return attribute("wltui_ns", ns, "uint64")


def collective_attributes(kind: int, share: int, buffer_bytes: int) -> bytes:
    """Returns kind and size of a collective. share: bytes of each member. buffer_bytes: of the
    whole buffer.
    """
    sizes = attribute("comm_size", share) + attribute("wltui_bytes", buffer_bytes, "uint64")
    return GPU + attribute("comm_type", kind) + sizes


def transfer_attributes(size: int, tag: int, ends: bytes = b"") -> bytes:
    """Returns size and tag of a transfer; ASTRA-sim refuses 0 bytes."""
    tagged = attribute("comm_tag", tag, "int32") + attribute("wltui_bytes", size, "uint64")
    return GPU + attribute("comm_size", max(size, 1)) + ends + tagged


def endpoint_attributes(source: int, target: int) -> bytes:
    """Returns the ranks at both ends of a transfer."""
    return attribute("comm_src", source, "int32") + attribute("comm_dst", target, "int32")


def one_slot_note(who: str, what: str, path: str) -> Diagnostic:
    """Returns a note that ASTRA-sim runs overlapping communication one after another.

    who: the subject. what: what it has.
    """
    verb = "has" if who.startswith("1 ") else "have"
    message = f"{who} {verb} {what}: ASTRA-sim runs one collective or send of a rank at a time"
    return Diagnostic("note", "one-slot", message, path)
