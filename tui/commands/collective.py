"""`wltui collective`: one collective on an idle network, as text, table or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from simcore.cluster import Cluster, ClusterParameters, GroupShape, choose_cluster, group_shape
from simcore.collectives import (
    NAMES,
    CompletionTimes,
    algorithm_bandwidth,
    bus_bandwidth,
    completion_times,
    explain_collective,
)
from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.parameter_values.values import text_value
from simcore.parameters import FLOW_FIELDS, Parameters, flag_of
from simcore.ranks import RankSet
from simcore.units import byte_size, duration, percent
from tui.commands.arguments import Parser, add_parameters, parse_parameters, parse_ranks, parse_sizes

if TYPE_CHECKING:
    from simcore.flows.traffic import FlowReport
    from simcore.messages.network import LinkUse

SCHEMA = "wltui.collective/1"
_MOST_LINKS = 8
_NETWORKS = ("analytical", "links", "flows")
_COLLECTIVES = {name: collective for collective, name in NAMES.items()}
_DESCRIPTION = (
    "Time one collective alone on an idle network: when its first and its last rank is done, and its "
    "bandwidths as nccl-tests defines them. A range of sizes (1KiB..1GiB) gives a table, each size twice the "
    "one before."
)


def build_parser() -> Parser:
    """Returns the parser of `wltui collective`."""
    parser = Parser(prog="wltui collective", description=_DESCRIPTION)
    parser.add_argument("collective", metavar="COLLECTIVE", help=", ".join(_COLLECTIVES))
    parser.add_argument(
        "--size", metavar="BYTES", required=True,
        help="of the whole buffer (64MiB, 1.5GB, 4096; what an all-gather gathers), or a range 1KiB..1GiB",
    )  # fmt: skip
    parser.add_argument(
        "--ranks", metavar="RANKS",
        help="the group, for example 0-7 or 0-1023+8*128 (default: all ranks of a cluster that is given, "
        "one server, rack or torus plane of a preset)",
    )  # fmt: skip
    parser.add_argument(
        "--network",
        metavar="MODEL",
        help="analytical, in closed form (default), links: message by message, each link a FIFO, or flows: "
        "on the links of a topology",
    )
    parser.add_argument(
        "--every-group",
        action="store_true",
        help="with flows: run in all groups like RANKS at once, moved over the cluster",
    )
    for name in FLOW_FIELDS:
        flag = flag_of(name)
        parser.add_argument(flag.option, metavar=flag.metavar, help=flag.help)
    parser.add_argument("--json", action="store_true", help=f"the figures as JSON (schema {SCHEMA})")
    add_parameters(parser, only="cluster")
    return parser


def main(words: list[str]) -> int:
    """Prices a collective and prints it. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    if arguments.collective not in _COLLECTIVES:
        raise UsageError(
            f"COLLECTIVE {printable(arguments.collective, 60)}: one of {', '.join(_COLLECTIVES)} is expected"
            f"{did_you_mean(arguments.collective, _COLLECTIVES)}"
        )
    if arguments.network not in (None, *_NETWORKS):
        network_name = printable(arguments.network, 60)
        raise UsageError(f"--network {network_name}: one of {', '.join(_NETWORKS)} is expected")
    collective = _COLLECTIVES[arguments.collective]
    sizes = parse_sizes("--size", arguments.size)
    choice = choose_cluster(parse_parameters(arguments).part(ClusterParameters))
    if arguments.ranks is not None:
        ranks = parse_ranks("--ranks", arguments.ranks)
    else:
        ranks = RankSet.of(range(choice.npus or _inner_npus(choice.cluster(1))))
    rank_ids = sorted(ranks)
    cluster = choice.cluster(rank_ids[-1] + 1)
    for diagnostic in choice.diagnostics:
        print(diagnostic.text(), file=sys.stderr)
    shape = group_shape(cluster, rank_ids)
    if shape.is_flat:
        dimension = f"dimension {shape.dimensions[0].dimension}"
        message = f"no grid of the dimensions, priced as one flat group on {dimension}, the slowest crossed"
        print(f"wltui: note --ranks: {message}", file=sys.stderr)
    links: list[LinkUse] | None = None
    report: FlowReport | None = None
    if arguments.network != "flows":
        options = [flag_of(name).option for name in FLOW_FIELDS if getattr(arguments, name) is not None]
        options += ["--every-group"] * arguments.every_group
        if options:
            raise UsageError(f"{options[0]}: is of --network flows")
    if arguments.network == "links":
        from simcore.messages.alone import run_collective

        alone = [run_collective(cluster, rank_ids, collective, size) for size in sizes]
        size_times = [CompletionTimes(min(collective.ends), max(collective.ends)) for collective in alone]
        links = alone[-1].links
    elif arguments.network == "flows":
        from simcore.flows.alone import like_groups, run_collectives
        from simcore.flows.traffic import rules_of

        if cluster.topology is None:
            raise UsageError(
                "--network flows: the cluster has no links; --cluster spectrum-x:64 or a topology would fit"
            )
        texts = {name: getattr(arguments, name) for name in FLOW_FIELDS}
        values = {name: text_value(flag_of(name), text) for name, text in texts.items() if text is not None}
        rules = rules_of(cluster.packets, Parameters(**values))
        groups = like_groups(cluster.npus, rank_ids) if arguments.every_group else [rank_ids]
        runs = [run_collectives(cluster.topology, groups, collective, size, rules) for size in sizes]
        size_times = [CompletionTimes(min(run.ends), max(run.ends)) for run in runs]
        report = runs[-1].report
    else:
        size_times = [completion_times(cluster, shape, collective, size) for size in sizes]
    if arguments.json:
        _print_json(collective, ranks, sizes, size_times, ".." in arguments.size, links, report)
    elif ".." in arguments.size:
        print("\n".join(_format_table(cluster, shape, collective, ranks, sizes, size_times)))
    else:
        explanation_lines = explain_collective(cluster, shape, collective, sizes[0]).splitlines()
        if links is not None:
            explanation_lines = _links_text(links, size_times[0].last_ns)
        if report is not None:
            from simcore.render.report.usage import port_lines
            from simcore.trace.ports import ports_of_flows

            assert cluster.topology is not None
            ports = ports_of_flows(report, cluster.topology, size_times[0].last_ns)
            explanation_lines = port_lines(ports, report, everything=False)
        print("\n".join(_format_one(collective, ranks, sizes[0], size_times[0], explanation_lines)))
    return 0


