"""The sections on how busy each stream is, each dimension with its bytes, each link, and the experts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.render.report.section import (
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    keys,
    remaining_line,
)
from simcore.trace.figures import StreamUse
from simcore.trace.track import ranks_of
from simcore.units import (
    byte_size,
    change_percent,
    column_unit,
    duration,
    format_number,
    in_unit,
    percent,
    plural,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simcore.flows.traffic import FlowReport
    from simcore.messages.network import LinkUse
    from simcore.trace.contexts import DimensionUse, JobFigures, LayerImbalance, TwoJobs
    from simcore.trace.ports import Ports
    from simcore.trace.run import Run

# The most streams of a table: execution traces have one for each group.
_MOST_STREAMS = 16
# The figures of a stream on a rank.
OF_A_RANK: list[Field[StreamUse]] = keys("busy_ns", "overlapped_ns", "exposed_ns")
# The mean of a stream over all ranks, and the ns of the rank that is busy longest on it.
_Mean = tuple[StreamUse, int]


def _stream_fields(run: Run) -> list[Field[_Mean]]:
    step = run.step_time_ns
    unit_ns, unit = column_unit(max((most for _, most in run.figures.mean_streams), default=0))

    def figure(ns: int) -> str:
        return in_unit(ns, unit_ns, run.figures.resolution_ns)

    def format_unless_compute(use: StreamUse, ns: int | None) -> str:
        return "" if use.kind == "compute" else "-" if ns is None else figure(ns)

    return [
        Field("stream", lambda pair: printable(pair[0].stream, 40), "stream", lambda pair: pair[0].stream,
              left=True),
        Field(f"busy {unit}", lambda pair: figure(pair[0].busy_ns), "busy_ns", lambda pair: pair[0].busy_ns),
        Field(
            "% of step", lambda pair: percent(pair[0].busy_ns, step),
            "share", lambda pair: pair[0].busy_ns / step if step else 0.0,
        ),
        Field("most %", lambda pair: percent(pair[1], step)),
        Field(
            "beside compute", lambda pair: format_unless_compute(pair[0], pair[0].overlapped_ns),
            "overlapped_ns", lambda pair: pair[0].overlapped_ns,
        ),
        Field(
            "exposed", lambda pair: format_unless_compute(pair[0], pair[0].exposed_ns),
            "exposed_ns", lambda pair: pair[0].exposed_ns,
        ),
        Field(key="most_busy_ns", value=lambda pair: pair[1]),
    ]  # fmt: skip


def _dimension_fields(run: Run) -> list[Field[DimensionUse]]:
    step = run.step_time_ns
    unit_ns, unit = column_unit(max((use.busy_ns for use in run.network.dimensions), default=0))

    def name(use: DimensionUse) -> str:
        return f"{use.index} {run.network.dims[use.index].kind} {run.network.dims[use.index].size}"

    def most(use: DimensionUse) -> str:
        kind = max(use.by_kind, key=lambda kind: use.by_kind[kind].bytes, default=None)
        return "" if kind is None else f"{percent(use.by_kind[kind].bytes, use.bytes)} % {kind}"

    return [
        Field("dimension", name, left=True),
        Field("bytes", lambda use: byte_size(use.bytes), "bytes"),
        Field("mean", lambda use: byte_size(use.mean_bytes), "mean_bytes"),
        Field(f"busy {unit}", lambda use: in_unit(use.busy_ns, unit_ns), "busy_ns"),
        Field(key="mean_busy_ns"),
        Field(
            "% of step", lambda use: percent(use.busy_ns, step),
            "share", lambda use: use.busy_ns / step if step else 0.0,
        ),
        Field(key="ranks", value=lambda use: ranks_of(run.tracks, use.rank_class).text()),
        Field(
            "most by", most,
            "by_kind", lambda use: {kind: load._asdict() for kind, load in use.by_kind.items()}, left=True,
        ),
    ]  # fmt: skip


def _stream_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each stream, each dimension and the busiest port.

    Streams are listed where something communicates, dimensions where something is sent over one.
    """
    streams, dimensions, page = run.figures.mean_streams, run.network.dimensions, []
    if len(streams) > 1:
        displayed_streams = streams if options.every_layer else streams[:_MOST_STREAMS]
        page += [
            "How busy each stream is, the mean of all ranks",
            *field_lines(_stream_fields(run), displayed_streams),
        ]
        page += remaining_line(len(streams) - len(displayed_streams), "more streams", "--all-layers has all")
    if any(use.bytes for use in dimensions):
        title = "What a rank sends over each dimension, and how long its port is busy: "
        title += "the rank that sends most"
        page += [*([""] if page else []), title, *field_lines(_dimension_fields(run), dimensions)]
        # The rank that sends most may not be the one whose port is slow.
        worst = run.figures.worst_link
        page += [] if worst is None else [f"  worst link  {worst.words}"]
    return page


