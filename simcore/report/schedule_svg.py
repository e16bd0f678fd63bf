"""Schedules drawn as SVG: a lane a stage, a box for each action with its kind and micro-batch, one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from simcore.report.schedule_picture import Box, Picture, StageLane

_COLOURS = {"F": "#9ec5f4", "B": "#a5d8a0", "I": "#8fd6cf", "W": "#f2d487"}
# Of the chunks behind a stage's first.
_DEEPER = {"F": "#5b93d6", "B": "#6bb564", "I": "#4db3a9", "W": "#dcae3c"}
_MEANING = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
_LANE, _GAP, _LEFT, _RIGHT, _HEAD = 18, 2, 34, 128, 24
# Pixels of the axis: a unit has as many as it needs for a letter and two figures, if that is not too long.
_UNIT, _MOST_WIDTH = 22.0, 2400.0
# Above this many pixels a box has its letter, above the next its micro-batch too.
_LETTER, _BOTH = 7, 17


def pictures_svg(pictures: Sequence[Picture]) -> str:
    """One image of all pictures under each other."""
    longest = max(picture.length for picture in pictures) or 1.0
    scale = min(_UNIT * max(picture.parts for picture in pictures), _MOST_WIDTH / longest)
    width = round(_LEFT + longest * scale + _RIGHT)
    body: list[str] = []
    top = 4.0
    for picture in pictures:
        body += _picture(picture, top, scale, longest)
        top += _HEAD + len(picture.lanes) * (_LANE + _GAP) + 14
    body += _legend(pictures, top)
    height = round(top + 26)
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="sans-serif" font-size="11">\n',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n',
            *body,
            "</svg>\n",
        ]
    )


def _picture(picture: Picture, top: float, scale: float, longest: float) -> Iterator[str]:
    end = _LEFT + longest * scale
    yield _text(_LEFT, top + 13, picture.words(), weight="bold")
    yield _text(end + 8, top + 13, "bubble", fill="#555555")
    yield _text(end + 66, top + 13, "holds", fill="#555555")
    for stage, lane in enumerate(picture.lanes):
        y = top + _HEAD - 4 + stage * (_LANE + _GAP)
        yield _text(_LEFT - 6, y + 13, str(stage), anchor="end")
        yield _rect(_LEFT, y, picture.length * scale, "#eeeeee", "")
        for box in lane.boxes:
            yield _box(box, y, scale)
        for over in lane.ends[:-1]:
            x = _LEFT + over * scale
            yield f'<path d="M{x:.2f} {y - 1} v{_LANE + 2}" stroke="#c0392b" stroke-width="2"/>\n'
        share = 100 * lane.bubble / picture.length if picture.length else 0.0
        yield _text(end + 8, y + 13, f"{share:.1f} %")
        yield _text(end + 66, y + 13, _held(picture, lane))


def _held(picture: Picture, lane: StageLane) -> str:
    held = f"{lane.held * picture.size:.3f}".rstrip("0").rstrip(".")
    return held + (" x 2 stages" if picture.copies == 2 else "")


def _box(box: Box, y: float, scale: float) -> str:
    x, width = _LEFT + box.first * scale, (box.last - box.first) * scale
    fill = (_COLOURS if box.chunk == 0 else _DEEPER)[box.kind]
    title = f"{_MEANING[box.kind]} of micro-batch {box.microbatch}, chunk {box.chunk}: "
    title += f"{box.first:g} to {box.last:g}"
    rect = _rect(x, y, width, fill, title)
    letter = box.kind if box.chunk == 0 else box.kind.lower()
    label = f"{letter}{box.microbatch}" if width >= _BOTH else letter if width >= _LETTER else ""
    return rect + (_text(x + width / 2, y + 13, label, anchor="middle") if label else "")


def _rect(x: float, y: float, width: float, fill: str, title: str) -> str:
    inside = f"><title>{escape(title)}</title></rect>" if title else "/>"
    stroke = ' stroke="#ffffff" stroke-width="0.7"' if title else ""
    attributes = f'x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{_LANE}"'
    return f'<rect {attributes} fill="{fill}"{stroke}{inside}\n'


def _text(
    x: float, y: float, text: str, anchor: str = "start", weight: str = "normal", fill: str = "#111111"
) -> str:
    style = f'text-anchor="{anchor}" fill="{fill}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>\n'


def _legend(pictures: Sequence[Picture], top: float) -> Iterator[str]:
    boxes = [box for picture in pictures for lane in picture.lanes for box in lane.boxes]
    x = float(_LEFT)
    for kind in "FBIW":
        if any(box.kind == kind for box in boxes):
            yield _rect(x, top, 18, _COLOURS[kind], _MEANING[kind])
            words = f"{kind} {_MEANING[kind]}"
            yield _text(x + 22, top + 13, words)
            x += 34 + 6.2 * len(words)
    if any(box.chunk for box in boxes):
        yield _text(x, top + 13, "darker, small letters: chunks behind a stage's first")