def _inner_npus(cluster: Cluster) -> int:
    """Returns the NPUs of all dimensions but the last, which a preset fits to the world."""
    return cluster.npus // cluster.dims[-1].size


def _format_one(
    collective: str, ranks: RankSet, size: int, times: CompletionTimes, origin: list[str]
) -> list[str]:
    lines = [
        f"{NAMES[collective]} of {size} B over {_format_ranks(ranks)}: {duration(times.last_ns)}",
        f"  last rank done   {times.last_ns} ns",
        f"  first rank done  {times.first_ns} ns",
        f"  algbw            {algorithm_bandwidth(size, times.last_ns):.2f} GB/s",
        f"  busbw            {bus_bandwidth(collective, len(ranks), size, times.last_ns):.2f} GB/s",
        "",
    ]
    return [*lines, *origin]


def _links_text(links: list[LinkUse], step_ns: int) -> list[str]:
    """Returns the bytes and times of the links, the busiest first."""
    from simcore.messages.network import link_text

    order = sorted(links, key=lambda link: (-link.busy_ns, link.dimension, link.source, link.target))
    lines = [f"{len(links)} links, message by message, first come first served:"]
    lines += [
        f"  dimension {link.dimension}, {link_text(link.source, link.target)}: {link.messages} messages, "
        f"{byte_size(link.bytes)}, busy {percent(link.busy_ns, step_ns)} %, queued {duration(link.queued_ns)}"
        for link in order[:_MOST_LINKS]
    ]
    return lines + ([f"  and {len(links) - _MOST_LINKS} more"] if len(links) > _MOST_LINKS else [])


def _format_table(
    cluster: Cluster,
    shape: GroupShape,
    collective: str,
    ranks: RankSet,
    sizes: list[int],
    size_times: list[CompletionTimes],
) -> list[str]:
    """Returns sizes and bandwidths in the columns and units of nccl-tests (its doc/PERFORMANCE.md)."""
    dims = " x ".join(dimension.text() for dimension in cluster.dims)
    lines = [
        f"# {NAMES[collective]} over {_format_ranks(ranks)} on {dims}",
        f"#{'size':>18} {'time':>14} {'algbw':>9} {'busbw':>9}",
        f"#{'(B)':>18} {'(us)':>14} {'(GB/s)':>9} {'(GB/s)':>9}",
    ]
    for size, (_, ns) in zip(sizes, size_times, strict=True):
        algbw = algorithm_bandwidth(size, ns)
        busbw = bus_bandwidth(collective, len(ranks), size, ns)
        lines.append(f" {size:>18} {ns / 1000:>14.2f} {algbw:>9.2f} {busbw:>9.2f}")
    origin = explain_collective(cluster, shape, collective, sizes[-1])
    return [*lines, *[f"# {line}" for line in origin.splitlines()]]


def _print_json(
    collective: str,
    ranks: RankSet,
    sizes: list[int],
    size_times: list[CompletionTimes],
    is_range: bool,
    links: list[LinkUse] | None,
    report: FlowReport | None,
) -> None:
    from simcore.render.report.json_text import json_text

    rows: list[dict[str, Any]] = [
        {
            "bytes": size,
            "ranks": len(ranks),
            "time_ns": times.last_ns,
            "first_done_ns": times.first_ns,
            "algbw_gbps": algorithm_bandwidth(size, times.last_ns),
            "busbw_gbps": bus_bandwidth(collective, len(ranks), size, times.last_ns),
        }
        for size, times in zip(sizes, size_times, strict=True)
    ]
    head = {"schema": SCHEMA, "collective": NAMES[collective], "rank_list": ranks.text()}
    values = {**head, "sizes": rows} if is_range else {**head, **rows[0]}
    if links is not None and not is_range:
        values["links"] = [link._asdict() for link in links]
    if report is not None and not is_range:
        from simcore.render.report.usage import port_values

        values.update(port_values(report))
    print(json_text(values))


def _format_ranks(ranks: RankSet) -> str:
    count = len(ranks)
    return f"{count} rank{'' if count == 1 else 's'} ({printable(ranks.text(), 60)})"
