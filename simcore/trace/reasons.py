"""Why what runs could not begin earlier: the one list of reasons, for runs of every kind.

A reason is added here, as an entry of `REASONS`: when it is one, and its words. Both are of the `Facts` of
two neighbours: what waited, and what ended when that began. The graph knows some of them, a kind of run adds
those that it alone knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from simcore.records import NamedTuple, Struct
from simcore.trace import graph
from simcore.trace.spans import NONE
from simcore.trace.trace_graph import Neighbours, TraceGraph


class Facts(Struct, frozen=True):
    """What is known of two neighbours; what a kind of run does not know stays as it is here.

    how: how the one waited for the other, of `simcore.trace.graph`; None where the step begins. is_late:
    whether it is a collective to which another member came last. rank: who came last, or who sends.

    Of what waited: own: what it is, where its rank came to it early. where: what it runs on, one at a time.
    idles: whether its rank runs nothing; call: what its host did then (`is in cudaLaunchKernel`), is_queued:
    whether what runs next was queued for most of that time, None where nobody knows.

    Of what ended: what: that it is, "" where that need not be said. passes: how long it took, of time that
    passes by itself; seen: how much later than the end of `what` that time is over. was_idle: whether its
    rank ran nothing. is_needed: whether its data are needed; is_named: whether a file says that it comes
    first. sent: what it sends, and from which stage.
    """

    how: int | None
    is_late: bool = False
    rank: int = NONE
    own: str = ""
    where: str = ""
    idles: bool = False
    call: str = ""
    is_queued: bool | None = None
    what: str = ""
    passes: str = ""
    seen_after: str = ""
    was_idle: bool = False
    is_needed: bool = False
    is_named: bool = False
    payload: str = "data"
    stage: int | None = None


class Reason(NamedTuple):
    """holds: whether two neighbours have it; of several it is the first of the list. words: it in words."""

    name: str
    applies: Callable[[Facts], bool]
    words: Callable[[Facts], str]


LATE, RECEIVED, BUSY = "late", "received", "busy"


def _late_text(of: Facts) -> str:
    return f"rank {of.rank} comes late to the {of.own}" if of.own else f"rank {of.rank} came last"


def _receive_text(of: Facts) -> str:
    if of.stage is None:
        return f"waiting for {of.payload} from rank {of.rank}"
    return f"stage {of.stage} sends the {of.payload}"


def _data_text(of: Facts) -> str:
    return f"waiting for data from {of.what}" if of.what else "waiting for its data"


def _control_text(of: Facts) -> str:
    return f"waiting for {of.what or 'its end'}, a control dependency"


def _busy_text(of: Facts) -> str:
    return f"{of.where} is busy with {of.what}" if of.where else "waiting for the collective before it"


def _order_text(of: Facts) -> str:
    predecessor = of.what if of.what == "compute" else f"the {of.what}" if of.what else "its rank was busy"
    return f"{predecessor} before it"


REASONS = (
    Reason(LATE, lambda of: of.is_late, _late_text),
    # Time passes: until an end is seen, or for a fixed while.
    Reason(
        "seen",
        lambda of: of.seen_after != "",
        lambda of: f"the {of.what} is seen {of.seen_after} after its end",
    ),
    Reason("paused", lambda of: of.passes != "", lambda of: f"a state change of {of.passes}"),
    Reason(RECEIVED, lambda of: of.how == graph.RECEIVED, _receive_text),
    Reason(
        "queued", lambda of: of.how == graph.QUEUED, lambda of: f"the queues serve another {of.what} first"
    ),
    Reason("needs", lambda of: of.is_needed, _data_text),
    Reason("named", lambda of: of.is_named, _control_text),
    # What a stream or a channel is for.
    Reason(BUSY, lambda of: of.how == graph.BUSY, _busy_text),
    # Nobody says of a rank that idles that it was busy: what its host did tells more, of the first gap too.
    Reason("in a call", lambda of: of.idles and of.call != "", lambda of: f"its host {of.call}"),
    Reason("first", lambda of: of.how is None, lambda of: "the step begins"),
    Reason(
        "queued already",
        lambda of: of.idles and of.is_queued is True,
        lambda of: "its next kernel was queued already",
    ),
    Reason(
        "host late",
        lambda of: of.idles and of.is_queued is False,
        lambda of: "its host was late: no kernel queued",
    ),
    Reason("idles", lambda of: of.idles, lambda of: "its rank ran nothing"),
    Reason("was idle", lambda of: of.was_idle, lambda of: "its rank was idle before it"),
    Reason(
        "joined",
        lambda of: of.how == graph.JOINS and of.what != "",
        lambda of: f"it waits for the {of.what}",
    ),
    Reason("behind", lambda of: True, _order_text),
)


def make_graph_facts(of: TraceGraph, pair: Neighbours) -> Facts:
    """Returns what the graph alone knows of two neighbours."""
    cause = pair.cause
    if cause is None:
        return Facts(None)
    is_late = of.is_late(pair)
    return Facts(cause.why, is_late, of.ranks[cause.track if is_late else of.graph.track_of(cause)])


def find_reason(facts: Facts) -> Reason:
    """Returns why the one of two neighbours could not begin earlier."""
    return next(reason for reason in REASONS if reason.applies(facts))


# Nearly all of a path has a few of them.
@lru_cache(maxsize=1024)
def reason_words(facts: Facts) -> str:
    """Returns the same in words."""
    return find_reason(facts).words(facts)