def _stream_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `streams`, `dimensions` and `worst_link`: the busiest port and the factor on its bandwidth."""
    port, worst = run.network.busiest_port, None
    if port is not None:
        ranks = ranks_of(run.tracks, port.rank_class).text()
        worst = {"dimension": port.index, "ranks": ranks, "busy_ns": port.busy_ns, "factor": port.factor}
    return {
        "streams": field_values(_stream_fields(run), run.figures.mean_streams),
        "dimensions": field_values(_dimension_fields(run), run.network.dimensions),
        "worst_link": worst,
    }


USAGE: Section[Run] = Section("usage", _stream_lines, _stream_json)


_MOST_LINKS = 16
# The most names of ports that two jobs share.
_MOST_SHARED = 8


def _link_fields(step_ns: int) -> list[Field[LinkUse]]:
    # Imported here: other networks need nothing of messages.
    from simcore.messages.network import link_text

    unit_ns, unit = column_unit(step_ns)
    return [
        Field("link", lambda link_use: link_text(link_use.source, link_use.target), left=True),
        Field("dim", lambda link_use: str(link_use.dimension)),
        Field("messages", lambda link_use: str(link_use.messages)),
        Field("bytes", lambda link_use: byte_size(link_use.bytes)),
        Field(f"busy {unit}", lambda link_use: in_unit(link_use.busy_ns, unit_ns)),
        Field(f"queued {unit}", lambda link_use: in_unit(link_use.queued_ns, unit_ns)),
        Field("% busy", lambda link_use: percent(link_use.busy_ns, step_ns)),
    ]


def _link_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each link, the busiest first; none for a network without links."""
    links = run.network.links
    if links is None:
        return []
    order = sorted(links, key=lambda link: (-link.busy_ns, link.dimension, link.source, link.target))
    displayed_links = order if options.every_layer or options.everything else order[:_MOST_LINKS]
    remaining_count = len(order) - len(displayed_links)
    return [
        f"What {plural(len(links), 'link')} carried, message by message, first come first served; queued: "
        "how long messages waited",
        *field_lines(_link_fields(run.step_time_ns), displayed_links),
        *([f"  and {plural(remaining_count, 'link')} more (--json has all)"] if remaining_count else []),
    ]


