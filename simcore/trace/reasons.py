"""Why what runs could not begin earlier: the reasons that there are, and the words that they have.

A reason is added here, for runs of every kind: a name, its words, and in `kind_of` when it is one. A source
says it in words of its own where its readers know the thing by another name (`REASONS | {...}` there), and
gives the facts that the words name.
"""

from __future__ import annotations

from simcore.records import NamedTuple
from simcore.trace import graph
from simcore.trace.graph import Cause

# The step begins; another member came last to the collective; a message; a queue, or what a stream or a
# channel is for, was busy with another; it was waited for; the track was busy before.
FIRST, LATE, RECEIVED, QUEUED, BUSY, JOINED, BEHIND = (
    "first", "late", "received", "queued", "busy", "joined", "behind"
)  # fmt: skip
# The same, told closer by what its source knows. Time passes: for a fixed while, until an end is seen. The
# track was idle before it, is idle itself, because of its host or not. It needs data of what was before it,
# or names it.
PAUSED, SEEN = "paused", "seen"
WAS_IDLE, IDLES, HOST_LATE, NOT_STARTED = "was idle", "idles", "host late", "not started"
NEEDS, NAMES = "needs", "names"

# The words of each. rank: who is late, or sends.
REASONS: dict[str, str] = {
    FIRST: "the step begins",
    LATE: "rank {rank} came last",
    RECEIVED: "waiting for data from rank {rank}",
    QUEUED: "the queues serve another {what} first",
    BUSY: "{where} is busy with {what}",
    JOINED: "it waits for the {what}",
    BEHIND: "its rank was busy before it",
    PAUSED: "a state change of {took}",
    SEEN: "the {what} is seen {later} after its end",
    WAS_IDLE: "its rank was idle before it",
    IDLES: "its rank ran nothing",
    HOST_LATE: "its host was late: no kernel queued",
    NOT_STARTED: "its next kernel was queued already",
    NEEDS: "waiting for data from {what}",
    NAMES: "waiting for {what}, a control dependency",
}
_OF_GRAPH = {
    graph.BEFORE: BEHIND, graph.JOINED: JOINED, graph.RECEIVED: RECEIVED, graph.BUSY: BUSY,
    graph.QUEUED: QUEUED,
}  # fmt: skip


class Reason(NamedTuple):
    """Why a node of `track` could not begin earlier. cause: None where the step begins."""

    kind: str
    node: int
    track: int
    cause: Cause | None


def kind_of(cause: Cause | None, track: int) -> str:
    """Returns which reason a cause is for what waited on `track`."""
    if cause is None:
        return FIRST
    return _OF_GRAPH[cause.why] if cause.track == track else LATE


class Facts:
    """What the words of a reason name: a property each, asked for when the words have it."""

    def __getitem__(self, name: str) -> object:
        return getattr(self, name)
