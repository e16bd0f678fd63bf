"""Rates are max-min fair: against a slow program that raises all of them together in small exact steps."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from simcore.flows.fair_shares import fair_rates

Case = tuple[list[list[tuple[int, float]]], list[int], list[float]]


def make_case(seed: int) -> Case:
    """Bundles on random links, some with caps, some with more than one share of a link."""
    chance = random.Random(seed)
    links = chance.randint(1, 8)
    shares = [chance.choice([0.125, 0.25, 0.5, 1.0]) for _ in range(links)]
    uses, counts, caps = [], [], []
    for _ in range(chance.randint(1, 12)):
        path = chance.sample(range(links), chance.randint(1, links))
        entries = [(link, shares[link]) for link in path]
        if chance.random() < 0.3:
            # Acknowledgements of a flow take a little of another link, or of one of its own.
            entries.append((chance.randrange(links), 0.0078125))
        uses.append(entries)
        counts.append(chance.choice([1, 1, 2, 5]))
        caps.append(chance.choice([float("inf"), float("inf"), 0.25, 1.5]))
    return uses, counts, caps


def progressive_filling(case: Case) -> list[Fraction]:
    """The rates, raised together: at each level those stop that a full link or their cap holds back."""
    uses, counts, caps = case
    rates = [Fraction(0)] * len(uses)
    rising = set(range(len(uses)))

    def load(link: int, of: set[int]) -> Fraction:
        return sum(
            (Fraction(share) * counts[i] * (1 if of is rising else rates[i])
             for i in of for other, share in uses[i] if other == link),
            Fraction(0),
        )  # fmt: skip

    links = {link for entries in uses for link, _ in entries}
    while rising:
        everyone = set(range(len(uses)))
        steps = [(1 - load(link, everyone)) / load(link, rising) for link in links if load(link, rising)]
        steps += [Fraction(caps[i]) - rates[i] for i in rising if caps[i] != float("inf")]
        step = min(steps)
        for i in rising:
            rates[i] += step
        full = {link for link in links if load(link, everyone) == 1}
        rising = {i for i in rising if rates[i] != caps[i] and not any(link in full for link, _ in uses[i])}
    return rates


@pytest.mark.parametrize("seed", range(150))
def test_rates_are_those_of_progressive_filling(seed: int) -> None:
    case = make_case(seed)
    rates, *_ = fair_rates(*case)
    assert rates == pytest.approx([float(rate) for rate in progressive_filling(case)], rel=1e-9)


@pytest.mark.parametrize("seed", range(150))
def test_no_link_carries_more_than_it_can_and_each_flow_has_a_full_one(seed: int) -> None:
    uses, counts, caps = case = make_case(seed)
    rates, bottlenecks, full_links = fair_rates(*case)
    loads: dict[int, float] = {}
    for entries, count, rate in zip(uses, counts, rates, strict=True):
        for link, share in entries:
            loads[link] = loads.get(link, 0.0) + share * count * rate
    assert max(loads.values()) <= 1 + 1e-9
    assert full_links == {link for link, load in loads.items() if load > 1 - 1e-9}
    for entries, rate, cap, link in zip(uses, rates, caps, bottlenecks, strict=True):
        if link < 0:
            assert rate == cap
        else:
            assert loads[link] == pytest.approx(1, rel=1e-9)
            assert link in [other for other, _ in entries]
            assert rate <= cap


@pytest.mark.parametrize("seed", range(80))
def test_the_slowest_flow_gains_where_links_are_faster(seed: int) -> None:
    uses, counts, caps = make_case(seed)
    faster = [[(link, share / 2) for link, share in entries] for entries in uses]
    assert min(fair_rates(faster, counts, caps)[0]) >= min(fair_rates(uses, counts, caps)[0])
