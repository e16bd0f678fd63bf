"""Shared ports: who gets what, and when it is over.

Seen to fail on these bugs, planted one at a time: the rate of a full port divided among all its
flows, frozen ones too; a flow's ports only those of its first member; no new rates when a flow ends.
"""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.networks.shared import Flow, PortNetwork, Transmission, alone_ns
from tests.sharing.naive_sharing import Sent, naive_ends

PLACES = 4
FULL = 8.0


def ends(sent: list[Sent], capacities: list[list[float]]) -> list[int]:
    """When each transmission is over on a `PortNetwork`."""
    network = PortNetwork(capacities)
    waiting = sorted(range(len(sent)), key=lambda number: sent[number].at)
    over = [-1] * len(sent)
    while True:
        coming = [network.next_ns(), sent[waiting[0]].at if waiting else None]
        known = [time for time in coming if time is not None]
        if not known:
            return over
        now = min(known)
        while True:
            if (due := network.next_ns()) is not None and due <= now:
                for token in network.finished(now):
                    assert isinstance(token, int)
                    over[token] = now
            elif waiting and sent[waiting[0]].at <= now:
                number = waiting.pop(0)
                _, transmission, senders, receivers, stream = sent[number]
                network.start(now, number, transmission, senders, receivers, stream)
            else:
                break
        network.settle(now)


def one(work_ns: int, rate: float = FULL, fixed_ns: int = 0) -> Transmission:
    return Transmission((Flow(fixed_ns, work_ns, rate, ((0, 1.0),)),))


def test_alone_a_transmission_has_its_full_rate() -> None:
    assert ends([Sent(5, one(100, fixed_ns=7), (0,), (1,), 1)], [[FULL]] * 2) == [112]


def test_two_at_one_port_have_half_each_and_the_longer_one_all_of_it_afterwards() -> None:
    """100 and 300 ns of bytes: at 200 the first is over, and 200 of the second are left."""
    sent = [Sent(0, one(100), (0,), (1,), 1), Sent(0, one(300), (0,), (2,), 2)]
    assert ends(sent, [[FULL]] * 3) == [200, 400]


def test_a_fixed_part_takes_nothing_of_a_port() -> None:
    """The second one's bytes come at 60: 60 of the first are gone, then both have half."""
    sent = [Sent(0, one(100), (0,), (1,), 1), Sent(0, one(100, fixed_ns=60), (0,), (2,), 2)]
    assert ends(sent, [[FULL]] * 3) == [140, 200]


def test_send_and_receive_are_full_duplex() -> None:
    sent = [Sent(0, one(100), (0,), (1,), 1), Sent(0, one(100), (1,), (0,), 2)]
    assert ends(sent, [[FULL]] * 2) == [100, 100]


def test_what_a_slow_member_leaves_the_others_take() -> None:
    """Max-min: at port 0 the collective gets 2 (place 1 has no more), so the transfer gets 6 of 8 till 60."""
    sent = [Sent(0, one(60, rate=2.0), (0, 1), (0, 1), 1), Sent(0, one(60), (0,), (2,), 6)]
    assert ends(sent, [[FULL], [2.0], [FULL]]) == [60, 75]


def test_a_collective_goes_as_its_slowest_member() -> None:
    """Place 1 sends a transfer at the same time: both members of the collective have half."""
    sent = [Sent(0, one(100), (0, 1), (0, 1), 1), Sent(0, one(50), (1,), (2,), 6)]
    assert ends(sent, [[FULL]] * 3) == [150, 100]


def test_phases_follow_each_other_and_chunks_take_turns() -> None:
    """Dimension 0 then 1, two chunks, one at a time on each: 10 + 20 + 20."""
    flows = (Flow(0, 10, FULL, ((0, 1.0),), 0), Flow(0, 20, FULL, ((1, 1.0),), 1))
    assert ends([Sent(0, Transmission(flows, 2, 1), (0,), (0,), 1)], [[FULL, FULL]]) == [50]


def test_active_chunks_share_the_port() -> None:
    flows = (Flow(3, 10, FULL, ((0, 1.0),), 0),)
    assert ends([Sent(0, Transmission(flows, 2, 2), (0,), (0,), 1)], [[FULL]]) == [23]


# Up to three dimensions with a queue each, crossed there and back or in any order.
WALKS = st.lists(st.integers(0, 2), min_size=1, max_size=6) | st.sampled_from([2, 3]).map(
    lambda dims: [*range(dims), *reversed(range(dims))]
)


