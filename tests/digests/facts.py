"""The facts of a case, by part, as values of a JSON: what its report or comparison states, and what of the
run no command prints.

Tracks are named by their ranks: how a run numbers its tracks, ops and names inside is in no fact. Of a text
its figures and names are kept, not its wording.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from simcore import __version__
from simcore.diagnostics import InputError, UsageError
from simcore.parameters import RunInput
from simcore.render.report.json_text import json_text
from simcore.render.report.pages import run_json
from simcore.runs import open_run
from simcore.sources.segments import GAP
from simcore.trace.lane_spans import KINDS, NAMELESS
from simcore.trace.run import find_interval, merged_segments_of, sum_path
from simcore.trace.track import ranks_of
from tests.findings import facts as facts_of_text
from tui.cli import SUCCESS, main
from tui.commands.arguments import opening_options, parse_parameters
from tui.commands.opened import open_input
from tui.commands.report import build_parser

from .cases import COMPARE, EXPORTS, FOLDERS, Case
from .places import inside, place_of

if TYPE_CHECKING:
    from simcore.trace.findings import TrackInterval
    from simcore.trace.lane_spans import Spans
    from simcore.trace.lanes import Lanes
    from simcore.trace.run import Run
    from simcore.trace.track import Track

# Part -> what it has.
Facts = dict[str, Any]

# Part -> the keys of `report --json` and of `compare --json` that belong to it; all others to the rest.
_PARTS = {
    "step": (
        "step_time_ns", "microbatch_ns", "pass_end_ns", "step_end_ns", "steady_step_ns",
        "a_ns", "b_ns", "difference_ns", "difference_percent",
    ),
    "accounts": (
        "classes", "mean_ns", "streams", "dimensions", "worst_link", "parts", "accounts", "worst", "stages",
        "lanes",
    ),
    "path": ("critical_path",),
    "slack": (),
    "layers": ("layers",),
    "what_if": ("what_if", "what_if_base_ns", "gradients"),
    "measured": ("measured",),
    "movers": ("movers", "unchanged"),
    "words": ("sentences", "diagnostics", "why", "unlike"),
    "rest": (),
}  # fmt: skip
_PART_OF = {key: part for part, keys in _PARTS.items() for key in keys}
# Keys of texts, of which facts are kept.
_TEXTS = ("text", "message", "words")
# What the case has already.
_NO_FACTS = ("file", "schema")
_NOTHING: tuple[Any, ...] = (None, [], {})


def facts_of(case: Case) -> Facts:
    """Part -> what the case has of it. A refusal is one part; an export that is asked for is its digest."""
    with place_of(case.folder) as place, inside(place):
        try:
            facts = _compared(case) if COMPARE in case.views else _reported(case)
        except (InputError, UsageError) as error:
            return {"refused": {"error": type(error).__name__, "facts": facts_of_text(str(error))}}
        return facts | {view: _exported(case, view) for view in case.views if view in EXPORTS}


def canonical(value: Any) -> str:
    """A value as text, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def checksum(text: str) -> str:
    """The first 8 digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


# -- what commands print -------------------------------------------------------------------


def _reported(case: Case) -> Facts:
    """What `report --json` states and, where a view asks for them, the facts of the same run."""
    arguments = build_parser().parse_args(case.arguments)
    opened = open_input(arguments.file, opening_options(arguments))
    run = open_run(RunInput(opened, parse_parameters(arguments)))
    facts = by_part(json.loads(json_text(run_json(run, arguments.what_if))))
    for view in case.views:
        for part, of_part in _FACTS_OF_A_RUN.get(view, {}).items():
            more = {name: _plain(of(run)) for name, of in of_part.items()}
            facts[part] = facts.get(part, {}) | {
                name: value for name, value in more.items() if value not in _NOTHING
            }
    return facts


def _compared(case: Case) -> Facts:
    """What `compare --json` states."""
    return by_part(json.loads(_printed(["compare", "--json", *case.arguments])))


def by_part(output: dict[str, Any]) -> Facts:
    """Part -> what the JSON of a report or of a comparison has of it."""
    facts: Facts = {part: {} for part in _PARTS}
    of_two = {f"{run}_ns": output[run].pop("step_time_ns") for run in "ab" if run in output}
    for key, value in (output | of_two).items():
        plain = _plain(value)
        if plain not in _NOTHING and key not in _NO_FACTS:
            is_of_words = key in ("sentences", "diagnostics")
            facts[_PART_OF.get(key, "rest")][key] = _lines(plain) if is_of_words else plain
    return {part: value for part, value in facts.items() if value}


def _plain(value: Any) -> Any:
    """A value without null, with the facts of texts in their place and nine digits of each quotient."""
    if isinstance(value, dict):
        return {
            key: facts_of_text(inner) if key in _TEXTS and isinstance(inner, str) else _plain(inner)
            for key, inner in value.items()
            if inner is not None and key not in _NO_FACTS
        }
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _lines(records: Iterable[dict[str, Any]]) -> list[str]:
    """Each sentence or diagnostic on a line, of which rule or code, then its other facts."""
    first = ("severity", "code", "rule", "line", "column")
    return [
        "; ".join(str(record[key]) for key in sorted(record, key=lambda key: (key not in first, key)))
        for record in records
    ]


def _exported(case: Case, view: str) -> str:
    """The digest of the page, or of what `export` writes; of a folder of its files with their names; of a
    refusal of its facts.
    """
    try:
        if view == "text":
            return checksum(_printed(["report", *case.arguments]))
        if view not in FOLDERS:
            return checksum(_printed(["export", "--format", view, "-o", "-", *case.arguments]))
        with TemporaryDirectory() as folder:
            _printed(["export", *FOLDERS[view], *case.arguments, "-o", str(Path(folder, "out"))])
            files = sorted(Path(folder).glob("out/*"))
            return checksum(canonical([[file.name, _text(file.read_bytes())] for file in files]))
    except UsageError as error:
        return checksum(facts_of_text(str(error)))


def _printed(words: list[str]) -> str:
    """What `wltui` prints with these words. Raises `UsageError` with its message where it refuses."""
    out, messages = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(messages):
        status = main(words)
        out.flush()
    if status != SUCCESS:
        raise UsageError(messages.getvalue())
    return _text(out.buffer.getvalue())


def _text(written: bytes) -> str:
    """What was written, without the version: that is of the program, not of the run."""
    text = written.decode("utf-8", "surrogateescape")
    for before in ('"wltui":"', "simulated by wltui "):
        text = text.replace(f"{before}{__version__}", before)
    return text


# -- what no command prints in full --------------------------------------------------------


def _by_tracks(run: Run, of: Callable[[Track], Any]) -> list[dict[str, Any]]:
    """The same of each track; equal tracks once, with all their ranks."""
    ranks: dict[str, list[str]] = {}
    for track in run.tracks if run.timed else ():
        ranks.setdefault(canonical(of(track)), []).append(track.ranks.text())
    return [{"ranks": ", ".join(several), "of": json.loads(text)} for text, several in ranks.items()]


def _segments(run: Run) -> Any:
    """Where the accounts of a track change, and to which one: neighbours of one account are one."""

    def changes(track: Track) -> list[tuple[int, str]]:
        accounts = run.accounts[track.track_id]
        by_account = groupby(zip(accounts.edge, accounts.account, strict=False), itemgetter(1))
        return [(next(same)[0], accounts.of.all[account]) for account, same in by_account]

    return _by_tracks(run, changes)


def _op_slacks(run: Any) -> Any:
    """ns by which each op may take longer: of a simulated class in the order of its ops; of a measured rank
    those of its operations that take part, by their place, of an executed one by its nodes.
    """
    if run.figures.kind == "simulated":
        return [list(column) for column in run.slacks or ()]
    if run.figures.kind == "executed":
        columns = zip(run.executed.nodes, run.executed.units.spread(run.slacks), strict=True)
        return [list(zip(nodes.id, column, strict=True)) for nodes, column in columns]
    found = []
    for pieces, column in zip(run.rendezvous.segments, run.slacks, strict=True) if run.timed else ():
        by_op: dict[int, int] = {}
        for op, kind, ns in zip(pieces.op, pieces.kind, column, strict=True):
            if kind != GAP:
                by_op[op] = min(ns, by_op.get(op, ns))
        found.append(sorted(by_op.items()))
    return found


def _legs(run: Run) -> Any:
    """The legs of the critical path, and where each is seen."""
    return [
        {
            "start_ns": leg.start_ns, "ns": leg.ns, "rank": leg.rank, "stage": leg.stage,
            "microbatch": leg.microbatch, "what": leg.what, "reason": leg.reason,
            "seen": _spot(run, find_interval(run, leg)),
        }
        for leg in merged_segments_of(run)
    ]  # fmt: skip


def _spot(run: Run, spot: TrackInterval) -> str:
    return f"{ranks_of(run.tracks, spot.track_id).text()} {spot.stream} {spot.start_ns} {spot.end_ns}"


def _path_by(run: Run) -> Any:
    """The critical path summed in each way that there is."""
    return {by: [list(part) for part in sum_path(run, by)] for by in run.figures.path_groupings}


def _work_by_name(run: Run) -> Any:
    """What a rank of each track does by name, with how often."""

    def work(track: Track) -> Any:
        of = run.figures.named_work(track)
        calls = [
            ["computing" if computes else "else", name, *of_call]
            for (computes, name), of_call in of.calls.items()
        ]
        return {"ns": sorted([*key, ns] for key, ns in of.ns.items()), "calls": sorted(calls)}

    return _by_tracks(run, work)


def _passes(run: Run) -> Any:
    """The passes of a rank of each track."""
    return [found for found in _by_tracks(run, run.figures.passes) if found["of"]]


def _worst(run: Run) -> Any:
    """The places worth a look."""
    return [
        f"{place.what}; {place.ns}; {_spot(run, place.interval)}; {facts_of_text(place.words)}"
        for place in run.figures.worst_findings
    ]


# -- the lanes of the timeline -------------------------------------------------------------


def _all_lanes(lanes: Lanes) -> Iterator[tuple[int, str | None, str]]:
    """(track, stream, ranks and stream in words) of each lane."""
    for number in lanes.facts.track_ids:
        for stream in (None, *lanes.streams(number)):
            yield number, stream, f"{lanes.track(number).ranks.text()} {stream or '-'}"


def _lanes(run: Run) -> Any:
    """Each lane: its titles, its spans with start, end, kind and name; where others are drawn those too."""
    lanes = run.lanes
    found: list[dict[str, Any]] = []
    for number, stream, label in _all_lanes(lanes):
        track, content = lanes.track(number), lanes.content(number, stream)
        title = track.title if stream is None else lanes.streams(number)[stream]
        spans = _spans(lanes, number, content.spans)
        lane = {"lane": label, "title": [*track.headings, title, track.title_note], "spans": spans}
        if content.cell_spans is not content.spans:
            lane["drawn"] = _spans(lanes, number, content.cell_spans)
        found.append(lane)
    return found


def _spans(lanes: Lanes, number: int, spans: Spans) -> list[tuple[int, int, str, str]]:
    """Start, end, kind and name. What stands still has no name on the screen."""
    name = cache(partial(lanes.span_name, number))
    columns = zip(spans.start, spans.end, spans.op, spans.category, strict=True)
    return [
        (start, end, KINDS[kind], "" if kind in NAMELESS else "".join(name(op)))
        for start, end, op, kind in columns
    ]


def _walks(run: Run) -> Any:
    """What one moves by on the timeline."""
    lanes = run.lanes
    on_path = lanes.path() if lanes.facts.timed and lanes.facts.concurrent else ()
    tracks = [(number, lanes.track(number)) for number in lanes.facts.track_ids]
    return {
        "waits": [
            [lanes.track(number).ranks.text(), lanes.spans(number, None).start[wait.span], -wait.minus_ns]
            for number, wait in lanes.all_waits()
        ],
        "path": [[start, end, rank, stream] for start, end, _, rank, stream in on_path],
        "passes": [[track.ranks.text(), *each] for number, track in tracks for each in lanes.passes(number)],
        "seams": [[track.ranks.text(), *track.seams] for _, track in tracks],
        "measures": [
            [track.ranks.text(), *(lanes.measure_ns(order.id, number) for order in lanes.facts.orders[1:])]
            for number, track in tracks
        ],
    }


def _stretches(run: Run) -> Any:
    """How much of the step and of its middle third is what, of each track and of all."""
    lanes, length = run.lanes, run.lanes.facts.length
    return [
        [
            "all" if number is None else lanes.track(number).ranks.text(),
            *_plain(lanes.figures(number, *stretch)),
        ]
        for number in (*lanes.facts.track_ids, None)
        for stretch in ((0, length), (length // 3, length * 2 // 3))
    ]


def _dialogs(run: Run) -> Any:
    """The figures in all that is stated of the first, the middle and the last span of each lane, and of where
    there is none; what comes before and after it.
    """
    lanes, words = run.lanes, run.lanes.words
    found: list[dict[str, Any]] = []
    for number, stream, label in _all_lanes(lanes):
        ranks, count = lanes.track(number).ranks, len(lanes.spans(number, stream).start)
        empty = words.summarize(number, stream, None, ranks)
        found.append({"lane": label, "facts": facts_of_text(" ".join(_texts_in(empty)))})
        for index in sorted({0, count // 2, count - 1} if count else ()):
            span = number, stream, index
            stated = (
                words.summarize(*span, ranks), words.volume(*span), words.side_note(*span, True, None),
                words.detail_rows(*span, None),
            )  # fmt: skip
            steps = [*words.find_steps(*span, None, -1), *words.find_steps(*span, None, 1)]
            found.append({
                "lane": label, "span": index, "facts": facts_of_text(" ".join(_texts_in(stated))),
                "steps": [[step.stream, step.start_ns, step.rank] for step in steps],
            })  # fmt: skip
    return found


def _texts_in(value: Any) -> Iterator[str]:
    """The texts of a record, whatever its fields are called."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_in(inner)


def _searched(run: Run) -> Any:
    """How many spans of each lane a search finds by which words, names and micro-batch."""
    found: list[dict[str, Any]] = []
    for number, stream, label in _all_lanes(run.lanes):
        of = run.lanes.search_columns(number, stream)
        counts = Counter(zip(of.kind, of.name, of.microbatch, strict=True))
        by_words = sorted(
            [" ".join(sorted(of.kinds[kind])), " ".join(of.names[name]), microbatch - 1, count]
            for (kind, name, microbatch), count in counts.items()
        )
        found.append({"lane": label, "counts": by_words})
    return found


# View -> part -> name -> what it is of a run.
_FACTS_OF_A_RUN: dict[str, dict[str, dict[str, Callable[[Run], Any]]]] = {
    "run": {
        "accounts": {"segments": _segments},
        "slack": {"ops": _op_slacks},
        "path": {"by": _path_by, "legs": _legs},
        "words": {"places": _worst},
    },
    "work": {"work": {"by_name": _work_by_name, "passes": _passes}},
    "lanes": {"lanes": {"all": _lanes, "walks": _walks, "stretches": _stretches, "searched": _searched}},
    "dialogs": {"dialogs": {"spans": _dialogs}},
}
