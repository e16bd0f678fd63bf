"""Lines of a report as HTML: titles, paragraphs and tables, in the words of the page of text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from simcore.diagnostics import printable
from simcore.render.report.section import Bar, Legend, TableLine, WrappedLine

# The most characters of one text of a file: a name of a megabyte is truncated.
_MOST_TEXT = 4000
# Whole units of a bar's width: fine enough for any screen.
_BAR_UNITS = 1000


def escaped(text: str, limit: int = _MOST_TEXT) -> str:
    """Returns text as HTML text or attribute; control characters are made visible, long texts truncated."""
    return html.escape(printable(text, limit))


def element(name: str, text: str, css: str = "") -> str:
    """Returns an element with text in it."""
    attribute = f' class="{css}"' if css else ""
    return f"<{name}{attribute}>{escaped(text)}</{name}>"


def render_section(identity: str, lines: Sequence[str]) -> str:
    """Returns a section of a page of text as one of HTML; "" for no lines. Its first line is its title."""
    if not lines:
        return ""
    first = lines[0]
    title = (first.whole if isinstance(first, WrappedLine) else first).strip()
    rest = lines[1:]
    if isinstance(first, TableLine):
        title, rest = "", lines
    head = element("h2", title) if title else ""
    body = "\n".join(render_blocks(rest))
    return f'<section id="{identity}" class="{identity}">{head}\n{body}\n</section>'


def render_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yields each paragraph, each table and each block of aligned text as an element."""
    table: list[TableLine] = []
    plain: list[str] = []
    for line in lines:
        if table and not (isinstance(line, TableLine) and line.columns is table[0].columns):
            yield _render_table(table)
            table = []
        if plain and (isinstance(line, (TableLine, WrappedLine, Legend)) or not line.strip()):
            yield _render_plain(plain)
            plain = []
        if isinstance(line, TableLine):
            table.append(line)
        elif isinstance(line, Legend):
            yield _render_legend(line)
        elif isinstance(line, WrappedLine):
            if line.whole:
                yield element("p", line.whole)
        elif line.strip():
            plain.append(line)
    if table:
        yield _render_table(table)
    if plain:
        yield _render_plain(plain)


def _render_plain(lines: list[str]) -> str:
    """Returns lines that are aligned with each other as one block, others as a paragraph each."""
    aligned = len(lines) > 1 and any("   " in line.strip() for line in lines)
    if aligned:
        return element("pre", "\n".join(lines)).replace("\\x0a", "\n")
    return "\n".join(element("p", line.strip(), "" if line.startswith(" ") else "sub") for line in lines)


def _render_legend(line: Legend) -> str:
    keys = "".join(
        f'<li><svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect class="part-{escaped(part)}" '
        f'width="10" height="10"/></svg>{escaped(part)}</li>'
        for part in line.parts
    )
    return f'<ul class="legend">{keys}</ul>'


def _render_table(lines: list[TableLine]) -> str:
    columns = lines[0].columns
    head = "".join(f"<th{_css(column.left)} scope=col>{escaped(column.heading)}</th>" for column in columns)
    rows = "\n".join(
        "<tr>" + "".join(
            f"<td{_css(column.left)}>{_render_cell(cell)}</td>"
            for cell, column in zip(line.cells, columns, strict=True)
        ) + "</tr>"
        for line in lines
        if not line.is_heading
    )  # fmt: skip
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'


def _css(left: bool) -> str:
    return " class=l" if left else ""


def _render_cell(cell: str) -> str:
    if not isinstance(cell, Bar):
        return escaped(cell)
    label = ", ".join(f"{part} {100 * ns / cell.whole:.1f} %" for part, ns in _merge_parts(cell))
    rects, end_ns = [], 0
    for part, ns in _merge_parts(cell):
        start, end_ns = end_ns, end_ns + ns
        left, right = (round(_BAR_UNITS * ns / cell.whole) for ns in (start, end_ns))
        if right > left:
            size = f'x="{left}" width="{right - left}" height="10"'
            rects.append(f'<rect class="part-{escaped(part)}" {size}/>')
    return (
        f'<svg class="bar" viewBox="0 0 {_BAR_UNITS} 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(label)}">{"".join(rects)}</svg>'
    )


def _merge_parts(bar: Bar) -> list[tuple[str, int]]:
    """Returns neighbouring parts of one name as one, without parts of 0 ns."""
    merged: list[tuple[str, int]] = []
    for part, ns in bar.parts:
        if merged and merged[-1][0] == part:
            merged[-1] = (part, merged[-1][1] + ns)
        elif ns and bar.whole:
            merged.append((part, ns))
    return merged
