"""What each link of the network carried, under `--network links`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.section import Field, PageAsked, field_lines
from simcore.units import byte_size, column_unit, in_unit, percent, plural

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.messages.network import LinkUse

_SHOWN = 16


def _fields(step_ns: int) -> list[Field[LinkUse]]:
    # Imported here: of the other networks nothing of messages is loaded.
    from simcore.messages.network import link_words

    unit_ns, unit = column_unit(step_ns)
    return [
        Field("link", lambda link_use: link_words(link_use.source, link_use.target), left=True),
        Field("dim", lambda link_use: str(link_use.dimension)),
        Field("messages", lambda link_use: str(link_use.messages)),
        Field("bytes", lambda link_use: byte_size(link_use.bytes)),
        Field(f"busy {unit}", lambda link_use: in_unit(link_use.busy_ns, unit_ns)),
        Field(f"queued {unit}", lambda link_use: in_unit(link_use.queued_ns, unit_ns)),
        Field("% busy", lambda link_use: percent(link_use.busy_ns, step_ns)),
    ]


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line a link, the busiest first; none of a network without links."""
    links = run.links
    if links is None:
        return []
    order = sorted(links, key=lambda link: (-link.busy_ns, link.dimension, link.source, link.target))
    shown = order if asked.every_layer or asked.everything else order[:_SHOWN]
    left = len(order) - len(shown)
    return [
        f"What {plural(len(links), 'link')} carried, message by message, first come first served; queued: "
        "how long messages waited",
        *field_lines(_fields(run.step_time_ns), shown),
        *([f"  and {plural(left, 'link')} more (--json has all)"] if left else []),
    ]


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`links`: messages, bytes, busy and queued ns of each; null of execution traces on a network without
    them, and no key of other runs there.
    """
    if run.links is None:
        return {} if run.figures.nodes is None else {"links": None}
    return {"links": [link._asdict() for link in run.links]}
