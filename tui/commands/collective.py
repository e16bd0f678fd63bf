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
from simcore.parameters import DEFAULT_NETWORK, FLOW_FIELDS, Parameters, flag_of
from simcore.ranks import RankSet, parse_ranks
from simcore.records import NamedTuple
from simcore.units import byte_size, change_percent, duration, percent
from tui.commands.arguments import Parser, add_parameters, parse_parameters, parse_sizes

if TYPE_CHECKING:
    import argparse

    from simcore.collectives.nccl_tests import MeasuredCollective
    from simcore.flows.traffic import FlowReport
    from simcore.messages.network import LinkUse
    from simcore.topology import Topology
    from simcore.trace.ports import Ports

SCHEMA = "wltui.collective/1"
_MOST_LINKS = 8
_NETWORKS = (DEFAULT_NETWORK, "links", "flows")
_COLLECTIVES = {name: collective for collective, name in NAMES.items()}
_DESCRIPTION = (
    "Time one collective alone on an idle network: when its first and its last rank is done, and its "
    "bandwidths as nccl-tests defines them. A range of sizes (1KiB..1GiB) gives a table, each size twice the "
    "one before; --measured FILE one of what nccl-tests measured beside it."
)


def build_parser() -> Parser:
    """Returns the parser of `wltui collective`."""
    parser = Parser(prog="wltui collective", description=_DESCRIPTION)
    parser.add_argument("collective", metavar="COLLECTIVE", nargs="?", help=", ".join(_COLLECTIVES))
    parser.add_argument(
        "--measured", metavar="FILE",
        help="what nccl-tests printed (all_reduce_perf ..., text or the JSON of -J): its sizes, measured and "
        "priced",
    )  # fmt: skip
    parser.add_argument(
        "--size", metavar="BYTES",
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
        "on the links of a topology (its default)",
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


class _Request(NamedTuple):
    """A collective of a group of ranks, in several sizes."""

    collective: str
    ranks: RankSet
    cluster: Cluster
    shape: GroupShape
    sizes: list[int]


class _Timing(NamedTuple):
    """What a network says of a collective."""

    times: list[CompletionTimes]
    """When it is over, by size."""
    links: list[LinkUse] | None = None
    """What links carried of the last size, where it was sent message by message."""
    report: FlowReport | None = None
    ports: Ports | None = None
    """What flows did of the last size."""
    slowed_ns: int | None = None
    """When flows of a single size are over with slowed senders."""


def main(words: list[str]) -> int:
    """Prices a collective and prints it. Exit status 0; errors raise."""
    arguments = build_parser().parse_args(words)
    collective = _parse_collective(arguments)
    sizes = [] if arguments.size is None else parse_sizes("--size", arguments.size)
    ranks = None if arguments.ranks is None else parse_ranks("--ranks", arguments.ranks)
    table: MeasuredCollective | None = None
    if arguments.measured is not None:
        table, sizes = _read_measured(arguments.measured, collective, ranks, sizes)
        collective = table.collective
        if ranks is None and table.ranks is not None:
            ranks = RankSet.of(range(table.ranks))
    assert collective is not None
    choice = choose_cluster(parse_parameters(arguments).part(ClusterParameters))
    if ranks is None:
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
    request = _Request(collective, ranks, cluster, shape, sizes)
    timing = _time_on_network(request, arguments)
    is_range = table is not None or ".." in arguments.size
    if arguments.json:
        _print_json(request, timing, is_range, table)
    elif table is not None:
        print("\n".join(_format_measured(request, timing.times, table)))
    elif is_range:
        print("\n".join(_format_table(request, timing.times)))
    else:
        print("\n".join(_format_one(request, timing)))
    return 0


def _parse_collective(arguments: argparse.Namespace) -> str | None:
    """Returns the collective, None where a file is to say it. Raises `UsageError` for one, or a network, that
    is not known, and for what is lacking.
    """
    name = arguments.collective
    lacking = ["COLLECTIVE"] * (name is None) + ["--size"] * (arguments.size is None)
    if lacking and arguments.measured is None:
        raise UsageError(
            f"the following arguments are required: {', '.join(lacking)} (see wltui collective --help)"
        )
    if name is not None and name not in _COLLECTIVES:
        raise UsageError(
            f"COLLECTIVE {printable(name, 60)}: one of {', '.join(_COLLECTIVES)} is expected"
            f"{did_you_mean(name, _COLLECTIVES)}"
        )
    if arguments.network not in (None, *_NETWORKS):
        network_name = printable(arguments.network, 60)
        raise UsageError(f"--network {network_name}: one of {', '.join(_NETWORKS)} is expected")
    return None if name is None else _COLLECTIVES[name]


def _time_on_network(request: _Request, arguments: argparse.Namespace) -> _Timing:
    """Returns what the requested network says, else that of a topology, with a note which that is. Raises
    `UsageError` for options of another one.
    """
    collective, ranks, cluster, shape, sizes = request
    network = arguments.network
    if network is None and cluster.topology is not None:
        network, note = _choose_network(collective, len(ranks), len(sizes), cluster.topology)
        print(f"wltui: note --network: {note}", file=sys.stderr)
    if network == "flows":
        return _time_by_flows(request, arguments)
    options = [flag_of(name).option for name in FLOW_FIELDS if getattr(arguments, name) is not None]
    options += ["--every-group"] * arguments.every_group
    if options:
        raise UsageError(f"{options[0]}: is of --network flows")
    if network != "links":
        return _Timing([completion_times(cluster, shape, collective, size) for size in sizes])
    from simcore.messages.alone import run_collective

    runs = [run_collective(cluster, sorted(ranks), collective, size) for size in sizes]
    return _Timing([CompletionTimes(min(run.ends), max(run.ends)) for run in runs], runs[-1].links)


def _choose_network(collective: str, members: int, sizes: int, topology: Topology) -> tuple[str, str]:
    """Returns (the network of a collective on a topology, why it is that one)."""
    from simcore.flows.collectives import estimate_flows
    from simcore.networks.flows import MOST_FLOWS_AT_FIRST, flow_words

    flows = sizes * estimate_flows(collective, members, topology.gpus_per_server)
    if flows <= MOST_FLOWS_AT_FIRST:
        return "flows", "flows, for the topology"
    return (
        DEFAULT_NETWORK,
        f"{DEFAULT_NETWORK}, not flows, for {flow_words(flows)} (--network flows has them)",
    )


def _time_by_flows(request: _Request, arguments: argparse.Namespace) -> _Timing:
    """Returns what flows on the links of a topology say. Raises `UsageError` without one."""
    from simcore.flows.alone import like_groups, run_collectives, slowed_end
    from simcore.flows.traffic import rules_of
    from simcore.networks.flows import check_algorithms, flow_algorithm
    from simcore.trace.ports import ports_of_flows

    collective, ranks, cluster, shape, sizes = request
    topology = cluster.topology
    if topology is None:
        raise UsageError(
            "--network flows: the cluster has no links; --cluster spectrum-x:64 or a topology would fit"
        )
    texts = {name: getattr(arguments, name) for name in FLOW_FIELDS}
    values = {name: text_value(flag_of(name), text) for name, text in texts.items() if text is not None}
    rules = rules_of(cluster.packets, Parameters(**values))
    groups = like_groups(cluster.npus, sorted(ranks)) if arguments.every_group else [sorted(ranks)]
    check_algorithms(cluster)
    algorithm = flow_algorithm(cluster, shape, collective)
    runs = [run_collectives(topology, groups, collective, size, rules, algorithm) for size in sizes]
    times = [CompletionTimes(min(run.ends), max(run.ends)) for run in runs]
    report = runs[-1].report
    slowed_ns = None
    if len(sizes) == 1:
        slowed_ns = slowed_end(runs[0], topology, groups, collective, sizes[0], algorithm)
    return _Timing(times, None, report, ports_of_flows(report, topology, times[-1].last_ns), slowed_ns)


def _read_measured(
    path: str, collective: str | None, ranks: RankSet | None, sizes: list[int]
) -> tuple[MeasuredCollective, list[int]]:
    """Returns (the table of a file that is of the collective and of as many ranks as stated, its sizes
    between the stated ones). Raises InputError for a file that is none, UsageError for one that does not fit.
    """
    from simcore.collectives.nccl_tests import read_measured

    tables = [table for table in read_measured(path, collective) if table.collective in NAMES]
    fitting = [
        table
        for table in tables
        if collective in (None, table.collective) and (ranks is None or table.ranks in (None, len(ranks)))
    ]
    if not fitting:
        there = "; ".join(table.words() for table in read_measured(path, collective))
        what = "a collective" if collective is None else NAMES[collective]
        of = "" if ranks is None else f" of {len(ranks)} ranks"
        raise UsageError(f"--measured {printable(path, 60)}: {what}{of} is expected, found {there}")
    table = fitting[0]
    least, most = (min(sizes), max(sizes)) if sizes else (0, table.times[-1].size)
    inside = [time.size for time in table.times if least <= time.size <= most]
    if not inside:
        first, last = table.times[0].size, table.times[-1].size
        raise UsageError(f"--size: no measured size is in it, expected {first} to {last} B")
    return table, inside


def _inner_npus(cluster: Cluster) -> int:
    """Returns the NPUs of all dimensions but the last, which a preset fits to the world."""
    return cluster.npus // cluster.dims[-1].size


def _format_one(request: _Request, timing: _Timing) -> list[str]:
    """Returns the times and bandwidths of a single size, and where they come from."""
    collective, ranks, cluster, shape, (size,) = request
    (times,) = timing.times
    lines = [
        f"{NAMES[collective]} of {size} B over {_format_ranks(ranks)}: {duration(times.last_ns)}",
        f"  last rank done   {times.last_ns} ns",
        f"  first rank done  {times.first_ns} ns",
        f"  algbw            {algorithm_bandwidth(size, times.last_ns):.2f} GB/s",
        f"  busbw            {bus_bandwidth(collective, len(ranks), size, times.last_ns):.2f} GB/s",
        "",
    ]
    if timing.links is not None:
        return [*lines, *_links_text(timing.links, times.last_ns)]
    if timing.report is not None and timing.ports is not None:
        from simcore.render.report.usage import port_lines

        return [
            *lines, *port_lines(timing.ports, timing.report, everything=False, slowed_ns=timing.slowed_ns)
        ]  # fmt: skip
    return [*lines, *explain_collective(cluster, shape, collective, size).splitlines()]


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


def _format_table(request: _Request, times: list[CompletionTimes]) -> list[str]:
    """Returns sizes and bandwidths in the columns and units of nccl-tests (its doc/PERFORMANCE.md)."""
    lines = [
        f"#{'size':>18} {'time':>14} {'algbw':>9} {'busbw':>9}",
        f"#{'(B)':>18} {'(us)':>14} {'(GB/s)':>9} {'(GB/s)':>9}",
    ]
    for size, (_, ns) in zip(request.sizes, times, strict=True):
        algbw = algorithm_bandwidth(size, ns)
        busbw = bus_bandwidth(request.collective, len(request.ranks), size, ns)
        lines.append(f" {size:>18} {ns / 1000:>14.2f} {algbw:>9.2f} {busbw:>9.2f}")
    return _with_origin(request, lines)


def _format_measured(request: _Request, times: list[CompletionTimes], table: MeasuredCollective) -> list[str]:
    """Returns measured and priced times and bus bandwidths by size, and by how much the price is off."""
    count = len(request.ranks)
    lines = [
        f"# measured: {table.words()}",
        f"#{'size':>18} {'measured':>12} {'busbw':>9} {'priced':>12} {'busbw':>9} {'price is off':>13}",
        f"#{'(B)':>18} {'(us)':>12} {'(GB/s)':>9} {'(us)':>12} {'(GB/s)':>9} {'':>13}",
    ]
    for size, (_, ns) in zip(request.sizes, times, strict=True):
        measured_ns = table.ns_of(size)
        lines.append(
            f" {size:>18} {measured_ns / 1000:>12.2f} {table.busbw_of(size, count):>9.2f} {ns / 1000:>12.2f} "
            f"{bus_bandwidth(request.collective, count, size, ns):>9.2f} "
            f"{change_percent(round(measured_ns), ns):>13}"
        )
    return _with_origin(request, lines)


def _with_origin(request: _Request, lines: list[str]) -> list[str]:
    """Returns the lines of a table between what is priced and where the price of its last size comes from."""
    collective, ranks, cluster, shape, sizes = request
    dims = " x ".join(dimension.text() for dimension in cluster.dims)
    origin = explain_collective(cluster, shape, collective, sizes[-1]).splitlines()
    return [
        f"# {NAMES[collective]} over {_format_ranks(ranks)} on {dims}",
        *lines,
        *[f"# {line}" for line in origin],
    ]


def _print_json(request: _Request, timing: _Timing, is_range: bool, table: MeasuredCollective | None) -> None:
    from simcore.render.report.json_text import json_text

    collective, ranks, *_, sizes = request
    rows: list[dict[str, Any]] = [
        {
            "bytes": size,
            "ranks": len(ranks),
            "time_ns": times.last_ns,
            "first_done_ns": times.first_ns,
            "algbw_gbps": algorithm_bandwidth(size, times.last_ns),
            "busbw_gbps": bus_bandwidth(collective, len(ranks), size, times.last_ns),
        }
        for size, times in zip(sizes, timing.times, strict=True)
    ]
    if table is not None:
        for row in rows:
            row["measured_ns"] = round(table.ns_of(row["bytes"]))
            row["measured_busbw_gbps"] = table.busbw_of(row["bytes"], len(ranks))
    head = {"schema": SCHEMA, "collective": NAMES[collective], "rank_list": ranks.text()}
    values = {**head, "sizes": rows} if is_range else {**head, **rows[0]}
    if timing.links is not None and not is_range:
        values["links"] = [link._asdict() for link in timing.links]
    if timing.report is not None and timing.ports is not None and not is_range:
        from simcore.render.report.usage import port_values

        values.update(port_values(timing.report, timing.ports, timing.times[0].last_ns, timing.slowed_ns))
    print(json_text(values))


def _format_ranks(ranks: RankSet) -> str:
    count = len(ranks)
    return f"{count} rank{'' if count == 1 else 's'} ({printable(ranks.text(), 60)})"
