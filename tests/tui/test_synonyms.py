"""`:` knows words of the trade: each leads to a field, an action or a screen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from simcore.cluster.placement import crossed_dimensions, group_shape
from simcore.layout import Layout
from simcore.parameters import FLAGS
from simcore.records import replace
from tests.tui.made_runs import seed, small
from tui.app import WltuiApp
from tui.keys.actions import KeyAction, list_actions
from tui.palette import nearest_words, rank_matches
from tui.screens import all_bindings
from tui.search_index import SearchIndex
from tui.session import Session
from tui.synonyms import _MEANINGS


def searched(run: Any) -> tuple[SearchIndex, list[KeyAction]]:
    """The index of a run, and all actions."""
    app = cast(Any, SimpleNamespace(session=Session(run), runs=None, views={}))
    bindings = [*(one for several in all_bindings().values() for one in several), *WltuiApp.BINDINGS]
    return SearchIndex(app), list_actions(bindings, {})


def results(run: Any, typed: str) -> list[KeyAction]:
    """What the palette lists."""
    index, found = searched(run)
    return rank_matches([*found, *index.find(typed)], typed, index.meanings(typed))


def test_each_meaning_is_an_option_an_action_or_a_dimension() -> None:
    ids = {one.id for one in searched(seed())[1]} | {flag.option for flag in FLAGS} | {"inner", "outer"}
    assert {name for names in _MEANINGS.values() for name in names} - ids == set()


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("nvlink", "dim 0 bandwidth"), ("InfiniBand", "dim 1 bandwidth"), ("nic", "dim 1 bandwidth"),
        ("tp bandwidth", "dim 0 bandwidth"), ("dp bandwidth", "dim 1 bandwidth"),
        ("pp latency", "dim 1 latency"),
        ("mfu", "screen.summary"), ("straggler", "screen.summary"), ("worst rank", "screen.summary"),
        ("gradient accumulation", "--microbatches"), ("vpp", "--virtual-stages"),
    ],
)  # fmt: skip
def test_a_word_of_the_trade_leads_first_to_what_it_means(typed: str, first: str) -> None:
    assert results(seed(), typed)[0].id == first


def test_a_draft_on_a_network_that_is_too_small_for_its_ranks_can_be_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = seed().simulation
    whole = simulation.cluster
    too_small = replace(whole, dims=whole.dims[:1], algorithms=whole.algorithms[:1])
    assert too_small.npus < simulation.layout.world
    context = SimpleNamespace(cluster=too_small, layout=simulation.layout)
    monkeypatch.setattr(SearchIndex, "_form", (None, context, ()))
    assert searched(seed())[0].meanings("mfu") == ["screen.summary"]


def test_letters_in_order_match_nothing_and_the_nearest_words_are_named() -> None:
    assert results(small(), "zmn") == []
    index, found = searched(small())
    assert results(small(), "bandwitdh") == []
    assert "bandwidth" in nearest_words([*found, *index.find("")], "bandwitdh")


def test_a_group_carries_its_traffic_over_the_dimensions_of_its_shape() -> None:
    simulation = seed().simulation
    layout: Layout = simulation.layout
    crossed = crossed_dimensions(simulation.cluster, layout)
    assert crossed == {"tp": (0,), "dp": (1,), "pp": (1,)} | {
        kind: dims for kind, dims in crossed.items() if kind not in ("tp", "dp", "pp")
    }
    for kind, dims in crossed.items():
        assert dims == tuple(
            one.dimension for one in group_shape(simulation.cluster, next(layout.groups(kind))).dimensions
        )
