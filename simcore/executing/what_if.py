"""What would help a run of execution traces: changes that somebody can make, each a run of its own, and how
much each thing matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

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
from simcore.trace.changes import Change, Trials, Tried
from simcore.trace.findings import WhatIf
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
    reruns = _Reruns(ran, rerun, search)
    of_parts = list(_parts(ran, cancelled))
    search.total = len(of_parts)
    rows = []
    # What a pass of the graph answers comes before what is run.
    for knob in of_parts:
        search.ask()
        rows.append(knob.sensitivity(ran.step_time_ns))
    changes = reruns.changes()
    rows += [knob.sensitivity(ran.step_time_ns) for knob in reruns.dimensions()]
    search.end()
    return TriedChanges([*changes, *by_gain(row for row in rows if row is not None)], reruns.said())


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


class _Reruns:
    """Runs of a set with other parameters, as far as there is time for them."""

    def __init__(self, ran: RanTraces, rerun: Rerun, search: Search) -> None:
        self.ran = ran
        self._rerun = rerun
        self._search = search
        self._base = ran.executed
        self._sent = _sent(self._base)
        self._left = _MOST_OF_ALL
        self._trials = self._trials_from(ran.setup, ran.step_time_ns)
        # Of what is run beside the changes, and not counted among them.
        self._others = self._trials_from(ran.setup, ran.step_time_ns)
        self._not_tried = 0

    # -- changes -----------------------------------------------------------------------

    def changes(self) -> list[WhatIf]:
        """Those that gain; behind each other those of a family, and what several of them give together."""
        trials = self._trials
        found: list[Change] = []
        best: list[Change] = []
        families = [list(family) for family in _families(self._base, self._sent)]
        self._search.total += sum(map(len, families))
        for family in families:
            gaining = _apart(trials, list(filter(trials.gains, trials.possible(family))))
            found += gaining[:_LISTED]
            best += gaining[:1]
        best.sort(key=trials.ns)
        if len(best) > 1:
            change = best[0]
            for other in best[1:]:
                both = _together(change, other)
                trials.of(both)
                if trials.gains(both, change):
                    change = both
            if change is not best[0]:
                together = _TOGETHER if len(change.flags) > _MOST_FLAGS else ""
                found.append(replace(change, words=together))
        found.sort(key=lambda change: (trials.ns(change), change.flags))
        made = [self._row(number, change) for number, change in enumerate(found)]
        return [row for row, holds in made if holds] + [row for row, holds in made if not holds]

    def _row(self, number: int, change: Change) -> tuple[WhatIf, bool]:
        """A change, and whether it is not known to gain nothing where messages meet on links."""
        said = [change.flags] if change.words else []
        holds = True
        if number < _CHECKED and self.ran.parameters.network == "analytical":
            links = self._on_links
            there = None if links is None else links.of(change)
            if links is None or there is None:
                said.append("here each message has the whole bandwidth; on links those sent at once share it")
            else:
                now, then = links.base_ns, there.ns
                holds = links.gains(change)
                change_there = f"{change_percent(now, then)}, {duration(now)} to {duration(then)}"
                said.append(f"each message has the whole link; shared (--network links) {change_there}")
        row = self._trials.row(change)
        name = row.name if holds else f"{row.name} (no gain on links)"
        meaning = f"{row.name}: {'; '.join(said)}" if said else ""
        parameters = _applied(self.ran.setup, change).parameters
        return replace(row, name=name, parameters=parameters, meaning=meaning), holds

    @cached_property
    def _on_links(self) -> Trials | None:
        """What changes make of the run where messages share links; None where it cannot be run there."""
        # A budget of its own: what the others took does not leave the gains unchecked.
        self._left = _MOST_OF_ALL
        on_links = Change({"network": "links"})
        now = self._others.of(on_links)
        return None if now is None else self._trials_from(_applied(self.ran.setup, on_links), now.ns)

    def _trials_from(self, setup: Execution, base_ns: int) -> Trials:
        """Of changes to a run with these parameters, whose step is base_ns."""
        return Trials(base_ns, lambda change: self._tried(_applied(setup, change)), self._search)

    def _tried(self, setup: Execution) -> Tried | None:
        """What a run with these parameters is; None also where there is no time for it."""
        work = _work(self._base, setup, self._sent)
        if work > min(self._left, _MOST_OF_ONE):
            self._not_tried += 1
            return None
        self._left -= work
        other = self._rerun(setup)
        return Tried(other.step_time_ns, has_effect=not ends_alike(other.executed, self._base))

    def said(self) -> str:
        """How many changes were tried, which of them have no effect, and which were not tried."""
        if self._base.states_times:
            return (
                "No change of the network is tried: the files state what their collectives take; "
                "--cluster, --dim or --system prices them"
            )
        found = {flags: one for flags, one in self._trials.found.items() if one is not None}
        tried = len(found)
        if not tried and not self._not_tried:
            return ""
        sentences = [f"{plural(tried, 'change')} of collectives and messages tried" if tried else ""]
        some = [flags.removeprefix("--") for flags, one in found.items() if not one.has_effect]
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

                def cheaper(factor: float, number: int = number, what: str = what) -> Change:
                    return _cheaper_dimension(dims, number, what, factor)

                def step_ns(factor: float, cheaper: Callable[[float], Change] = cheaper) -> int | None:
                    tried = self._others.of(cheaper(factor))
                    return None if tried is None else tried.ns

                parameters = _applied(self.ran.setup, cheaper(BETTER)).parameters
                yield Knob(f"dimension {number} {what}", step_ns, parameters)


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


def _apart(trials: Trials, some: list[Change]) -> list[Change]:
    """The best first; of those that take about as long the first, which asks for least."""
    apart, left = [], some
    while left:
        beyond = min(map(trials.ns, left)) + trials.least_ns
        apart.append(next(change for change in left if trials.ns(change) < beyond))
        left = [change for change in left if trials.ns(change) >= beyond]
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


def _cheaper_dimension(dims: Sequence[Dimension], number: int, what: str, factor: float) -> Change:
    """A dimension's latency times `factor`, or its bandwidth over it, to the last digit."""
    changed = list(dims)
    changed[number] = changed[number].cheaper(what, factor, _NO_TIME_GBPS)
    return Change({"dim": tuple(dim.exact() for dim in changed)})


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
