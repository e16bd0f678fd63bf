"""The texts of the critical path of execution traces: its parts and merged segments, and why each
segment began.
"""

from __future__ import annotations

import re

from simcore.chakra.nodes import COMP, RECV, SEND, integer
from simcore.diagnostics import printable_within
from simcore.executing.columns import node_name, node_stream, pattern_of
from simcore.executing.execution_result import ExecutionResult
from simcore.executing.trace import ACCOUNTS, account_of, phase_of_node
from simcore.records import replace
from simcore.trace.critical_path import CriticalPath, MergeFacts, PathSource
from simcore.trace.figures import PathSegment
from simcore.trace.graph import BUSY, RECEIVED
from simcore.trace.reasons import Facts, make_graph_facts

# What a receive waits for.
MESSAGE = "the message"
# The width, in cells, of the name of what a node waited for.
_NAME_CELLS = 40
# By slot, as `astra2.SLOT_WORDS`.
_SLOTS = ("the CPU", "GPU compute", "communication")
# A micro-batch in the name of a node: STAGE's `mb0.transformer.1.mha.q@1_COMP`, wltui's `mlp_norm fwd mb0`.
_MICROBATCH = re.compile(r"(?:^|[ .])mb(\d{1,9})(?:$|[ .])")
# What SimAI's files state for compute that is not modelled, ns; others state no duration, which is 0 or 1.
_OF_SIMAI = 1000


class ExecutionPath(PathSource):
    """The critical path of execution traces: a track is a class of ranks, whose lowest rank stands for it."""

    def __init__(self, executed: ExecutionResult) -> None:
        self._executed, self._first = executed, executed.units.first

    def track_id(self, track: int, rank: int) -> int:
        return rank

    def kind(self, track: int, span: int) -> str:
        """Returns the account of a span's time. On the path a collective is itself, even if it overlaps
        compute: accounts state what is exposed of it.
        """
        return ACCOUNTS[account_of(self._executed, self._first[track], span)].removeprefix("exposed ")

    def name(self, track: int, span: int) -> str:
        """Returns the name of the node, raw text of the file."""
        return node_name(self._executed, self._first[track], span)

    def part_name(self, by: str, track: int, span: int) -> str:
        """Returns the name of a part: by `op`, the node's name with `#` for each number; by `group`,
        the stream.
        """
        if by == "group":
            return node_stream(self._executed, self._first[track], span)
        return pattern_of(self.name(track, span))

    def merge_facts(self, track: int, span: int) -> MergeFacts:
        """Returns what consecutive segments are merged by.

        This is `forward`, `backward`, `optimizer` or `pp` of a micro-batch where the names of nodes state
        one, as on simulated runs; else the name of the nodes with `#` for each number, raw text of the file.
        """
        name, rank = self.name(track, span), self._first[track]
        match = _MICROBATCH.search(name)
        nodes = self._executed.nodes[rank]
        kind = nodes.columns.type[nodes.row[span]]
        if match is None:
            is_unknown = kind == COMP and self._is_placeholder(rank, span)
            return MergeFacts(pattern_of(name), -1, is_placeholder=is_unknown)
        if kind in (SEND, RECV):
            return MergeFacts("pp", int(match[1]))
        if self.kind(track, span) == "host":
            return MergeFacts("host", int(match[1]))
        phase = phase_of_node(self._executed, rank, span)
        return MergeFacts(ACCOUNTS[phase].removeprefix("compute "), int(match[1]))

    def _is_placeholder(self, rank: int, index: int) -> bool:
        """Returns whether compute is a placeholder of which the traces state nothing."""
        executed = self._executed
        ns = executed.end[rank][index] - executed.start[rank][index]
        stated_ns = executed.attributes(rank, index).get("wltui_ns")
        return ns <= 1 or (ns == _OF_SIMAI and integer(stated_ns) == ns)

    def wait_facts(self, path: CriticalPath, index: int) -> Facts:
        of, pair = path.of, path.neighbours(index)
        facts = make_graph_facts(of, pair)
        if pair.cause is None or facts.is_late:
            return facts
        if facts.how == RECEIVED:
            return replace(facts, payload=MESSAGE)
        own, node_index = self._first[pair.track], of.span_at(pair.node, pair.track)
        track, before = of.span_of_cause(pair.cause)
        rank = self._first[track]
        # It neither needs nor names the cause: that was on the resource that it runs on.
        nodes = self._executed.nodes[own]
        return replace(
            facts, how=BUSY, where=describe_resource(self._executed, own, node_index),
            what=printable_within(node_name(self._executed, rank, before), _NAME_CELLS),
            is_needed=rank == own and before in nodes.data[node_index],
            is_named=rank == own and before in nodes.ctrl[node_index],
        )  # fmt: skip

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        track, span, rank = path.track[index], path.span[index], path.rank[index]
        return PathSegment(
            path.edge[index], path.edge[index + 1], rank, node_stream(self._executed, rank, span),
            self.kind(track, span), self.name(track, span), None, None, self.reason(path, index),
            self._executed.nodes[rank].id[span],
        )  # fmt: skip


def describe_resource(executed: ExecutionResult, rank: int, index: int) -> str:
    """Returns what a node runs on, one at a time: under ASTRA-sim's rules one of three slots, else a
    stream.
    """
    lane = executed.lanes[rank][index]
    return "its stream" if not executed.is_astra else _SLOTS[lane] if lane < len(_SLOTS) else "its rank"