def _link_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `links`: messages, bytes, busy and queued ns of each.

    On a network without links it is null for execution traces, and no key for other runs.
    """
    if run.network.links is None:
        return {} if run.figures.nodes is None else {"links": None}
    return {"links": [link._asdict() for link in run.network.links]}


LINKS: Section[Run] = Section("links", _link_lines, _link_json)


def port_fields(ports: Ports) -> list[Field[int]]:
    """Returns the columns of the ports of a topology, by their number."""

    def share(part: float) -> str:
        return f"{100 * part:.1f}"

    def most_of(index: int) -> str:
        purposes = ports.purposes(index)
        text = printable(f"{purposes[0][0]} {purposes[0][1]}".strip(), 30) if purposes else ""
        return f"{text}, {len(purposes) - 1} more" if len(purposes) > 1 else text

    of = ports.all
    return [
        Field("port", lambda index: of[index].name, left=True),
        Field("Gb/s", lambda index: format_number(of[index].gbps)),
        Field("bytes", lambda index: byte_size(of[index].bytes)),
        Field("flows", lambda index: str(of[index].sends)),
        Field("% load", lambda index: share(ports.mean_load(index))),
        Field("% busy", lambda index: share(ports.share(index))),
        Field("% full", lambda index: share(ports.held_share(index))),
        Field("mean flows", lambda index: f"{of[index].mean:.1f}"),
        Field("most", lambda index: str(of[index].most)),
        Field("marks", lambda index: "yes" if of[index].is_marked else ""),
        Field("most of", most_of, left=True),
    ]


def port_lines(ports: Ports, report: FlowReport, everything: bool, slowed_ns: int | None) -> list[str]:
    """Returns a line for each port, the hottest first, and where congestion control slows flows down.

    slowed_ns: when all is over with it, None where that is not told.
    """
    order = ports.by_heat
    displayed_ports = order if everything else order[:_MOST_LINKS]
    remaining_count = len(order) - len(displayed_ports)
    fields = [field for field in port_fields(ports) if ports.has_purposes or field.heading != "most of"]
    whose = f"{len(order)} of {plural(len(ports.all), 'port')}"
    if ports.classes:
        whose = f"{plural(len(order), 'port')} of one rank of each of {plural(ports.classes, 'class')}"
    lines = [
        f"What {whose} carried in {plural(report.flows, 'flow')}; "
        "load: of what it could carry; full: it held some back",
        *field_lines(fields, displayed_ports),
    ]
    if remaining_count:
        lines.append(f"  and {plural(remaining_count, 'port')} more (--json has all)")
    if ports.congestion:
        if report.is_slowed:
            lines.append(ports.congestion)
        elif slowed_ns is not None:
            lines.append(f"{ports.congestion}: all takes {duration(slowed_ns)} then")
        else:
            # Imported here: few runs have such ports.
            from simcore.flows.packets import has_few_packets

            why = "which --congestion dcqcn shows"
            if report.control != "DCQCN":
                why = "which is not modelled: ns-3 was up to twice as slow under DCQCN"
            elif report.congestion != "none" or not has_few_packets(report):
                why = f"but {report.packet_hops} packets times links are too many to simulate"
            lines.append(f"{ports.congestion}, {why}")
    return lines


def _port_details(ports: Ports, index: int) -> dict[str, Any]:
    """Returns name, tier, load and what a port carried for which group and layer, where that is known."""
    port = ports.all[index]
    values: dict[str, Any] = {
        "name": port.name,
        "tier": ports.tiers[port.tier].name,
        "load": round(ports.mean_load(index), 6),
    }
    if ports.has_purposes:
        values["of"] = [
            {"group": group, "layer": layer, "bytes": size} for group, layer, size in ports.purposes(index)
        ]
    return values


def port_values(report: FlowReport, ports: Ports, end_ns: int, slowed_ns: int | None) -> dict[str, Any]:
    """Returns `last_flow_end_ns`, `flows`, `links` and `congestion`: the ports at which it slows flows down,
    and the range of the end without and with it.
    """
    return {
        "last_flow_end_ns": report.last_flow_end_ns,
        "flows": report.flows,
        "links": [port.as_values() | _port_details(ports, port.link) for port in report.ports],
        "congestion": {
            "control": report.control or None,
            "ports": [[port.source, port.target] for port in report.marked_ports()],
            "is_slowed": report.is_slowed,
            "range_ns": None if slowed_ns is None else sorted((end_ns, slowed_ns)),
        },
    }


def _job_lines(two_jobs: TwoJobs, ports: Ports) -> list[str]:
    """Returns a line for each of two jobs, and the ports that carried flows of both."""
    fields: list[Field[JobFigures]] = [
        Field("job", lambda job: printable(job.path, 60), left=True),
        Field("GPUs", lambda job: job.gpus.text(), left=True),
        Field("alone", lambda job: duration(job.alone_ns)),
        Field("together", lambda job: duration(job.together_ns)),
        Field("change", lambda job: change_percent(job.alone_ns, job.together_ns) or "none"),
        Field("assumed, of its file", lambda job: job.assumed, left=True),
    ]
    shared = [ports.all[index].name for index in two_jobs.shared_ports]
    names = ", ".join(shared[:_MOST_SHARED]) + (" ..." if len(shared) > _MOST_SHARED else "")
    return [
        "Two jobs on one topology, which begin together",
        *field_lines(fields, two_jobs.jobs),
        f"  {plural(len(shared), 'port')} carried flows of both{': ' if names else ''}{names}",
        "",
    ]


def _job_values(two_jobs: TwoJobs, ports: Ports) -> dict[str, Any]:
    jobs = [
        {
            "file": job.path,
            "gpus": job.gpus.text(),
            "alone_ns": job.alone_ns,
            "together_ns": job.together_ns,
            "assumed": job.assumed,
            "slowdown": job.together_ns / job.alone_ns if job.alone_ns else None,
        }
        for job in two_jobs.jobs
    ]
    return {"jobs": jobs, "shared_ports": [list(ports.all[index].ends) for index in two_jobs.shared_ports]}


def _flow_lines(run: Run, options: PageOptions) -> list[str]:
    report, ports = run.network.flow_report, run.network.ports
    everything = options.every_layer or options.everything
    if report is None or ports is None:
        return []
    two_jobs = run.network.two_jobs
    jobs = [] if two_jobs is None else _job_lines(two_jobs, ports)
    return [*jobs, *port_lines(ports, report, everything, run.network.slowed_step_ns)]


def _flow_json(run: Run, options: PageOptions) -> dict[str, Any]:
    report, two_jobs, ports = run.network.flow_report, run.network.two_jobs, run.network.ports
    if report is None or ports is None:
        return {}
    jobs = {} if two_jobs is None else {"two_jobs": _job_values(two_jobs, ports)}
    return port_values(report, ports, run.step_time_ns, run.network.slowed_step_ns) | jobs


FLOWS: Section[Run] = Section("flows", _flow_lines, _flow_json)


_MAX_POSITIONS = 8


def _expert_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each position in the expert groups, the fullest first; none without
    uneven experts.
    """
    imbalance = run.model.imbalance
    if imbalance is None:
        return []
    mean = sum(imbalance.tokens) / len(imbalance.tokens)
    fields: list[Field[tuple[int, int]]] = [
        Field("place in ep", lambda pair: str(pair[0])),
        Field("tokens", lambda pair: str(pair[1])),
        Field("of the mean", lambda pair: f"{pair[1] / mean:.2f}" if mean else ""),
    ]
    fullest = sorted(enumerate(imbalance.tokens), key=lambda pair: (-pair[1], pair[0]))
    more = remaining_line(len(fullest) - _MAX_POSITIONS, "with fewer")
    mean_text = ", the mean of the layers" if imbalance.by_layer else ""
    return [
        f"Tokens that the experts of a rank get in a micro-batch, by its place in an expert group{mean_text}",
        *field_lines(fields, fullest[:_MAX_POSITIONS]),
        *more,
        *_layer_lines(imbalance.by_layer),
    ]


