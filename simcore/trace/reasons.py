"""Why a span could not begin earlier: the one list of reasons, for runs of every kind.

A reason is an entry of `REASONS`: when it applies, and its words. Both take the `Facts` of two neighbours:
the span that waited, and what ended when that began. The graph knows some of the facts, a kind of run adds
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
    """What is known of two neighbours; facts that a kind of run does not know keep their defaults."""

    how: int | None
    """How the one waited for the other, as in `simcore.trace.graph`; None where the step begins."""
    is_late: bool = False
    """Whether it is a collective to which another member came last."""
    rank: int = NONE
    """The rank that came last, or that sends."""
    own: str = ""
    """What waited, where its rank came early to it."""
    where: str = ""
    """The stream or channel on which what waited runs, one at a time."""
    idles: bool = False
    """Whether what waited is idle time of its rank."""
    call: str = ""
    """What the host of that rank did then (`is in cudaLaunchKernel`)."""
    is_queued: bool | None = None
    """Whether what runs next was queued for most of that time, None where that is not known."""
    what: str = ""
    """What ended, "" where that need not be said."""
    passes: str = ""
    """How long it took, where time passes by itself."""
    seen_after: str = ""
    """How long after the end of `what` that end is seen."""
    was_idle: bool = False
    """Whether what ended is idle time of its rank."""
    is_needed: bool = False
    """Whether the data of what ended are needed."""
    is_named: bool = False
    """Whether a file says that what ended comes first."""
    payload: str = "data"
    """What is sent."""
    stage: int | None = None
    """The stage that sends."""


class Reason(NamedTuple):
    """A reason; of several that apply the first of `REASONS` is given."""

    name: str
    """Its name in code."""
    applies: Callable[[Facts], bool]
    """Whether two neighbours have it."""
    words: Callable[[Facts], str]
    """The reason in words."""


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
    # A stream or a channel runs one thing at a time.
    Reason(BUSY, lambda of: of.how == graph.BUSY, _busy_text),
    # A rank that idles was not busy: what its host did says more, of the first gap too.
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


# Nearly all segments of a path share a few facts.
@lru_cache(maxsize=1024)
def reason_words(facts: Facts) -> str:
    """Returns the reason in words."""
    return find_reason(facts).words(facts)
