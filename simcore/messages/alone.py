"""One collective alone, message by message: `wltui collective --network links`, and the prices of that
network.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.cluster import Cluster
from simcore.diagnostics import UsageError
from simcore.messages.clock import Clock, Fault
from simcore.messages.collectives import Communicator, RankCollectives, Rules
from simcore.messages.network import LinkByLink, LinkUse
from simcore.records import NamedTuple
from simcore.units import plural

# Some 200,000 messages of one hop are simulated in a second: more than these would take minutes.
MOST_MESSAGES = 20_000_000
_PER_SECOND = 200_000
_DEFAULTS = {"ring": "ring", "fully-connected": "direct", "switch": "halving-doubling"}


class Alone(NamedTuple):
    """When each member has finished, ns, and what the links carried."""

    ends: tuple[int, ...]
    links: list[LinkUse]


def make_rules(cluster: Cluster) -> Rules:
    """Returns the rules of collectives of a cluster, as the machines take them."""
    algorithms = {}
    for kind in ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"):
        names = []
        for dim, algorithm in zip(cluster.dims, cluster.algorithms_for(kind), strict=True):
            default = "direct" if kind == "ALLTOALL" else _DEFAULTS[dim.kind]
            if default == "halving-doubling" and dim.size & (dim.size - 1):
                default = "ring"
            names.append(algorithm or default)
        algorithms[kind] = tuple(names)
    return Rules(
        tuple(dim.size for dim in cluster.dims),
        algorithms,
        cluster.endpoint_delay_ns,
        cluster.local_mem_bandwidth,
        cluster.splits,
        cluster.active_chunks,
        1,
        cluster.optimization == "baseline",
    )


def run_collective(cluster: Cluster, ranks: Sequence[int], collective: str, size: int) -> Alone:
    """Runs a collective of `size` bytes of the whole buffer among `ranks`, which begin together.

    Raises `UsageError` for one of too many messages, or that never ends.
    """
    if len(ranks) < 2:
        return Alone((0,) * len(ranks), [])
    world = cluster.npus
    rules = make_rules(cluster)
    whole = len(ranks) == world
    # On some of the ranks each dimension has those of its positions that are in the group.
    group = Communicator(0, None) if whole else Communicator(1, tuple(ranks), True)
    share = -(-size // len(ranks)) if collective == "ALLGATHER" else size
    check_messages(estimate_messages(cluster, len(ranks), collective, rules), "the collective")
    clock = Clock(world)
    links = LinkByLink(clock, cluster.dims)
    owners = [RankCollectives(rank, clock, links, rules) for rank in ranks]
    ends = [-1] * len(ranks)

    def over(member: int) -> None:
        ends[member] = clock.now

    try:
        for member, owner in enumerate(owners):
            never = owner.start(collective, share, group, (), lambda member=member: over(member))  # type: ignore[misc]
            if never:
                raise UsageError(f"--network links: {never}")
        clock.run()
    except Fault as fault:
        raise UsageError(f"--network links: {fault.rule}; ASTRA-sim {fault.there} at this") from None
    if -1 in ends:
        why = next((owner.never for owner in owners if owner.never), "a rank waits for ever")
        raise UsageError(f"--network links: {why}")
    return Alone(tuple(ends), links.uses())


def estimate_messages(cluster: Cluster, members: int, collective: str, rules: Rules) -> int:
    """Returns about how many messages over links a collective sends, before it is run."""
    chunks = max(rules.splits or 1, 1)
    total = 0
    left = members
    for dim in cluster.dims:
        here = min(dim.size, left)
        left = -(-left // max(here, 1))
        if here < 2:
            continue
        each = 2 * (here - 1) if collective == "ALLREDUCE" else here * (here - 1) // 2 + 1
        hops = {"ring": max(here // 4, 1), "switch": 2, "fully-connected": 1}[dim.kind]
        total += each * hops * members * chunks
    return total


def check_messages(count: int, what: str) -> None:
    """Raises `UsageError` for more messages than are simulated, with the time that they would take."""
    if count <= MOST_MESSAGES:
        return
    seconds = round(count / _PER_SECOND)
    raise UsageError(
        f"--network links: {what} is about {plural(count, 'message')} over links, some {seconds} s: at most "
        f"{MOST_MESSAGES} are simulated; --network analytical has a closed form"
    )
