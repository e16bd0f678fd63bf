"""The page of a run on a network with links has all ports by tier, and the hottest over time."""

from __future__ import annotations

import re

from simcore.render.page.ports import ports_section
from tests.flows.test_ports import ports_of, shared_run
from tests.tui.made_runs import run, small


def test_every_port_has_a_cell_that_says_what_it_carried() -> None:
    section, ports = ports_section(shared_run()), ports_of(shared_run())
    titles = re.findall("<title>(.*?)</title>", section.partition("hottest")[0])
    assert {title.partition(":")[0] for title in titles} == {
        port.name.replace(">", "&gt;") for port in ports.all
    }
    hottest = ports.all[ports.by_heat[0]]
    title = next(title for title in titles if title.startswith(hottest.name.replace(">", "&gt;")))
    assert f"up to {hottest.most} at once" in title
    assert "ep experts" in title


def test_the_darkest_cell_is_that_of_the_hottest_port() -> None:
    picture = ports_section(shared_run()).partition("hottest")[0]
    ports = ports_of(shared_run())
    name = ports.all[ports.by_heat[0]].name.replace(">", "&gt;")
    assert re.search(f'fill-opacity="1.00" [^>]*><title>{name}:', picture)


def test_messages_have_a_picture_and_no_times_and_other_runs_have_neither() -> None:
    messages = ports_section(run(shared_run().simulation.workload, network="links"))
    assert messages.count("<svg") == 1
    assert ports_section(small()) == ""
