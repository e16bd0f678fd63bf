"""What the changes do, as lines: step time, each change alone, accounts, where the stages' time goes."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.trace.figures import compare_by_work, each_words
from simcore.trace.run import Run, account_ns
from simcore.trace.track import Track
from simcore.units import duration, plural, signed_duration
from tui.chrome import run_difference
from tui.frame import ASCII, Glyphs, Line, cells, largest, width_of, wrapped
from tui.parameters.changes import ChangeTimes
from tui.summary.bars import account_bar
from tui.summary.panels import large_digits

# The least rows for the accounts of both runs and two bars: with fewer the bars are left out.
_LEAST_BARS = 5
_ACCOUNT_HEADING: Line = [(f"{'stage 0':<16}{'opened':>9} {'now':>9} {'diff':>10}", "bright")]
_NOT_POSSIBLE = "not possible"
# Parts of the bars: fill, what it is, and one word for it where there is less room.
_LEGEND = (
    ("fwd", "forward", "fwd"),
    ("bwd", "backward", "bwd"),
    ("opt", "optimizer", "opt"),
    ("exposed", "exposed", "exposed"),
    ("wait", "wait", "wait"),
    ("bubble", "bubble", "bubble"),
    ("idle", "idle", "idle"),
)


def effect_lines(
    opened: Run,
    now: Run,
    state: list[Line],
    changes: Sequence[ChangeTimes],
    progress: str,
    size: tuple[int, int],
    glyphs: Glyphs,
) -> list[Line]:
    """Returns the panel next to the form. state: what the draft is, and its refusal or its warnings.
    progress: of computing the changes' times; empty when there are none, or all are there.
    """
    width, height = size
    lines = [*figure_lines(opened, now, glyphs, width), *model_lines(opened, now, width), *state]
    # A cell stays free before the frame of the panel.
    alone = change_lines(changes, progress, opened, width - 1)
    lines += [[], *alone] if alone else []
    accounts = _accounts(opened, now)
    lines += [[], _ACCOUNT_HEADING, *map(_account_line, accounts)]
    room = height - len(lines) - 3
    if room >= _LEAST_BARS:
        lines += [[], *_bars(opened, now, width, room, glyphs)]
    return lines


def compact_lines(
    opened: Run,
    now: Run,
    state: list[Line],
    changes: Sequence[ChangeTimes],
    progress: str,
    size: tuple[int, int],
) -> list[Line]:
    """Returns the few rows under the form of a small terminal: one more change means one account less.

    Where not all fit, those that change most are shown, and how many more there are.
    """
    width, height = size
    lines = [step_line(opened, now), *model_lines(opened, now, width), *state]
    alone = change_lines(changes, progress, opened, width)
    if alone:
        # A change that is not possible alone comes first.
        step = opened.step_time_ns
        weights = [
            (1, 0) if change.alone is None else (0, abs(change.alone.step_time_ns - step))
            for change in changes
        ]
        lines += _largest_rows(alone[0], alone[1:], [] if progress else weights, height - len(lines))
    accounts = _accounts(opened, now)
    weights = [(abs(is_now - was), is_now) for _, was, is_now in accounts]
    return lines + _largest_rows(
        _ACCOUNT_HEADING, [*map(_account_line, accounts)], weights, height - len(lines)
    )


def _largest_rows(
    heading: Line, lines: list[Line], weights: Sequence[tuple[int, int]], rows: int
) -> list[Line]:
    """Returns a table in `rows` lines: the rows of the largest weights, and in the heading how many more
    there are.
    """
    if rows <= 0:
        return []
    if len(lines) < rows or not weights:
        return [heading, *lines][:rows]
    largest_lines = [lines[index] for index in largest(weights, rows - 1)]
    text, role = heading[0]
    # "stage 0, 3 more" would read as three more stages.
    more = f"{text.partition('  ')[0]}, +{plural(len(lines) - len(largest_lines), 'row')}"
    return [[(more + text[len(more) :], role)], *largest_lines]


def step_line(opened: Run, now: Run) -> Line:
    """Returns the step time in a line, and what it was."""
    head: Line = [("step ", ""), (duration(now.step_time_ns), "bright")]
    if compare_by_work(opened.shape, now.shape) is not None and each_words(now.shape):
        head.append((f", {each_words(now.shape)}", ""))
    if now is not opened:
        head += [("   was ", "dim"), (duration(opened.step_time_ns), ""), ("   ", ""),
                 *run_difference(opened.shape, now.shape)]  # fmt: skip
    return head


def model_lines(opened: Run, now: Run, width: int) -> list[Line]:
    """Returns in a line whether a model fits, and the share of the peak that it reaches; no line for other
    runs.
    """
    figures, before = now.model.model_figures, opened.model.model_figures
    if figures is None or before is None:
        return []
    from simcore.analysis.model_figures import format_memory, format_share

    mfu_text = format_share(figures)
    # MFU and the share of the memory's rate are figures of their own.
    was = f", was {format_share(before).removeprefix(mfu_text[:4])}" if now is not opened else ""
    words = format_memory(figures)
    short = "fits" if figures.fits else "does not fit"
    room = width - len(mfu_text) - len(was) - 3
    memory = next((text for text in (f"memory {words}", words, short) if len(text) <= room), short)
    role = "" if figures.fits else "worse"
    return [[(memory, role), (f"   {mfu_text}", ""), (was, "dim")]]


def figure_lines(opened: Run, now: Run, glyphs: Glyphs, width: int) -> list[Line]:
    """Returns the step time in large digits, next to it what it was; where it fits, the time of a
    micro-batch.
    """
    step = duration(now.step_time_ns)
    rows = ["", step, ""] if glyphs is ASCII else large_digits(step)
    left = max(len(row) for row in rows) + 4
    was: list[Line] = [[], [], []]
    each = each_words(now.shape)
    if now is not opened:
        was = [
            [("was ", "dim"), (duration(opened.step_time_ns), "")],
            _difference_in(opened, now, width - left),
            [(each, "")] if left + len(each) <= width else [],
        ]
    return [[(f"{row:<{left}}", "bright"), *more] for row, more in zip(rows, was, strict=True)]


def _difference_in(opened: Run, now: Run, room: int) -> Line:
    """Returns the difference of two steps in `room` cells: that they do different work is dropped last."""
    long = run_difference(opened.shape, now.shape)
    return long if width_of(long) <= room else run_difference(opened.shape, now.shape, short=True)


def change_lines(changes: Sequence[ChangeTimes], progress: str, opened: Run, width: int) -> list[Line]:
    """Returns a line a change: with it alone, against the opened run, and with all others but not
    this one.
    """
    if not changes and not progress:
        return []
    if progress:
        return [[("each change", "bright")], [(f" {progress}", "dim")]]
    alone = ["" if change.alone is None else duration(change.alone.step_time_ns) for change in changes]
    effects: list[Line] = [
        [] if change.alone is None else run_difference(opened.shape, change.alone, True) for change in changes
    ]
    without = [
        _NOT_POSSIBLE if change.without_ns is None else duration(change.without_ns) for change in changes
    ]
    # Figures have the room that they need, and a space before each; words have the rest.
    share = max(map(width_of, effects))
    time = max(len("alone"), *map(len, alone), len(_NOT_POSSIBLE) - share - 1)
    last = max(len("all but it"), *map(len, without))
    room = max(width - time - share - last - 3, len("each change"))
    head = f"{'each change':<{room}} {'alone':>{time}} {'':>{share}} {'all but it':>{last}}"
    lines: list[Line] = [[(head, "bright")]]
    for change_times, at, effect, rest in zip(changes, alone, effects, without, strict=True):
        line: Line = [(f"{' ' + cells(change_times.words, room - 1):<{room}} ", "")]
        if change_times.alone is None:
            line.append((f"{_NOT_POSSIBLE:>{time + 1 + share}}", "dim"))
        else:
            line += [(f"{at:>{time}} {' ' * (share - width_of(effect))}", ""), *effect]
        lines.append([*line, (f" {rest:>{last}}", "")])
    return lines


def _accounts(opened: Run, now: Run) -> list[tuple[str, int, int]]:
    """Returns (account, ns as opened, ns now) of the first stage's first ranks."""
    old, new = opened.accounts[0], now.accounts[0]
    rows = [("compute", old.busy_ns, new.busy_ns)]
    rows += [
        (f"exposed {kind}", ns, new.exposed_ns()[kind])
        for kind, ns in old.exposed_ns().items()
        if ns or new.exposed_ns()[kind]
    ]
    rows += [("wait", old.wait_ns, new.wait_ns)] if old.wait_ns or new.wait_ns else []
    return [*rows, ("bubble", old.bubble_ns, new.bubble_ns), ("idle", old.idle_ns, new.idle_ns)]


