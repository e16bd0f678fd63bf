"""What would help a run of execution traces: changes that somebody can make, each a run of its own, and how
much each thing matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from simcore.chakra.nodes import COLL, COLLECTIVES, RECV, SEND, integer
from simcore.cluster import Dimension
from simcore.compat.astra2_rules import collective_rules
from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.executing.executed import Executed, Execution
from simcore.executing.ran import RanTraces
from simcore.executing.retimed import ALL_CPU, TraceParts
from simcore.messages.alone import estimate, rules_of
from simcore.messages.collectives import Rules
from simcore.names import COLLECTIVES as COLLECTIVE_NAMES
from simcore.records import NamedTuple, replace
from simcore.trace.findings import WORTH, Change, WhatIf
from simcore.trace.knobs import BETTER, Knob, Search, by_gain
from simcore.trace.trace_graph import retimed
from simcore.units import change_percent, duration, plural

# Knobs of nodes by name: those that take most.
_MOST_NAMES = 12
# Parts that a table names by other words.
_NAMES = {ALL_CPU: "CPU nodes"}
# GB/s at which a message takes no time worth a ns, within what `--dim` takes.
_NO_TIME_GBPS = 1e9
# Nodes and messages of one run that is tried, and of all: some 250,000 are simulated in a second.
_MOST_OF_ONE, _MOST_OF_ALL, _MOST_TO_CHECK = 500_000, 2_000_000, 100_000
# What it takes to put a rank into its class, in nodes.
_OF_A_RANK = 100
# Of one family of changes so many are listed; of those without effect so many are named.
_LISTED, _NAMED = 3, 6
# So many of those that gain most are run where messages share links, too.
_CHECKED = 4
# What several changes give has their flags for a name, unless a table has no room for them.
_TOGETHER, _MOST_FLAGS = "the best of each, together", 64
_SPLITS, _ACTIVE, _QUEUES = (1, 2, 4, 8, 16), (2, 4, 8), (1, 2, 4)
_STEP = 8

Rerun = Callable[[Execution], RanTraces]


class TriedChanges(NamedTuple):
    """The rows of a what-if table, and what is to be said of the changes that were tried."""

    rows: list[WhatIf]
    said: str


def what_if(
    ran: RanTraces,
    rerun: Rerun,
    progress: Callable[[int, int], None],
    cancelled: Callable[[], bool],
) -> TriedChanges:
    """The changes that shorten the step by 0.1 % or more, those that gain most first; then 10 % less time on
    each thing, the greatest gain first: of nodes and streams with the order of everything kept, of the
    network by running the set again.

    rerun: the set with other parameters. progress(done, total): called before each. Raises `Cancelled`.
    """
    search = Search(0, progress, cancelled)
    trials = _Trials(ran, rerun, search)
    of_parts = list(_parts(ran, cancelled))
    search.total = len(of_parts)
    rows = []
    # What a pass of the graph answers comes before what is run.
    for knob in of_parts:
        search.ask()
        rows.append(knob.sensitivity(ran.step_time_ns))
    changes = trials.changes()
    rows += [knob.sensitivity(ran.step_time_ns) for knob in trials.dimensions()]
    search.end()
    return TriedChanges([*changes, *by_gain(row for row in rows if row is not None)], trials.said())


def _parts(ran: RanTraces, cancelled: Callable[[], bool]) -> Iterator[Knob]:
    """Nodes by name, streams, and compute and communication as a whole."""
    parts = TraceParts(ran)
    nodes = [part for part in parts.by_words if part.startswith("nodes ")]
    nodes.sort(key=lambda part: (-parts.ns(part), part))
    left_out = set(nodes[_MOST_NAMES:])
    graph, parameters = ran.trace_graph, ran.parameters
    is_folded = len(ran.executed.units.first) < len(ran.ranks)
    for part, numbers in parts.by_words.items():
        if part in left_out:
            continue

        def step_ns(factor: float, numbers: list[int] = numbers) -> int:
            return graph.step_of(retimed(graph.durations, numbers, factor), cancelled)

        scales = (*parameters.time_scale, f"{part}={BETTER}")
        of_alike = is_folded and part.startswith("stream group ")
        name = _NAMES.get(part) or part.removeprefix("stream ")
        meaning = f"{name}: and the groups of the ranks that run alike" if of_alike else ""
        yield Knob(name, step_ns, parameters.replaced("time_scale", scales), meaning=meaning)


class _Trials:
    """Runs of a set with other parameters, as far as there is time for them."""

    def __init__(self, ran: RanTraces, rerun: Rerun, search: Search) -> None:
        self.ran = ran
        self._rerun = rerun
        self._search = search
        self._base = ran.executed
        self._sent = _sent(self._base)
        self._left = _MOST_OF_ALL
        # The step as it is on links, 0 where it cannot be run there.
        self._links_ns: int | None = None
        # By flags: the step, None where it cannot be.
        self._ns: dict[str, int | None] = {}
        self._without_effect: list[str] = []
        self._not_tried = 0

    # -- changes -----------------------------------------------------------------------

    def changes(self) -> list[WhatIf]:
        """Those that gain; behind each other those of a family, and what several of them give together."""
        base = self.ran.step_time_ns
        least = max(WORTH * base, 1)
        rows: dict[str, tuple[int, Change]] = {}
        best: list[tuple[int, Change]] = []
        families = [list(family) for family in _families(self._base, self._sent)]
        self._search.total += sum(map(len, families))
        for family in families:
            known = [(ns, change) for change in family if (ns := self._step(change)) is not None]
            gaining = _apart([pair for pair in known if base - pair[0] >= least], least)
            rows |= {change.flags: (ns, change) for ns, change in gaining[:_LISTED]}
            best += gaining[:1]
        best.sort(key=lambda pair: pair[0])
        if len(best) > 1:
            ns, change = best[0]
            for _, other in best[1:]:
                both = _together(change, other)
                less = self._step(both)
                if less is not None and ns - less >= least:
                    ns, change = less, both
            if change.flags not in rows:
                together = _TOGETHER if len(change.flags) > _MOST_FLAGS else ""
                rows[change.flags] = ns, replace(change, words=together)
        best_first = sorted(rows.values(), key=lambda pair: (pair[0], pair[1].flags))
        made = [self._row(number, ns, change) for number, (ns, change) in enumerate(best_first)]
        return [row for row, holds in made if holds] + [row for row, holds in made if not holds]

    def _row(self, number: int, ns: int, change: Change) -> tuple[WhatIf, bool]:
        """A change, and whether it is not known to gain nothing where messages meet on links."""
        name, said = change.words or change.flags, [change.flags] if change.words else []
        holds = True
        if number < _CHECKED and self.ran.parameters.network == "analytical":
            on_links = self._on_links(change)
            if on_links is None:
                said.append("here each message has the whole bandwidth; on links those sent at once share it")
            else:
                now, then = on_links
                holds = now - then >= max(WORTH * now, 1)
                change_there = f"{change_percent(now, then)}, {duration(now)} to {duration(then)}"
                said.append(f"each message has the whole link; shared (--network links) {change_there}")
        what = name if holds else f"{name} (no gain on links)"
        parameters = _applied(self.ran.setup, change).parameters
        meaning = f"{name}: {'; '.join(said)}" if said else ""
        return WhatIf(what, None, ns, flags=change.flags, parameters=parameters, meaning=meaning), holds

    def _on_links(self, change: Change) -> tuple[int, int] | None:
        """The step without and with a change on links, ns, of a run whose messages have the whole bandwidth
        each; None where it cannot be run there.
        """
        on_links = self.ran.setup.changed(network="links")
        if self._links_ns is None:
            # A budget of its own: what the others took does not leave the gains unchecked.
            self._left = _MOST_OF_ALL
            now = self._run(on_links)
            self._links_ns = 0 if now is None else now.step_time_ns
        other = self._run(_applied(on_links, change)) if self._links_ns else None
        return None if other is None else (self._links_ns, other.step_time_ns)

    def _step(self, change: Change) -> int | None:
        """The step with a change, ns; None where it cannot be, or where there is no time for it."""
        flags = change.flags
        if flags not in self._ns:
            other = self._run(_applied(self.ran.setup, change))
            self._ns[flags] = None if other is None else other.step_time_ns
            if other is not None and ends_alike(other.executed, self._base):
                self._without_effect.append(flags.removeprefix("--"))
        return self._ns[flags]

    def _run(self, setup: Execution) -> RanTraces | None:
        work = _work(self._base, setup, self._sent)
        if work > min(self._left, _MOST_OF_ONE):
            self._not_tried += 1
            return None
        self._search.ask()
        self._left -= work
        try:
            return self._rerun(setup)
        except (InputError, UsageError):
            return None

    def said(self) -> str:
        """How many changes were tried, which of them have no effect, and which were not tried."""
        if self._base.states_times:
            return (
                "No change of the network is tried: the files state what their collectives take; "
                "--cluster, --dim or --system prices them"
            )
        tried = sum(ns is not None for ns in self._ns.values())
        if not tried and not self._not_tried:
            return ""
        sentences = [f"{plural(tried, 'change')} of collectives and messages tried" if tried else ""]
        some = self._without_effect
        if some:
            listed = ", ".join(some[:_NAMED])
            more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
            sentences.append(f"without any effect on this run: {listed}{more}")
        if self._not_tried:
            sentences.append(f"{self._not_tried} not tried, as the run is large")
        return "; ".join(sentence for sentence in sentences if sentence)

    # -- the network -------------------------------------------------------------------

    def dimensions(self) -> Iterator[Knob]:
        """Bandwidth and latency of each dimension; none where nothing is priced on a network."""
        dims = self._base.cluster.dims
        if not self._sent or self._base.states_times:
            return
        for number, dim in enumerate(dims):
            for what in ("bandwidth", "latency") if dim.size > 1 else ():

                def asked(factor: float, number: int = number, what: str = what) -> Execution:
                    return _with_dimension(self.ran.setup, dims, number, what, factor)

                def step_ns(factor: float, asked: Callable[[float], Execution] = asked) -> int | None:
                    other = self._run(asked(factor))
                    return None if other is None else other.step_time_ns

                yield Knob(f"dimension {number} {what}", step_ns, asked(BETTER).parameters)


def ignored(ran: RanTraces, rerun: Rerun, fields: Sequence[str]) -> list[Diagnostic]:
    """A warning for each of some parameters that is given and without which every node starts and ends as
    with it. A run of more than 100,000 nodes and messages is not run again for it.
    """
    base, parameters = ran.executed, ran.parameters
    given = [flag for flag in parameters.stated() if flag.field in fields]
    sent = _sent(base)
    diagnostics = []
    for flag in given:
        asked = ran.setup.changed(**{flag.field: flag.default})
        if _work(base, asked, sent) > _MOST_TO_CHECK:
            continue
        try:
            other = rerun(asked).executed
        except (InputError, UsageError):
            continue
        if ends_alike(other, base):
            message = f"{flag.option} has no effect on this run: every node starts and ends as without it"
            diagnostics.append(Diagnostic("warning", "parameter-ignored", message, base.traces.path))
    return diagnostics


def ends_alike(executed: Executed, other: Executed) -> bool:
    """Whether every node of every rank starts and ends in both at the same time."""
    return executed.start == other.start and executed.end == other.end


def _sent(executed: Executed) -> Counter[tuple[str, int]]:
    """How many collectives of each kind and number of ranks go over the network; messages as ("", 2)."""
    sent: Counter[tuple[str, int]] = Counter()
    if executed.system.replay:
        return sent
    sizes = Counter(executed.units.of)
    nodes: Counter[tuple[str, int]] = Counter()
    known: dict[tuple[int, int], tuple[str, int] | None] = {}
    for unit, rank in enumerate(executed.units.first):
        rank_nodes = executed.nodes[rank]
        types, sets = rank_nodes.columns.type, rank_nodes.columns.attributes
        for place, row in enumerate(rank_nodes.row):
            if types[row] not in (COLL, SEND, RECV):
                continue
            key = (types[row], sets[row])
            if key not in known:
                known[key] = _what(executed, rank, place, types[row])
            what = known[key]
            if what is not None:
                nodes[what] += sizes[unit]
    for (kind, members), count in nodes.items():
        sent[kind, members] = -(-count // members)
    return sent


def _what(executed: Executed, rank: int, place: int, type_of: int) -> tuple[str, int] | None:
    if type_of != COLL:
        return "", 2
    group = executed.group_of(rank, place)
    kind = COLLECTIVES.get(integer(executed.attributes(rank, place).get("comm_type")) or 0)
    if group is None or kind is None or len(group[1]) < 2 or kind in executed.system.custom:
        return None
    return kind, len(group[1])


def _rules(executed: Executed) -> Rules:
    """What is in force of collectives."""
    if executed.is_astra:
        return collective_rules(executed.setup, executed.cluster)
    return rules_of(executed.cluster)


def _work(executed: Executed, setup: Execution, sent: Counter[tuple[str, int]]) -> int:
    """About how many nodes and messages a run with these parameters is; closed forms send none."""
    parameters = setup.parameters
    if not executed.is_astra and parameters.network != "links":
        nodes = sum(len(executed.nodes[rank]) for rank in executed.units.first)
        return nodes + _OF_A_RANK * len(executed.nodes)
    total = sum(map(len, executed.nodes))
    rules = _rules(executed)
    if parameters.splits is not None:
        rules = rules._replace(splits=parameters.splits)
    for (kind, members), count in sent.items():
        total += count * estimate(executed.cluster, members, kind, rules) if kind else count
    return total


def _apart(some: list[tuple[int, Change]], least: float) -> list[tuple[int, Change]]:
    """(step, change) by step; of those that take about as long the first, which asks for least."""
    apart = []
    left = some
    while left:
        best = min(ns for ns, _ in left)
        apart.append(next(pair for pair in left if pair[0] - best < least))
        left = [pair for pair in left if pair[0] - best >= least]
    return apart


def _applied(setup: Execution, change: Change) -> Execution:
    """The run with a change; algorithms come behind those that are there, and count over them."""
    fields = dict(change.fields)
    if "algorithm" in fields:
        fields["algorithm"] = (*setup.parameters.algorithm, *fields["algorithm"])
    return setup.changed(**fields)


def _together(change: Change, other: Change) -> Change:
    both = change.with_other(other)
    if "algorithm" in change.fields and "algorithm" in other.fields:
        algorithms = (*change.fields["algorithm"], *other.fields["algorithm"])
        return replace(both, fields=both.fields | {"algorithm": algorithms})
    return both


def _with_dimension(
    setup: Execution, dims: Sequence[Dimension], number: int, what: str, factor: float
) -> Execution:
    """The run with a dimension's latency times `factor`, or its bandwidth over it, to the last digit."""
    changed = list(dims)
    changed[number] = changed[number].cheaper(what, factor, _NO_TIME_GBPS)
    return setup.changed(dim=tuple(dim.exact() for dim in changed))


