"""A run, or two on one axis, as one HTML page that loads nothing from any network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.render.export.format import Export, Progress, Request
from simcore.shell_words import join_words

if TYPE_CHECKING:
    from simcore.trace.run import Run

_EXAMPLE = "step.html"


def export(request: Request) -> Export:
    """Returns the page of the run, with that of `request.against` where it is set."""
    run, against = request.results, request.against
    runs = [run] if against is None else [against, run]
    # Half of the room each, so that neither side of a comparison crowds the other out.
    progress = Progress(sum(_count_spans(each) for each in runs))
    what = "page of a run" if against is None else "page of two runs"
    return Export(_page_chunks(request, runs, progress), what, (), progress)


def _count_spans(run: Run) -> int:
    lanes = run.lanes
    return sum(
        len(lanes.spans(track_id, stream).start)
        for track_id in lanes.facts.track_ids
        for stream in (None, *lanes.streams(track_id))
    )


def _page_chunks(request: Request, runs: list[Run], progress: Progress) -> Iterator[bytes]:
    # Imported here: only this format makes pages.
    from simcore.render.page.document import comparison_document, run_document
    from simcore.render.page.packing import MOST_SPANS, PackedRun, Strings

    strings = Strings()
    timelines = []
    for run in runs:
        room = progress.total if request.every_rank else MOST_SPANS // len(runs)
        packing = PackedRun(run, strings, room, request.ranks)
        for packed_spans in packing.fill():
            progress.written_count += packed_spans
            # Nothing is written yet: the caller sees the progress, and can stop.
            yield b""
        timelines.append(packing)
    if len(runs) == 1:
        page = run_document(runs[0], timelines[0], strings, _commands(runs[0]))
    else:
        from simcore.comparison import Comparison

        comparison = Comparison(runs[0], runs[1])
        for timeline, side in zip(timelines, comparison.side_texts, strict=True):
            timeline.values["name"] = printable(side)
        page = comparison_document(comparison, timelines, strings, _commands_of_two(*runs))
    yield page.encode("utf-8", "backslashreplace")


def _commands(run: Run) -> list[str]:
    command = run.parameters.command_words(run.path, run.setup.label)
    screen_command = ["wltui", *command]
    page = ["wltui", "export", *command, "--format", "html", "-o", _EXAMPLE]
    return [f"{join_words(screen_command)}    # on the screen", f"{join_words(page)}    # this page"]


def _commands_of_two(a: Run, b: Run) -> list[str]:
    """Returns the commands for both on the screen, and for both as text and this page where one command line
    can do that.
    """
    commands = []
    for name, run in (("A", a), ("B", b)):
        screen_command = ["wltui", *run.parameters.command_words(run.path, run.setup.label)]
        commands.append(f"{join_words(screen_command)}    # {name}")
    of_b = b.parameters.as_flags()
    if a.path == b.path and a.setup.label == b.setup.label:
        page = command = [*a.parameters.command_words(a.path, a.setup.label), "--with", join_words(of_b)]
    elif a.parameters == b.parameters:
        command, page = [a.path, b.path, *of_b], [b.path, "--against", a.path, *of_b]
    else:
        return commands
    text = ["wltui", "compare", *command]
    page = ["wltui", "export", *page, "--format", "html", "-o", _EXAMPLE]
    return [*commands, f"{join_words(text)}    # both as text", f"{join_words(page)}    # this page"]
