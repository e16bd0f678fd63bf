"""What a run answers that no command prints in full, a part each, as text.

All is asked through `Run` and `Lanes`; what these do not offer is in `_accounts` and `_op_slacks` alone.
How a run numbers its tracks, ops and names inside is in no text: tracks are named by their ranks.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import RunInput
from simcore.runs import open_run
from simcore.sources.segments import GAP
from simcore.trace.lane_spans import KINDS, NAMELESS
from simcore.trace.run import find_interval, merged_segments_of, sum_path
from simcore.trace.track import ranks_of
from tui.commands.arguments import opening_options, parse_parameters
from tui.commands.opened import open_input
from tui.commands.report import build_parser

if TYPE_CHECKING:
    from simcore.trace.accounts import Accounts
    from simcore.trace.findings import TrackInterval
    from simcore.trace.lane_spans import Spans, StretchFigures
    from simcore.trace.lanes import Lanes
    from simcore.trace.named_work import NamedWork
    from simcore.trace.run import Run


def opened_run(words: list[str]) -> Run | None:
    """The run that `wltui report` with these words is of; None where it refuses: the message is elsewhere."""
    with redirect_stderr(io.StringIO()):
        try:
            arguments = build_parser().parse_args(words)
            opened = open_input(arguments.file, opening_options(arguments))
            return open_run(RunInput(opened, parse_parameters(arguments)))
        except (InputError, UsageError):
            return None


def run_texts(run: Run, view: str) -> dict[str, str]:
    """Part -> its text, of view `run` or `lanes`; without those of which the run has nothing."""
    made = {part: "\n".join(lines(run)) for part, lines in _PARTS[view].items()}
    return {part: text for part, text in made.items() if text}


# -- what is asked of the classes behind `Run` ---------------------------------------------


def _accounts(run: Run) -> Sequence[Accounts]:
    """The accounts of each track, by its number; none of an order without times."""
    several: Sequence[Accounts] = run.accounts if run.timed else ()  # type: ignore[attr-defined]
    return several


def _op_slacks(run: Any) -> Iterator[str]:
    """ns by which each op may take longer, a line a track: of a simulated class in the order of its ops; of a
    measured rank those of its operations that take part, `place:ns`, of an executed one `node:ns`.
    """
    if run.figures.kind == "simulated":
        for column in run.slacks or ():
            yield " ".join(map(str, column))
    elif run.figures.kind == "executed":
        for nodes, column in zip(run.executed.nodes, run.executed.units.spread(run.slacks), strict=True):
            yield " ".join(f"{node}:{ns}" for node, ns in zip(nodes.id, column, strict=True))
    elif run.timed:
        for pieces, column in zip(run.rendezvous.segments, run.slacks, strict=True):
            by_op: dict[int, int] = {}
            for op, kind, ns in zip(pieces.op, pieces.kind, column, strict=True):
                if kind != GAP:
                    by_op[op] = min(ns, by_op.get(op, ns))
            yield " ".join(f"{op}:{ns}" for op, ns in sorted(by_op.items()))


# -- view `run` ----------------------------------------------------------------------------


def _segments(run: Run) -> Iterator[str]:
    """Where the accounts of a track change, and to which one."""
    # Equal tracks may have one object.
    known: dict[int, str] = {}
    labels = []
    accounts_of = _accounts(run)
    for track in run.tracks if accounts_of else ():
        accounts = accounts_of[track.track_id]
        if id(accounts) not in known:
            known[id(accounts)] = _text_of_segments(accounts)
        labels.append((track.ranks.text(), known[id(accounts)]))
    return _by_text(labels)


def _text_of_segments(accounts: Accounts) -> str:
    """Neighbouring segments of one account as one: where ops part them, lanes say."""
    names, before, lines = accounts.of.all, -1, []
    for edge, account in zip(accounts.edge, accounts.account, strict=False):
        if account != before:
            lines.append(f"{edge} {names[account]}")
            before = account
    return "\n".join([*lines, str(accounts.edge[-1])])


def _legs(run: Run) -> Iterator[str]:
    """The legs of the critical path, and where each is seen."""
    for leg in merged_segments_of(run):
        spot = _spot(run, find_interval(run, leg))
        yield f"{leg.start_ns} {leg.end_ns} rank {leg.rank} stage {leg.stage} of {leg.microbatch} {spot}"
        yield f"  {leg.what!r}: {leg.reason!r}"


def _spot(run: Run, spot: TrackInterval) -> str:
    return f"{ranks_of(run.tracks, spot.track_id).text()} {spot.stream} {spot.start_ns} {spot.end_ns}"


def _path_by(run: Run) -> Iterator[str]:
    """The critical path summed in each way that there is."""
    for by in run.figures.path_groupings:
        for part, ns in sum_path(run, by):
            yield f"{by} {part!r} {ns}"


def _work_by_name(run: Run) -> Iterator[str]:
    """What a rank of each track does by name, with all its calls."""
    if not run.timed:
        return iter(())
    return _by_text(
        (track.ranks.text(), _text_of_work(run.figures.named_work(track))) for track in run.tracks
    )


def _text_of_work(work: NamedWork) -> str:
    lines = [f"{account} {name!r} {ns}" for (account, name), ns in work.ns.items()]
    for (computes, name), (times, ns) in work.calls.items():
        lines.append(f"{'computing' if computes else 'else'} {name!r} {times} times {ns}")
    return "\n".join(sorted(lines))


def _passes(run: Run) -> Iterator[str]:
    """The passes of a rank of each track."""
    return _by_text(
        (track.ranks.text(), "\n".join(" ".join(map(str, a_pass)) for a_pass in run.figures.passes(track)))
        for track in run.tracks
    )


def _worst(run: Run) -> Iterator[str]:
    """The places worth a look."""
    for place in run.figures.worst_findings:
        yield f"{place.what} {place.ns} {_spot(run, place.interval)} {place.words!r}"


# -- view `lanes` --------------------------------------------------------------------------


def _lanes(run: Run) -> Iterator[str]:
    """Each lane of the timeline: its titles, and its spans with kind and name."""
    lanes = run.lanes
    yield f"{lanes.facts.length} {lanes.facts.counts_text} {sorted(lanes.kinds)}"
    yield from _by_text(
        (_label(lanes, number, stream), _text_of_lane(lanes, number, stream))
        for number, stream in _all_lanes(lanes)
    )


def _all_lanes(lanes: Lanes) -> Iterator[tuple[int, str | None]]:
    for number in lanes.facts.track_ids:
        for stream in (None, *lanes.streams(number)):
            yield number, stream


def _label(lanes: Lanes, number: int, stream: str | None) -> str:
    track = lanes.track(number)
    title = track.title if stream is None else lanes.streams(number)[stream]
    headings = "/".join(track.headings)
    return f"{track.ranks.text()} {stream} [{headings}: {title!r} {track.title_note}]"


def _text_of_lane(lanes: Lanes, number: int, stream: str | None) -> str:
    content = lanes.content(number, stream)
    spans, drawn = content.spans, content.cell_spans
    lines = _lines_of_spans(lanes, number, spans)
    if drawn is not spans:
        lines += ["drawn", *_lines_of_spans(lanes, number, drawn)]
    return "\n".join(lines)


def _lines_of_spans(lanes: Lanes, number: int, spans: Spans) -> list[str]:
    names: dict[int, str] = {}
    lines = []
    for start, end, op, kind in zip(spans.start, spans.end, spans.op, spans.category, strict=True):
        name = ""
        # What stands still has no name on the screen.
        if kind not in NAMELESS:
            if op not in names:
                names[op] = repr(lanes.span_name(number, op))
            name = names[op]
        lines.append(f"{start} {end} {KINDS[kind]} {name}")
    return lines


def _lane_walks(run: Run) -> Iterator[str]:
    """What one moves by on the timeline, and how much of the step and of its middle is what."""
    lanes = run.lanes
    for number, wait in lanes.all_waits():
        start = lanes.spans(number, None).start[wait.span]
        yield f"wait {lanes.track(number).ranks.text()} {start} {-wait.minus_ns}"
    for start, end, _, rank, stream in lanes.path() if lanes.facts.timed and lanes.facts.concurrent else ():
        yield f"path {start} {end} {rank} {stream}"
    for number in lanes.facts.track_ids:
        ranks = lanes.track(number).ranks.text()
        for stretch in lanes.passes(number):
            yield f"pass {ranks} {_plain(stretch)}"
        yield f"seams {ranks} {list(lanes.track(number).seams)}"
        yield f"measures {ranks} {[lanes.measure_ns(order.id, number) for order in lanes.facts.orders[1:]]}"
        for first, last in _stretches(lanes):
            yield f"figures {ranks} {_text_of_figures(lanes.figures(number, first, last))}"
    for first, last in _stretches(lanes):
        yield f"all {_text_of_figures(lanes.figures(None, first, last))}"


def _text_of_figures(figures: StretchFigures) -> str:
    return f"{figures.full_ns} {figures.ranks} {' '.join(map(_plain, figures.figures))}"


def _stretches(lanes: Lanes) -> tuple[tuple[int, int], ...]:
    length = lanes.facts.length
    return (0, length), (length // 3, length * 2 // 3)


def _span_words(run: Run) -> Iterator[str]:
    """All that is said of the first, the middle and the last span of each lane, and of where there is none;
    what comes before and after it.
    """
    lanes, words = run.lanes, run.lanes.words
    for number, stream in _all_lanes(lanes):
        ranks, count = lanes.track(number).ranks, len(lanes.spans(number, stream).start)
        yield f"{ranks.text()} {stream} {_plain(words.summarize(number, stream, None, ranks))}"
        for index in sorted({0, count // 2, count - 1} if count else ()):
            yield _plain(words.summarize(number, stream, index, ranks))
            yield (
                f"  {words.volume(number, stream, index)} "
                f"{words.side_note(number, stream, index, True, None)}"
            )
            yield f"  {words.detail_rows(number, stream, index, None)}"
            for direction in (-1, 1):
                for step in words.find_steps(number, stream, index, None, direction):
                    yield f"  {direction} {step.stream} {step.start_ns} {step.rank} {step.words}"


def _searched(run: Run) -> Iterator[str]:
    """How many spans of each lane a search finds by which words, names and micro-batch."""
    lanes = run.lanes
    for number, stream in _all_lanes(lanes):
        yield f"{lanes.track(number).ranks.text()} {stream}"
        of = lanes.search_columns(number, stream)
        counts = Counter(zip(of.kind, of.name, of.microbatch, strict=True))
        yield from sorted(
            f"  {sorted(of.kinds[kind])} {of.names[name]} {microbatch - 1}: {count}"
            for (kind, name, microbatch), count in counts.items()
        )


def _plain(values: tuple[object, ...]) -> str:
    """The values of a record, whatever its fields are called."""
    return str(tuple(values))


def _by_text(labelled: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each text once below all its labels; those that are empty are left out."""
    labels: dict[str, list[str]] = {}
    for label, text in labelled:
        labels.setdefault(text, []).append(label)
    for text, several in labels.items():
        if text:
            yield f"== {', '.join(several)}"
            yield text


_PARTS: Mapping[str, Mapping[str, Callable[[Run], Iterator[str]]]] = {
    "run": {
        "slack of ops": _op_slacks,
        "segments": _segments,
        "legs": _legs,
        "path by": _path_by,
        "work by name": _work_by_name,
        "passes": _passes,
        "worst": _worst,
    },
    "lanes": {"lanes": _lanes, "lane walks": _lane_walks, "span words": _span_words, "searched": _searched},
}
RUN_VIEWS = tuple(_PARTS)