def _account_line(account: tuple[str, int, int]) -> Line:
    name, was, is_now = account
    diff = "=" if is_now == was else signed_duration(is_now - was)
    return [(f"  {name:<14}{duration(was):>9} {duration(is_now):>9} {diff:>10}", "")]


def _bars(opened: Run, now: Run, width: int, room: int, glyphs: Glyphs) -> list[Line]:
    """Returns bars of stages spread over the pipeline, each as opened and now, on one scale; then
    the legend.
    """
    changed = now is not opened
    runs = [("opened", opened), ("now", now)] if changed else [("", now)]
    longest_ns = max(run.step_time_ns for _, run in runs)
    left = 17 if changed else 15
    bar = max(width - left - 1, 4)
    end = duration(longest_ns)
    tracks = [_tracks_by_stage(run) for _, run in runs]
    count = min(map(len, tracks))
    stages = _spread_indices(count, (room - 1) // len(runs))
    out = _left_out_text(count - len(stages), max(bar - 1 - len(end), 0))
    lines: list[Line] = [[(f"{'where it goes':<{left}}0{out}{end}", "dim")]]
    used_glyphs: set[str] = set()
    for stage in stages:
        for run_index, (name, run) in enumerate(runs):
            of_stage = tracks[run_index][stage]
            ranks = sum(len(track.ranks) for track in of_stage)
            label = f" stage {stage:>2}" if run_index == 0 else ""
            label = f"{label:<10}{name}"
            *parts, rest = account_bar(account_ns(run, of_stage), longest_ns * ranks, bar, glyphs)
            used_glyphs.update(text[0] for text, _ in parts if text)
            lines.append([(f"{label:<{left}}", ""), *parts, rest])
    return [*lines, _legend(used_glyphs, width, glyphs)]


def _tracks_by_stage(run: Run) -> list[list[Track]]:
    by_stage: dict[int | None, list[Track]] = {}
    for track in run.tracks:
        by_stage.setdefault(track.stage, []).append(track)
    return [*by_stage.values()]


def _left_out_text(count: int, room: int) -> str:
    """Returns how many stages have no bar, in the middle of `room` cells of the scale."""
    texts = (f" {plural(count, 'stage')} left out ", f" {count} left out ")
    text = next((text for text in texts if count and len(text) <= room), "")
    return f"{text:^{room}}"


def _legend(used_glyphs: set[str], width: int, glyphs: Glyphs) -> Line:
    """Returns what the glyphs of the bars are, as many as there is room for. used_glyphs: those in
    the bars.
    """
    drawn_fills = [(fill, meanings) for fill, *meanings in _LEGEND if glyphs.fills[fill] in used_glyphs]
    long = sum(len(meanings[0]) + 3 for _, meanings in drawn_fills) - 1 <= width
    line: Line = []
    for fill, meanings in drawn_fills:
        role = "comm" if fill == "exposed" else fill
        line += [
            (" " if line else "", ""),
            (glyphs.fills[fill], role),
            (f" {meanings[0 if long else 1]}", ""),
        ]
    return line


def _spread_indices(count: int, most: int) -> list[int]:
    """Returns at most `most` of 0..count-1, the first and the last among them."""
    if count <= most or most < 2:
        return list(range(count))[: max(most, 1)]
    return [index * (count - 1) // (most - 1) for index in range(most)]


def state_lines(refusal: str, state: str, warnings: Sequence[str], width: int) -> list[Line]:
    """Returns what the draft is; a refusal that belongs to no field replaces it."""
    lines: list[Line] = [[(line, "worse" if refusal else "dim")] for line in wrapped(refusal or state, width)]
    for warning in warnings:
        lines += [[(line, "warn")] for line in wrapped(f"! {cells(warning, 400)}", width)]
    return lines
