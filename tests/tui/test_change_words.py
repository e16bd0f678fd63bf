"""A change of the what-if table in words: what of them is left in less room."""

from __future__ import annotations

from simcore.trace.findings import WhatIf
from tests.tui.test_advice_lists import LAYOUT
from tui.change_words import change_name, memory_cells, memory_text

GB = 10**9


def test_a_change_without_room_keeps_what_tells_it_from_others() -> None:
    flags = "--schedule interleaved --virtual-stages 8 --stage-layout megatron"
    knob = WhatIf(flags, None, 90, flags=flags, meaning=LAYOUT)
    assert change_name(knob, (), 60) == "interleaved, virtual-stages 8, stage-layout megatron"
    assert change_name(knob, (), 46) == "interleaved, virtual-stages 8, layout megatron"
    assert change_name(knob, (), 40) == "interleaved, virtual 8, layout megatron"
    # What a schedule is made for is said in one way or the other, and of twice a batch that it is twice.
    words = "--schedule zb-v (full gain from 31 micro-batches on, here 16)"
    made = WhatIf(words, None, 90, flags="-")
    assert change_name(made, (), 55) == "zb-v (full gain from 31 micro-batches on, here 16)"
    assert change_name(made, (), 40) == "zb-v (full gain: 31+ mb, here 16)"
    words = "--microbatches 32 (twice the batch, the same work in 11.112 s)"
    twice = WhatIf(words, None, 90, flags="-", microbatches=32)
    assert change_name(twice, (), 62) == "if the batch may double (microbatches 32, 90 ns): same work in"
    assert change_name(twice, (), 55) == "if the batch may double (32 mb, 90 ns): same work in"
    assert change_name(twice, (), 50) == "if batch may double (32 mb, 90 ns): same work in"
    assert change_name(twice, (), 45) == "or 2x batch (32 mb, 90 ns): same work in"
    assert change_name(twice, (), 35) == "or 2x batch (32 mb): same work in"
    assert change_name(twice, (), 25) == "2x batch: same work in"
    peers = "rank 7 as fast as its peers"
    fast = WhatIf(f"{peers} (all its compute x0.4858)", None, 90, meaning="one factor")
    assert change_name(fast, (), 40) == peers
    assert change_name(fast, (), 60) == f"{peers} (all its compute x0.4858)"
    # That it does not fit is no meaning.
    flags = "--overlap-grad-reduce"
    small = WhatIf(f"{flags} (does not fit)", None, 90, flags=flags, meaning="m")
    assert change_name(small, (), 32).startswith("grad-overlap (does not fit)")
    flags = "--pp 2 --overlap-grad-reduce --global-batch 16"
    fits = WhatIf(f"{flags} (fits: 66.1 GB)", None, 90, flags=flags, meaning="m")
    # How much it needs has a column of its own.
    assert change_name(fits, (), 60) == "pp 2, overlap-grad-reduce, global-batch 16 (fits)"
    assert change_name(fits, (), 44) == "pp 2, grad-overlap, global-batch 16 (fits)"


def test_what_a_change_needs_has_a_column_where_it_is_known_and_has_room() -> None:
    knob = WhatIf("--schedule gpipe", None, 90, flags="--schedule gpipe", memory_bytes=66_320_000_000)
    unknown = WhatIf("thing", 80, 90)
    size = memory_cells([unknown, knob], 80)
    assert memory_text(knob, size) == " 66.3 GB"
    assert memory_text(unknown, size) == " " * size
    assert memory_cells([unknown], 80) == 0
    # Names of changes come before it.
    assert memory_cells([knob], 58) == 0
    assert memory_text(knob, 0) == ""


def test_a_caveat_loses_words_before_it_is_cut() -> None:
    name = "--schedule zb-h1 --overlap-param-gather (full gain from 4 micro-batches on, here 2)"
    change = WhatIf(name, None, 90, flags="--schedule zb-h1 --overlap-param-gather", meaning="assumed")
    assert change_name(change, (), 90).endswith("(full gain from 4 micro-batches on, here 2)")
    assert change_name(change, (), 58) == "zb-h1, overlap-param-gather (full gain: 4+ mb, here 2)"
    assert change_name(change, (), 48) == "zb-h1, overlap-param-gather (full gain: 4+ mb)"
    # The flag's name goes last, and what is left of it are words of it.
    assert change_name(change, (), 40) == "zb-h1, param-overlap (full gain: 4+ mb)"
    layout = WhatIf(
        "--stage-layout megatron (embedding on stage 0, loss on the last)", None, 90,
        flags="--stage-layout megatron", meaning="stage layout: ...",
    )  # fmt: skip
    assert change_name(layout, (), 66) == "stage-layout megatron (embedding on stage 0, loss on the last)"
    assert change_name(layout, (), 58) == "stage-layout megatron (embedding first, loss last)"
    assert change_name(layout, (), 48) == "layout megatron (embedding first, loss last)"
    assert change_name(layout, (), 30) == "layout megatron"
