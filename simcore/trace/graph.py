"""The graph of a run: which node waits for which, and the passes over it that give times.

A node is something that ends: an op, a wait that is over, a rendezvous to which the last member has come. It
begins when the one or two nodes that it waits for have ended, and takes a duration or none. One graph serves
simulated, measured and replayed runs; a builder adds the nodes and knows what they stand for.

  ends          forward: when each node ends. Replay and fixed-order what-if are this with other durations.
  latest        backward: how late each node may end before the step grows. Slack is latest less end.
  find_causes   what ended at the instant at which a node began, and how the node waited for it
  walk_path     from a node back to the start of the step, each time by the first cause: the critical path
  find_effects  the nodes that began when a node ended, because of it
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, compress, islice
from operator import sub

from simcore.diagnostics import Cancelled, never_cancelled
from simcore.records import NamedTuple
from simcore.trace.repeats import PathNodes, Pattern, Repeat
from simcore.units import add_to_column, subtract_column

# The node that is over when the step begins.
START = 0
# How a node waits for another: it is behind it on its own track; it joins it; it receives it as a message;
# the stream or channel was busy with it; the queue of a network dimension served it first; a member of its
# collective came from it.
BEFORE, JOINS, RECEIVED, BUSY, QUEUED, ARRIVED = range(6)

_CHAINS_BETWEEN_CANCEL_CHECKS = 2**12
# Of chains of so many nodes on average, columns take no longer than lists.
_LONG_CHAIN = 64
# Of so many nodes a list takes 20 MB; of 2.6 million, a run of 1,024 ranks, it takes 104 MB and as long as a
# column.
_LARGE = 2**19
# Nodes of a chain that are taken at once.
_PART = 2**16
# A table for `translate`: 1 where a node begins a chain.
_BEGINS = bytes(begin == 0 for begin in range(256))


class Cause(NamedTuple):
    """A node that ended when another one began."""

    node: int
    """The node that ended."""
    why: int
    """How the other one waited for it: one of the constants above, never ARRIVED."""
    track: int
    """The track that waited: that of the waiting node, or of a member that came late."""


class ChainStep(NamedTuple):
    """A chain of nodes of a path, `first` to `node`, mostly a single one."""

    first: int
    """Its first node."""
    node: int
    """Its last node."""
    start: int
    """When it begins, ns."""
    end: int
    """When it ends, ns."""
    track: int
    """The track on which the path goes through it."""
    cause: Cause | None
    """Why it began, None where the step began."""
    repeat_path: PathNodes | None = None
    """The nodes of a repeat that the path goes through; None where it goes through all of the chain."""


class Graph:
    """Columns over the nodes from 1 on, each behind those that it waits for; node 0 is START.

    first, second: the nodes that a node waits for, START for none. why: how it waits for `second`; for
    `first` that is BEFORE, or `first` is a join of further waits. duration: the index, from 1, of its
    duration among those of a pass; a join takes no time and has -1 less its track instead. chained: 1 for a
    node that waits for the node before it alone, on the one track that it is on, and takes the duration
    behind that one's. A pass takes such a chain at once: of 41,552 nodes of seed 002, folded, 39,327 are
    chained. repeats: stretches that are equal to others, in their order. tracks: how many there are: rank
    classes or ranks. tracks_of: returns the tracks that a node is on, several for a collective; the first one
    is its name where no other track is asked about.
    """

    __slots__ = (
        "_edges", "_followers", "_heads", "_nexts", "chained", "duration", "first", "repeats", "second",
        "tracks", "tracks_of", "why",
    )  # fmt: skip

    def __init__(self, tracks: int, tracks_of: Callable[[int], Sequence[int]]) -> None:
        self.tracks = tracks
        self.tracks_of = tracks_of
        self.first = array("i")
        self.second = array("i")
        self.duration = array("i")
        self.why = bytearray()
        self.chained = bytearray()
        self.repeats: list[Repeat] = []
        self._heads: tuple[array[int], ...] | None = None
        self._followers: array[int] | None = None
        self._edges: array[int] | None = None
        self._nexts: array[int] | None = None

    def __len__(self) -> int:
        """The number of nodes without START."""
        return len(self.first)

    # -- building --------------------------------------------------------------------

    def add(self, duration: int, first: int, second: int = START, why: int = BUSY) -> int:
        """Adds a node that takes the duration with index `duration`, from 1; returns the node."""
        self.first.append(first)
        self.second.append(second)
        self.duration.append(duration)
        self.why.append(why)
        self.chained.append(0)
        return len(self.first)

    def add_line(self, durations: range, first: int) -> int:
        """Adds nodes each behind the one before, the first behind `first`; returns the first of them."""
        node, count = len(self.first) + 1, len(durations)
        self.first.append(first)
        self.first += array("i", range(node, node + count - 1))
        self.second += array("i", (START,)) * count
        self.duration += array("i", durations)
        self.why += bytes((BUSY,)) * count
        self.chained += bytes(min(count, 1)) + bytes((1,)) * (count - 1)
        return node

    def add_join(self, track: int, now: int, other: int, why: int) -> int:
        """Returns the node at which a track that was at node `now` has also waited for `other`."""
        if other in (now, START):
            return now
        self.first.append(now)
        self.second.append(other)
        self.duration.append(-1 - track)
        self.why.append(why)
        self.chained.append(0)
        return len(self.first)

    def add_rendezvous(self, arrivals: Iterable[tuple[int, int]]) -> int:
        """Returns the node at which all members of a collective have come.

        arrivals: (track, node it comes from), in the order in which equally late members are named.
        """
        members = iter(arrivals)
        _, over = next(members)
        for track, node in members:
            over = self.add_join(track, over, node, ARRIVED)
        return over

    # -- passes ----------------------------------------------------------------------

    def flatten(self, columns: Iterable[Sequence[int]]) -> array[int]:
        """Returns durations as the passes take them, ns: the columns in a row from 1 on, joins take 0."""
        parts = [
            column if isinstance(column, array) and column.typecode == "q" else array("q", column)
            for column in columns
        ]
        # Filled, not grown: of a million nodes that takes half the memory more.
        flattened = array("q", bytes(8)) * (1 + sum(map(len, parts)) + self.tracks)
        at = 1
        for part in parts:
            flattened[at : at + len(part)] = part
            at += len(part)
        return flattened

    def ends(
        self, durations: array[int], cancelled: Callable[[], bool] = never_cancelled
    ) -> list[int] | array[int]:
        """Returns when each node ends, ns; the first entry is START's 0. Raises `Cancelled`.

        durations: of `flatten`. The result is a list, which is half as fast again as an array; who retains it
        makes it an array (8 B a node, not 40). It is an array where most nodes are in repeats or in long
        chains, which are added at once, and of so many nodes that a list is no faster.
        """
        is_column = len(self.first) > _LARGE or self._is_in_stretches()
        end: list[int] | array[int] = array("q", (0,)) if is_column else [0]
        append = end.append
        chains, left = self._chains(), len(self._follower_counts())
        cache: dict[tuple[Pattern, bytes], array[int]] = {}
        for _ in range(0, left, _CHAINS_BETWEEN_CANCEL_CHECKS):
            if cancelled():
                raise Cancelled
            for first, second, duration, more in islice(chains, _CHAINS_BETWEEN_CANCEL_CHECKS):
                if more < 0:
                    repeat = self.repeats[first]
                    repeat_durations = repeat.own(durations)
                    key = repeat.pattern, repeat_durations.tobytes()
                    ends = cache.get(key)
                    if ends is None:
                        ends = cache[key] = repeat.pattern.ends(repeat_durations)
                    end.extend(add_to_column(ends, end[repeat.entry]))
                    continue
                first_end, other = end[first], end[second]
                append((first_end if first_end > other else other) + durations[duration])
                if more:
                    follow = durations[duration + 1 : duration + more + 1]
                    end.extend(accumulate(follow, initial=end.pop()))
        return end

    def _is_in_stretches(self) -> bool:
        """Returns whether most nodes are in repeats or in long chains."""
        return bool(self.repeats) or len(self.first) > _LONG_CHAIN * len(self._follower_counts())

    def _chains(self) -> Iterator[tuple[int, int, int, int]]:
        """Yields of each chain first, second and duration of the head, and how many nodes follow.

        A repeat is a chain that -1 nodes follow; its `first` is its index.
        """
        if len(self.first) > _LARGE and not self.repeats:
            is_head = self._head_flags()
            columns = [compress(column, is_head) for column in (self.first, self.second, self.duration)]
            return zip(*columns, self._follower_counts(), strict=True)
        return zip(*self._head_columns(), self._follower_counts(), strict=True)

    def _head_columns(self) -> tuple[array[int], ...]:
        """Returns first, second and duration of the heads of chains, kept: many passes go over one graph."""
        if self._heads is None:
            is_head = self._head_flags()
            first, second, duration = (
                array("i", compress(column, is_head)) for column in (self.first, self.second, self.duration)
            )
            repeats = (chain for chain, more in enumerate(self._follower_counts()) if more < 0)
            for repeat_id, chain in enumerate(repeats):
                first[chain], second[chain] = repeat_id, START
            self._heads = first, second, duration
        return self._heads

    def _follower_counts(self) -> array[int]:
        """Returns how many nodes follow the head of each chain, -1 for a repeat; kept."""
        if self._followers is None:
            is_head = self._head_flags()
            heads = array("i", compress(range(len(is_head)), is_head))
            heads.append(len(is_head))
            self._followers = array("i", map(sub, heads[1:], map((1).__add__, heads)))
            at = 0
            for repeat in self.repeats:
                at = bisect_left(heads, repeat.before, at)
                self._followers[at] = -1
        return self._followers

    def _head_flags(self) -> bytearray:
        """Returns by node, from the first on, 1 for each that begins a chain or a repeat."""
        is_head = self.chained.translate(_BEGINS)
        for repeat in self.repeats:
            is_head[repeat.before : repeat.last] = b"\1" + bytes(len(repeat.pattern) - 1)
        return is_head

    def _tail_flags(self) -> bytearray:
        """Returns by node, START first, 1 for each that ends a chain or a repeat, chains cut behind nodes for
        which others wait too. START and the last node are among them.
        """
        is_tail = self._head_flags() + b"\1"
        for first, second, _, more in self._chains():
            if more >= 0:
                is_tail[first] = is_tail[second] = 1
        for repeat in self.repeats:
            is_tail[repeat.entry] = 1
        for repeat in self.repeats:
            is_tail[repeat.before + 1 : repeat.last] = bytes(len(repeat.pattern) - 1)
        is_tail[START] = 1
        return is_tail

    def latest(
        self, durations: array[int], step_ns: int, cancelled: Callable[[], bool] = never_cancelled
    ) -> array[int]:
        """Returns how late each node may end with these durations, ns, so that none ends after `step_ns`."""
        late = array("q", (step_ns,)) * (len(self.first) + 1)
        is_tail = self._tail_flags()
        repeat_to = {repeat.last: repeat for repeat in self.repeats}
        cache: dict[tuple[Pattern, bytes], array[int]] = {}
        firsts, seconds, duration_ids = self.first, self.second, self.duration
        tail, chains = len(firsts), 0
        while tail != START:
            if not chains % _CHAINS_BETWEEN_CANCEL_CHECKS and cancelled():
                raise Cancelled
            chains += 1
            if tail in repeat_to:
                repeat = repeat_to[tail]
                repeat_durations = repeat.own(durations)
                key = repeat.pattern, repeat_durations.tobytes()
                behind = cache.get(key)
                if behind is None:
                    behind = cache[key] = repeat.pattern.longest_to_exit(repeat_durations)
                # Any other node that waits for a node of the repeat begins after its exit.
                by_node = subtract_column(late[repeat.exit], behind)
                late[repeat.before + 1 : repeat.last + 1] = by_node[1:]
                late[repeat.entry] = min(late[repeat.entry], by_node[0])
                tail = repeat.before
                continue
            before = is_tail.rfind(1, 0, tail)
            duration = duration_ids[before]
            starts = late[tail]
            for last in range(tail, before + 1, -_PART):
                # In a chain each node has to end before the one behind it begins.
                node = max(before + 1, last - _PART)
                back = memoryview(durations)[duration + last - before - 1 : duration + node - before - 1 : -1]
                chain = array("q", accumulate(back, sub, initial=starts))
                starts = chain[-1]
                chain.reverse()
                late[node : last + 1] = chain
            starts -= durations[duration]
            tail = before
            first, second = firsts[before], seconds[before]
            if starts < late[first]:
                late[first] = starts
            if starts < late[second]:
                late[second] = starts
        return late

    # -- who waits for whom ----------------------------------------------------------

    def is_join(self, node: int) -> bool:
        """Returns whether a node only joins others."""
        return node == START or self.duration[node - 1] < 0

    def start(self, node: int, ends: Sequence[int]) -> int:
        """Returns when a node begins, ns. ends: of a pass."""
        return max(ends[self.first[node - 1]], ends[self.second[node - 1]])

    def find_causes(self, node: int, ends: Sequence[int], own: int) -> list[Cause]:
        """Returns what ended when a node began, each node once; nothing where it begins with the step.

        own: the track that asks, one of those that the node is on. Nodes that ended at once come in this
        order: what that track waited for itself, in its order, then what kept the stream busy, then the other
        members of the collective in theirs.
        """
        pending = [(self.second[node - 1], self.why[node - 1], own), (self.first[node - 1], BEFORE, own)]
        return self._find_ended(pending, self.start(node, ends), ends, own)

    def find_blockers(self, node: int, ends: Sequence[int], own: int) -> list[Cause]:
        """Returns what ended when a track could go on from a node: that, or what a join waited for."""
        return self._find_ended([(node, BEFORE, own)], ends[node], ends, own)

    def _find_ended(
        self, pending: list[tuple[int, int, int]], when: int, ends: Sequence[int], own: int
    ) -> list[Cause]:
        """Returns the nodes behind joins that ended at `when`.

        pending: (node, how it is waited for, by which track), the last one first.
        """
        causes: list[Cause] = []
        while pending:
            node, why, track = pending.pop()
            if node == START or ends[node] != when:
                continue
            if not self.is_join(node):
                if why == BEFORE:
                    # Members that come from one node are one arrival, on the track that asks.
                    on = self.tracks_of(node)
                    track = own if own in on else track if track in on else on[0]
                causes.append(Cause(node, why, track))
                continue
            wait_kind, waiting_track = self.why[node - 1], -1 - self.duration[node - 1]
            # Last in, first out: `first` before `second`, so that a chain of joins gives its waits in order.
            pending.append(
                (self.second[node - 1], BEFORE if wait_kind == ARRIVED else wait_kind, waiting_track)
            )
            pending.append((self.first[node - 1], BEFORE, waiting_track))
        causes.sort(key=lambda cause: cause.track != own)
        return list({cause.node: cause for cause in reversed(causes)}.values())[::-1]

    def walk_path(
        self, last: int, ends: Sequence[int], track: int, cancelled: Callable[[], bool] = never_cancelled
    ) -> Iterator[ChainStep]:
        """Yields the chains that the end of `last`, on `track`, consists of, the last one first.

        From each the path goes on to the first of its causes; some take 0 ns. Raises `Cancelled`.
        """
        following = next(iter(self.find_blockers(last, ends, track)), None)
        steps = 0
        befores = [repeat.before for repeat in self.repeats]
        cache: dict[tuple[Pattern, int, bytes], PathNodes] = {}
        while following is not None:
            if not steps % _CHAINS_BETWEEN_CANCEL_CHECKS and cancelled():
                raise Cancelled
            steps += 1
            node = following.node
            track = self.track_of(following)
            repeat_id = bisect_left(befores, node) - 1
            if repeat_id >= 0 and node <= self.repeats[repeat_id].last:
                repeat = self.repeats[repeat_id]
                nodes = ends[repeat.before + 1 : repeat.last + 1]
                assert isinstance(nodes, array)
                begin = ends[repeat.entry]
                key = repeat.pattern, node - repeat.before, add_to_column(nodes, -begin).tobytes()
                way = cache.get(key)
                if way is None:
                    way = cache[key] = self._find_repeat_path(repeat, node, ends, track)
                first = repeat.before + way.first
                following = self.find_first_cause(first, begin, ends, track) if begin else None
                yield ChainStep(first, node, begin, ends[node], track, following, way)
                continue
            first = self.head(node)
            begin = self.start(first, ends)
            following = self.find_first_cause(first, begin, ends, track) if begin else None
            yield ChainStep(first, node, begin, ends[node], track, following)

    def _find_repeat_path(self, repeat: Repeat, node: int, ends: Sequence[int], track: int) -> PathNodes:
        """Returns the critical path through a repeat up to one of its nodes."""
        nodes: list[int] = []
        begins, whys = array("q"), array("i")
        while node > repeat.before:
            begin = self.start(node, ends)
            nodes.append(node - repeat.before)
            begins.append(begin - ends[repeat.entry])
            cause = self.find_first_cause(node, begin, ends, track)
            node = START if cause is None else cause.node
            whys.append(-1 if cause is None or node <= repeat.before else cause.why)
        durations = array("i", [repeat.pattern.duration[own - 1] for own in nodes])
        return PathNodes(nodes[-1], durations[::-1], begins[::-1], whys[::-1])

    def head(self, node: int) -> int:
        """Returns the first node of the chain that leads up to a node."""
        return self.chained.rfind(0, 0, node) + 1

    def find_first_cause(self, node: int, begin: int, ends: Sequence[int], own: int) -> Cause | None:
        """Returns the first of the causes of a node that began at `begin`, None where there are none."""
        before = self.first[node - 1]
        # By far the most frequent case: what its own track did just before is the first cause.
        if ends[before] == begin and not self.is_join(before) and own in self.tracks_of(before):
            return Cause(before, BEFORE, own)
        return next(iter(self.find_causes(node, ends, own)), None)

    def track_of(self, cause: Cause) -> int:
        """Returns the track on which a cause ran: the one that waited, or (of a message) its node's."""
        if cause.why == BEFORE:
            # The track of such a cause is one that its node is on.
            return cause.track
        on = self.tracks_of(cause.node)
        return cause.track if cause.track in on else on[0]

    def find_effects(self, node: int, ends: Sequence[int]) -> list[int]:
        """Returns the nodes, without joins, that waited for a node and began when it ended, in order."""
        edges, nexts = self._successors()
        followers: set[int] = set()
        visited = {node}
        pending = [node]
        while pending:
            at = pending.pop()
            edge = edges[at]
            while edge:
                follower = (edge + 1) // 2
                edge = nexts[edge]
                if follower in visited or self.start(follower, ends) != ends[node]:
                    continue
                visited.add(follower)
                if self.is_join(follower):
                    pending.append(follower)
                else:
                    followers.add(follower)
        return sorted(followers)

    def _successors(self) -> tuple[array[int], array[int]]:
        """Returns by node its first edge, and by edge the next one of the same node; computed once.

        Edge 2n - 1 is `first` of node n, edge 2n its `second`.
        """
        if self._edges is None or self._nexts is None:
            edges = array("i", bytes(4 * (len(self.first) + 1)))
            nexts = array("i", bytes(4 * (2 * len(self.first) + 1)))
            for edge, node in zip(range(2, 2 * len(self.first) + 1, 2), self.second, strict=True):
                nexts[edge], edges[node] = edges[node], edge
            for edge, node in zip(range(1, 2 * len(self.first), 2), self.first, strict=True):
                nexts[edge], edges[node] = edges[node], edge
            self._edges, self._nexts = edges, nexts
        return self._edges, self._nexts
