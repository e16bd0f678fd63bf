"""A sweep as one HTML page: its verdict, a plot of its front, and its points as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simcore.render.page.blocks import element, escaped, render_section
from simcore.render.page.document import commands_section, document, facts_section
from simcore.shell_words import quote_word
from simcore.sweeping.outcome import Outcome, format_value, label, layout_value
from simcore.sweeping.pages import ASSUMED, columns_of, point_table
from simcore.sweeping.pareto_front import EquivalentPoints, choose_measure, measures
from simcore.sweeping.point import Point
from simcore.sweeping.point_lines import opening_words
from simcore.units import byte_size, duration

# More dots are a cloud, and more rows are too long to read: the file of results has all.
_MOST_DOTS, _MOST_ROWS = 3000, 1000
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 760, 360, 78, 44


def sweep_document(outcome: Outcome, path: str) -> str:
    """Returns the page of the points of a file of results."""
    front = outcome.front
    counts = outcome.count_lines()
    verdict = [*outcome.sentences()]
    title = f"Sweep: {counts[0]}"
    if front.points:
        fastest = front.best[0].point
        step = f"{duration(fastest.step_time_ns or 0)} a step"
        tokens = fastest.tokens_per_s
        best = step if tokens is None else f"{_format_figure(tokens)} tokens/s ({step})"
        layout = [
            f"{label(name)} {format_value(layout_value(fastest.layout, name))}"
            for name in columns_of(outcome)
        ]
        title = f"{_input_name(fastest)}: {best} at best, with {', '.join(layout)}"
        verdict.insert(0, f"Of {counts[0]}.")
    parts = [
        f'<section id="verdict" class="verdict">{element("p", path, "sub")}{element("h1", title)}\n'
        + "\n".join(element("p", line) for line in verdict)
        + "</section>",
        render_section("noticed", ["Not simulated, or simulated and too large", *counts[1:]])
        if counts[1:]
        else "",
    ]
    if front.points:
        parts += [
            _plot(outcome),
            *_tables(outcome),
            _common_section(outcome, front.best[0].point),
            render_section("assumed", [ASSUMED, *outcome.assumed]) if outcome.assumed else "",
            _commands_section(front.best[0].point, path),
        ]
    return document(f"{title} · {path}", parts)


def _tables(outcome: Outcome) -> list[str]:
    """Returns the sections of the front and of the fastest points, or of those of each family."""
    front, columns = outcome.front, columns_of(outcome)
    names = ", ".join("GPUs" if name == "gpus" else name for name in front.rule.objectives)
    blocks = [
        render_section(
            "front",
            [f"The front: no other point is better in one of {names} and worse in none",
             *point_table(outcome, _single_groups(front.front), columns)],
        )
    ]  # fmt: skip
    if front.rule.by:
        return blocks + [
            render_section(
                f"family-{family_index}",
                [f"Fastest with {label(front.rule.by)} {format_value(family)}",
                 *point_table(outcome, _single_groups([group.point for group in groups]), columns)],
            )
            for family_index, (family, groups) in enumerate(front.families().items(), 1)
        ]  # fmt: skip
    ordered = sorted(front.points, key=lambda point: (measures(point).time, point.index))
    remaining_count = len(ordered) - _MOST_ROWS
    more = f"; {remaining_count} slower ones are in the file of results" if remaining_count > 0 else ""
    title = f"All points that fit, the least time of a token or micro-batch first; * on the front{more}"
    return [
        *blocks,
        render_section("points", [title, *point_table(outcome, _single_groups(ordered), columns)]),
    ]


def _single_groups(points: list[Point]) -> list[EquivalentPoints]:
    """Returns the first of these points, each on a row of its own."""
    return [EquivalentPoints(point) for point in points[:_MOST_ROWS]]


def _input_name(point: Point) -> str:
    """Returns the model, or the file, of the points."""
    opened = opening_words(point)
    return opened[-1] if opened else "Sweep"


def _common_section(outcome: Outcome, best: Point) -> str:
    """Returns the section on what all points have in common."""
    facts = [("of", _input_name(best))]
    limits = {point.memory_limit_bytes for point in outcome.front.points}
    if len(limits) == 1 and best.memory_limit_bytes is not None:
        limit = byte_size(best.memory_limit_bytes)
        facts.append(("memory", f"{limit} of a GPU; what needs more is no candidate"))
    batch = best.layout.get("global_batch")
    if best.work and batch and best.tokens_per_s is not None:
        facts.append(("sequence", f"{best.work // batch} tokens"))
    facts += [(label(name), format_value(value)) for name, value in outcome.common().items()]
    return facts_section("What all of them have", facts)


def _commands_section(fastest: Point, path: str) -> str:
    return commands_section(
        [
            f"{fastest.command}    # the fastest, as a report",
            f"{fastest.command.replace('wltui report', 'wltui', 1)}    # and on the screen",
            f"wltui {quote_word(path)}    # all points, on the screen",
            f"wltui export {quote_word(path)} --format html -o sweep.html    # this page",
        ]
    )


# -- the plot ----------------------------------------------------------------------------


class _Scale:
    """The figures from `least` to `most` on `units` of the picture, from `start` on."""

    def __init__(self, figures: Sequence[float], start: float, units: float) -> None:
        least, most = min(figures), max(figures)
        room = (most - least) * 0.06 or abs(most) * 0.1 or 1.0
        self.least, self.most = max(0.0, least - room), most + room
        self._start, self._units = start, units

    def at(self, figure: float) -> float:
        """Returns the position of a figure."""
        share = (figure - self.least) / (self.most - self.least)
        return round(self._start + share * self._units, 1)

    @property
    def ticks(self) -> list[float]:
        """About five round figures."""
        rough = (self.most - self.least) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(multiple * power for multiple in (1, 2, 5, 10) if multiple * power >= rough * 0.999)
        first = math.ceil(self.least / step)
        return [step * multiple for multiple in range(first, math.floor(self.most / step) + 1)]


def _plot(outcome: Outcome) -> str:
    """Returns the plot of time against memory, or against GPUs where no point knows its memory; the front is
    a line.
    """
    front = outcome.front
    points = sorted(front.points, key=lambda point: (measures(point).time, point.index))[:_MOST_DOTS]
    by_memory = any(point.memory_peak_bytes for point in points)
    rate = choose_measure(points)

    def along(point: Point) -> float:
        return float((point.memory_peak_bytes if by_memory else point.gpus) or 0)

    def up(point: Point) -> float:
        return float((point.step_time_ns if rate is None else rate.value(point)) or 0)

    across = _Scale([along(point) for point in points], _LEFT, _WIDTH - _LEFT - 12)
    upward = _Scale([up(point) for point in points], _HEIGHT - _BOTTOM, -(_HEIGHT - _BOTTOM - 12))
    across_words, up_words = (
        byte_size if by_memory else _format_figure,
        duration if rate is None else rate.text,
    )
    elements = []
    for figure in across.ticks:
        x = across.at(figure)
        elements.append(f'<line class="grid" x1="{x}" x2="{x}" y1="12" y2="{_HEIGHT - _BOTTOM}"/>')
        text = escaped(across_words(round(figure)))
        elements.append(f'<text class="tick middle" x="{x}" y="{_HEIGHT - _BOTTOM + 16}">{text}</text>')
    for figure in upward.ticks:
        y = upward.at(figure)
        elements.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 12}" y1="{y}" y2="{y}"/>')
        text = escaped(up_words(round(figure)))
        elements.append(f'<text class="tick end" x="{_LEFT - 6}" y="{y + 4}">{text}</text>')
    best = {point.index for point in front.front}
    line = sorted((point for point in points if point.index in best), key=along)
    line_points = " ".join(f"{across.at(along(point))},{upward.at(up(point))}" for point in line)
    elements.append(f'<polyline class="front" points="{line_points}"/>')
    columns = columns_of(outcome)
    for point in sorted(points, key=lambda point: point.index in best):
        x, y = across.at(along(point)), upward.at(up(point))
        layout_text = ", ".join(
            f"{label(name)} {format_value(layout_value(point.layout, name))}" for name in columns
        )
        text = f"<title>{escaped(f'{duration(point.step_time_ns or 0)}: {layout_text}')}</title>"
        if point.index in best:
            elements.append(f'<path class="front" d="M{x} {y - 6}l6 6l-6 6l-6 -6z">{text}</path>')
        else:
            elements.append(f'<circle class="dot" cx="{x}" cy="{y}" r="3">{text}</circle>')
    below = "memory of the fullest stage" if by_memory else "GPUs"
    upward_title = "step time" if rate is None else rate.words
    title = f"{upward_title.capitalize()} against {below}; filled diamonds: the front"
    elements.append(f'<text class="tick middle" x="{(_WIDTH + _LEFT) // 2}" y="{_HEIGHT - 8}">{below}</text>')
    return (
        f'<section id="plot" class="plot">{element("h2", title)}<svg class="plot" role="img" '
        f'aria-label="{escaped(title)}: all its figures are in the tables" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        + "".join(elements) + "</svg></section>"
    )  # fmt: skip


def _format_figure(figure: float) -> str:
    return f"{round(figure):,}".replace(",", " ")