def _layer_lines(layers: Sequence[LayerImbalance]) -> list[str]:
    """Returns a line for each of the layers with the least even loads; none where all layers are alike."""
    if not layers:
        return []
    fields: list[Field[LayerImbalance]] = [
        Field("layer", lambda line: str(line.layer)),
        Field("fullest place", lambda line: str(line.hot_position)),
        Field("of the mean", lambda line: f"{line.max_over_mean:.2f}"),
    ]
    uneven = sorted(layers, key=lambda line: (-line.max_over_mean, line.layer))
    more = remaining_line(len(uneven) - _MAX_POSITIONS, "with more even loads", "--json has all")
    return ["The layers with the least even loads", *field_lines(fields, uneven[:_MAX_POSITIONS]), *more]


def _expert_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `imbalance` of a run with uneven experts; an ns is None where finding it would take long."""
    imbalance = run.model.imbalance
    if imbalance is None:
        return {}
    names, capacity = ("factor", "step_time_ns", "dropped"), imbalance.capacity
    return {
        "imbalance": {
            "hot_rank": imbalance.hot_rank,
            "max_over_mean": imbalance.max_over_mean,
            "lost_ns": imbalance.lost_ns,
            "dropped": imbalance.dropped,
            "balanced_placement_ns": imbalance.placed_ns,
            "capacity": None if capacity is None else dict(zip(names, capacity, strict=True)),
            "tokens": list(imbalance.tokens),
            **({"layers": [line._asdict() for line in imbalance.by_layer]} if imbalance.by_layer else {}),
        }
    }


IMBALANCE: Section[Run] = Section("imbalance", _expert_lines, _expert_json)
