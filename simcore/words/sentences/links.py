"""The links of executed traces, where their messages share these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.messages.network import link_text
from simcore.units import byte_size, duration, largest_keys, percent, plural
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis


class BusiestLink(Sentence, frozen=True, kw_only=True):
    """The link that is busy longest, ns, of how many, and how many others are as busy. source, target: ranks,
    or a switch where negative; dimension: None where there is one alone. queued_ns: of all messages on all
    links.
    """

    rule = "busiest-link"

    step_ns: int
    links: int
    equally_busy: int
    source: int
    target: int
    dimension: int | None
    busy_ns: int
    bytes: int
    queued_ns: int

    @property
    def text(self) -> str:
        equals_text = f", with {plural(self.equally_busy, 'other')} as busy," if self.equally_busy > 0 else ""
        where = "" if self.dimension is None else f" on dimension {self.dimension}"
        queued = (
            f"messages queue {duration(self.queued_ns)} in all" if self.queued_ns else "no message queues"
        )
        return (
            f"The busiest of {plural(self.links, 'link')}{equals_text} is that from "
            f"{link_text(self.source, self.target)}{where}: {percent(self.busy_ns, self.step_ns)} % of the "
            f"step, {byte_size(self.bytes)}; {queued}."
        )


def find_busiest_link(results: ExecutionAnalysis) -> Iterator[BusiestLink]:
    """Speaks of runs whose messages share links."""
    links = results.executed.links
    if not links:
        return
    busiest = max(links, key=lambda link: (link.busy_ns, -link.source))
    yield BusiestLink(
        step_ns=results.step_time_ns,
        links=len(links),
        equally_busy=len(largest_keys({link_id: link.busy_ns for link_id, link in enumerate(links)})) - 1,
        source=busiest.source,
        target=busiest.target,
        dimension=busiest.dimension if len(results.executed.cluster.dims) > 1 else None,
        busy_ns=busiest.busy_ns,
        bytes=busiest.bytes,
        queued_ns=sum(link.queued_ns for link in links),
    )