@settings(max_examples=500)
@given(WALKS, st.data(), st.integers(1, 9), st.sampled_from([0.01, 0.1, 0.37, 0.9, 1.3]))
def test_chunks_alone_take_their_time_scaled_and_rounded_once(
    places: list[int], data: st.DataObject, chunks: int, scale: float
) -> None:
    """Whichever times a scale lets fall together. Seen to fail on these bugs: each phase scaled by itself;
    what falls together in the order in which it began."""
    times = st.tuples(st.sampled_from([0, 0, 1, 3]), st.integers(1, 40))
    flows = tuple(Flow(*data.draw(times), FULL, ((place, 1.0),), place) for place in places)
    whole = Transmission(flows, chunks, active_chunks=1)
    assert alone_ns(whole.scaled(scale), [FULL] * 3) == round(alone_ns(whole, [FULL] * 3) * scale)
    twice = whole.scaled(2.5).scaled(scale)
    assert alone_ns(twice, [FULL] * 3) == round(round(alone_ns(whole, [FULL] * 3) * 2.5) * scale)


FLOWS = st.builds(
    Flow,
    st.sampled_from([0, 0, 3, 40]),
    st.integers(0, 60),
    st.sampled_from([1.0, 2.5, FULL]),
    st.sampled_from([((0, 1.0),), ((1, 1.0),), ((0, 1.0), (1, 0.5))]),
)


@st.composite
def sent_by_all(draw: st.DrawFn) -> list[Sent]:
    found = []
    for number in range(draw(st.integers(1, 7))):
        flows = tuple(draw(st.lists(FLOWS, min_size=1, max_size=3)))
        members = st.lists(st.integers(0, PLACES - 1), min_size=1, max_size=3, unique=True).map(tuple)
        senders = draw(members)
        receivers = senders if draw(st.booleans()) else draw(members)
        # A stream of its own each: at a port no two of a stream are at a time.
        found.append(Sent(draw(st.integers(0, 80)), Transmission(flows), senders, receivers, number))
    return found


CAPACITIES = st.lists(
    st.tuples(st.sampled_from([FULL, 10.0, 12.5]), st.sampled_from([FULL, 20.0])).map(list),
    min_size=PLACES,
    max_size=PLACES,
)


@settings(max_examples=300)
@given(sent_by_all(), CAPACITIES)
def test_ends_are_those_of_a_naive_simulation_in_fractions(
    sent: list[Sent], capacities: list[list[float]]
) -> None:
    """Within 1 ns a flow: where a fraction ends on half a ns, floats may round to its other side."""
    for found, expected in zip(ends(sent, capacities), naive_ends(sent, capacities), strict=True):
        assert abs(found - expected) <= sum(len(one.transmission.flows) for one in sent)


@settings(max_examples=100)
@given(sent_by_all(), CAPACITIES)
def test_ports_never_carry_more_than_they_can(sent: list[Sent], capacities: list[list[float]]) -> None:
    """What all that crosses a port moves takes at least its bytes over the capacity; half a ns a flow."""
    over = ends(sent, capacities)
    for place in range(PLACES):
        for dimension in range(2):
            for direction in ("senders", "receivers"):
                moved = Fraction(0)
                flows = 0
                crossing = [one for one in sent if place in getattr(one, direction)]
                for one_sent in crossing:
                    for flow in one_sent.transmission.flows:
                        share = Fraction(dict(flow.shares).get(dimension, 0.0))
                        moved += flow.work_ns * Fraction(flow.rate) * share
                        flows += 1
                if crossing:
                    begin = min(one_sent.at for one_sent in crossing)
                    end = max(over[number] for number, one_sent in enumerate(sent) if one_sent in crossing)
                    most = (end - begin + flows) * Fraction(capacities[place][dimension])
                    assert moved <= most


@settings(max_examples=100)
@given(sent_by_all(), CAPACITIES)
def test_company_makes_no_transmission_faster_than_alone(
    sent: list[Sent], capacities: list[list[float]]
) -> None:
    for one_sent, end in zip(sent, ends(sent, capacities), strict=True):
        alone = sum(flow.fixed_ns + flow.work_ns for flow in one_sent.transmission.flows)
        assert end - one_sent.at >= alone - len(one_sent.transmission.flows)