# -- families of changes ---------------------------------------------------------------


def _families(executed: Executed, sent: Counter[tuple[str, int]]) -> Iterator[Iterator[Change]]:
    """Changes of one kind each: of each the best is held against the others, and taken with them."""
    if executed.states_times or not sent:
        return
    parameters = executed.setup.parameters
    kinds = sorted({kind for kind, _ in sent if kind})
    if kinds:
        rules = _rules(executed)
        # Those that most runs gain by first, should there be no time for all.
        yield _chunks(rules)
        if executed.is_astra:
            yield (Change({"num_queues_per_dim": queue}) for queue in _QUEUES if queue != rules.queues)
        if len(executed.cluster.dims) > 1 and "ALLREDUCE" in kinds:
            word = "localBWAware" if rules.baseline else "baseline"
            yield iter([Change({"collective_optimization": word})])
        for kind in kinds:
            sizes = {members for sent_kind, members in sent if sent_kind == kind}
            for number in range(len(executed.cluster.dims)):
                yield _algorithms(executed, rules, kind, number, sizes)
    if parameters.rendezvous_protocol == "true":
        yield iter([Change({"rendezvous_protocol": "false"})])


def _algorithms(
    executed: Executed, rules: Rules, kind: str, number: int, sizes: set[int]
) -> Iterator[Change]:
    """The other algorithms of a collective on a dimension."""
    dims = executed.cluster.dims
    there = rules.algorithms.get(kind, ())
    size = dims[number].size
    # ASTRA-sim runs a smaller group as a ring unless one algorithm alone is listed (R5.7).
    of_groups = executed.is_astra and len(there) != 1 and len(executed.nodes) not in sizes
    if number >= len(there) or size < 2 or of_groups:
        return
    names = ["ring", "direct"]
    if not size & (size - 1) and kind != "ALLTOALL":
        names.append("halving-doubling")
        if kind == "ALLREDUCE" and len(dims) == 1:
            names.append("double-binary-tree")
    word = next(name for name, value in COLLECTIVE_NAMES.items() if value == kind)
    for name in names:
        if name != there[number]:
            yield Change({"algorithm": (f"{word}:{number}={name}",)})


def _chunks(rules: Rules) -> Iterator[Change]:
    """More and fewer chunks, and how many of them a dimension runs at a time."""
    splits, active = rules.splits or 1, rules.active_chunks
    others = [
        split for split in _SPLITS if split != splits and splits <= split * _STEP and split <= splits * _STEP
    ]
    for count in others:
        yield Change({"splits": count})
    for number in _ACTIVE:
        if number != active:
            yield Change({"active_chunks": number})
    for count in others:
        if count > max(active, 1):
            yield Change({"splits": count, "active_chunks": min(count, _ACTIVE[-1])})
