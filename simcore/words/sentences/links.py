"""The sentence on the links of executed traces whose messages share them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.messages.network import link_text
from simcore.units import byte_size, duration, largest_keys, percent, plural
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis


class BusiestLink(Sentence, frozen=True, kw_only=True):
    """The link that is busy longest."""

    rule = "busiest-link"

    step_ns: int
    links: int
    """How many links there are."""
    equally_busy: int
    """How many other links are as busy."""
    source: int
    """The rank that it comes from; negative for a switch."""
    target: int
    """The rank that it goes to; negative for a switch."""
    dimension: int | None
    """Its dimension; None where there is only one."""
    busy_ns: int
    """How long it is busy."""
    bytes: int
    queued_ns: int
    """How long all messages queue on all links."""

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
    """Yields a sentence on runs whose messages share links."""
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
