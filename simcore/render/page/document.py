"""The page as a whole: a run, or two on one axis, in one HTML file, and a list of the words on it with their
meaning.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from simcore import __version__
from simcore.networks import unused_fields
from simcore.parameters import FLAGS
from simcore.render.page.blocks import element, escaped, render_blocks, render_section
from simcore.render.page.packing import PackedRun, Strings, pack_json, page_data
from simcore.render.page.ports import ports_section
from simcore.render.report import layers, what_if
from simcore.render.report.accounts import ACCOUNTS
from simcore.render.report.comparison import SECTIONS as OF_TWO
from simcore.render.report.comparison import SIDES
from simcore.render.report.pages import DIAGNOSTICS, HEAD, SECTIONS
from simcore.render.report.section import PageOptions
from simcore.units import change_percent, duration, percent

if TYPE_CHECKING:
    from simcore.comparison import Comparison
    from simcore.diagnostics import Diagnostic
    from simcore.render.report.section import Section
    from simcore.trace.run import Run

# The meanings of docs/vocabulary.md in short.
WORDS = {
    "tp": "tensor parallelism: ranks that share each layer",
    "dp": "data parallelism: ranks that have the same layers and other data",
    "pp": "pipeline parallelism: ranks that have other layers, the stages",
    "ep": "expert parallelism: ranks that share the experts of a layer",
    "cp": "context parallelism: ranks that share each sequence",
    "fwd": "forward",
    "ig": "the part of backward that makes input gradients",
    "wg": "the part of backward that makes weight gradients",
    "opt": "optimizer",
    "exposed": "communication for which compute stands still",
    "wait": "for the last member of a collective",
    "bubble": "a stage waits for what a neighbouring stage has not sent yet",
    "idle": "nothing runs on a rank: it is done; measured, also before its first operation and between two",
    "critical": "on the critical path: a chain of ops over all ranks, each waiting for the one before",
    "slack": "by how much longer something may take before the step is longer",
    "algbw": "bytes of a collective over its time",
    "busbw": "the same in bytes that cross the network, as nccl-tests count them",
    "mbs": "sequences of a micro-batch",
    "batch": "sequences of a step, of all replicas",
}  # fmt: skip
_WORD = re.compile(r"[a-z]+")


def words_section(parts: Iterable[str]) -> str:
    """Returns the section of the words that occur in these elements; "" for none."""
    there = set(_WORD.findall(re.sub(r"<script.*?</script>|<[^>]*>", " ", " ".join(parts), flags=re.DOTALL)))
    rows = [f"{element('dt', word)}{element('dd', text)}" for word, text in WORDS.items() if word in there]
    if not rows:
        return ""
    body = "\n".join(rows)
    return f'<section id="words" class="facts"><h2>Words of this page</h2><dl>\n{body}\n</dl></section>'


_OPTIONS = PageOptions(what_if=True, everything=True)
# The sections on where the step goes and what would help come first: a page is read for these. The others
# keep the order of the report.
_FIRST = (ACCOUNTS, what_if.SECTION)


def run_document(run: Run, timeline: PackedRun | None, strings: Strings, commands: Sequence[str]) -> str:
    """Returns the page of a run.

    timeline: with `strings`; None without lanes. commands: those that make the page again.
    """
    run.weigh_assumptions()
    title = run.figures.title.split("\n")
    others = [other for other in SECTIONS if other not in (HEAD, DIAGNOSTICS, *_FIRST)]
    parts = [
        _verdict(run, title),
        _render_diagnostics("noticed", "Assumed and noticed", run),
        facts_section("What it is", run.figures.facts),
        _timeline([] if timeline is None else [timeline], strings),
        ports_section(run),
        *_render_sections((*_FIRST, *others), run, _OPTIONS),
        _all_rows(run),
        _parameters([run]),
        commands_section(commands),
    ]
    return document(f"{' '.join(title[0].split())} · {run.path}", parts)


def comparison_document(
    compared: Comparison, timelines_of: Sequence[PackedRun], strings: Strings, commands: Sequence[str]
) -> str:
    """Returns the page of two runs, A above B on one axis."""
    first = SIDES.lines(compared, PageOptions(everything=True))
    noticed = [_render_diagnostics("noticed", "Assumed and noticed of both", compared.a)]
    if compared.a.diagnostics != compared.b.diagnostics:
        noticed = [
            _render_diagnostics(f"noticed-{name}", f"Assumed and noticed of {name}", run)
            for name, run in (("A", compared.a), ("B", compared.b))
        ]
    title = _difference(compared)
    parts = [
        f'<section id="verdict" class="verdict"><h1>{escaped(title)}</h1>\n'
        + "\n".join(render_blocks(first))
        + "\n</section>",
        *noticed,
        _timeline(timelines_of, strings),
        *_render_sections(
            (other for other in OF_TWO if other is not SIDES), compared, PageOptions(everything=True)
        ),
        _parameters([compared.a, compared.b]),
        commands_section(commands),
    ]
    paths = " and ".join(dict.fromkeys((compared.a.path, compared.b.path)))
    return document(f"{title} · {paths}", parts)


def _difference(compared: Comparison) -> str:
    """Returns by how much the step of B differs, in words."""
    a_ns, b_ns = compared.a.step_time_ns, compared.b.step_time_ns
    if a_ns == b_ns:
        return f"A and B take the same: {duration(a_ns)}"
    longer = "shorter" if b_ns < a_ns else "longer"
    by = duration(abs(b_ns - a_ns)) if not a_ns else f"{percent(abs(b_ns - a_ns), a_ns)} %"
    return f"The step of B is {by} {longer}: {duration(b_ns)} instead of {duration(a_ns)}"


def _render_sections(of: Iterable[Section[Any]], subject: object, options: PageOptions) -> list[str]:
    sections = []
    for part in of:
        groups: list[list[str]] = [[]]
        for line in part.lines(subject, options):
            # A blank line within a section starts another subject of it.
            if line:
                groups[-1].append(line)
            else:
                groups.append([])
        for index, lines in enumerate(group for group in groups if group):
            sections.append(render_section(part.name + (f"-{index + 1}" if index else ""), lines))
    return sections


def _verdict(run: Run, title: Sequence[str]) -> str:
    file = element("p", run.path, "sub")
    head = element("h1", " ".join(title[0].split()))
    subs = "\n".join(element("p", line.strip(), "sub") for line in title[1:])
    has_sentences = run.timed or not run.figures.has_step
    insights = run.figures.insights if has_sentences else ()
    sentences = "\n".join(element("p", insight.text) for insight in insights)
    sentences += _best_change(run)
    return f'<section id="verdict" class="verdict">{file}{head}\n{subs}\n{sentences}\n</section>'


def _best_change(run: Run) -> str:
    """Returns the change that gains most, where there are any; its table has the others."""
    changes = [change for change in run.what_if() if change.list == "change" and not change.microbatches]
    if not run.timed or not changes:
        return ""
    best = min(changes, key=lambda change: change.better10_ns)
    gain = change_percent(run.figures.what_if_base_ns, best.better10_ns)
    words = f"Of the changes that were tried {best.knob} gains most: {duration(best.better10_ns)} ({gain})."
    return f'\n<p>{escaped(words)} <a href="#what-if">All of them</a></p>'


def _render_diagnostics(identity: str, title: str, run: Run) -> str:
    """Returns the section of the diagnostics, each with its severity and location."""
    messages = run.diagnostics
    if not messages:
        return render_section(identity, [title, "Nothing."])
    rows = "\n".join(
        f'<li class="{diagnostic.severity}"><strong>{diagnostic.severity}</strong> '
        f"{escaped(diagnostic.message)} "
        "<span "
        f'class="sub">{escaped(_location_text(diagnostic, run.path))}[{escaped(diagnostic.code)}]</span></li>'
        for diagnostic in messages
    )
    return f'<section id="{identity}" class="noticed">{element("h2", title)}<ul>\n{rows}\n</ul></section>'


def _location_text(diagnostic: Diagnostic, path: str) -> str:
    """Returns where a diagnostic was found; "" for one on the run as a whole."""
    file = "" if diagnostic.file in ("", path) else os.path.basename(diagnostic.file)
    line = "" if diagnostic.line is None else f"line {diagnostic.line}"
    return "".join(f"{part} " for part in (file, line) if part)


def facts_section(title: str, facts: Sequence[tuple[str, str]]) -> str:
    rows = "\n".join(f"{element('dt', name)}{element('dd', words)}" for name, words in facts)
    return f'<section id="facts" class="facts">{element("h2", title)}<dl>\n{rows}\n</dl></section>'


def _all_rows(run: Run) -> str:
    """Returns every row of a workload, collapsed; "" for a run without rows that have cells."""
    if not any(layer.of_rows is not None for layer in run.figures.layers(grouped=False)):
        return ""
    title, *lines = layers.lines(run, PageOptions(every_layer=True))
    body = "\n".join(render_blocks(lines))
    return (
        f'<section id="rows" class="rows"><details><summary>{escaped(title)}</summary>\n{body}\n'
        "</details></section>"
    )


def _parameters(runs: Sequence[Run]) -> str:
    """Returns the table of the parameters of each run, set or by default."""
    rows = []
    run_parameters = [run.figures.origin.parameters for run in runs]
    for flag in FLAGS:
        # Parameters that the network of a run does not use were not in force.
        values = [
            None if flag.field in _unused(parameters) else parameters.get(flag.field)
            for parameters in run_parameters
        ]
        if all(value in (None, False, (), []) for value in values):
            continue
        cells = "".join(f"<td class=l>{escaped(_value(value))}</td>" for value in values)
        changed = " class=changed" if len(set(map(str, values))) > 1 else ""
        rows.append(f"<tr{changed}><td class=l>{escaped(flag.option)}</td>{cells}</tr>")
    if not rows:
        return ""
    names = ["value"] if len(runs) == 1 else ["A", "B"]
    head = "".join(f"<th class=l scope=col>{name}</th>" for name in ("parameter", *names))
    return (
        '<section id="parameters" class="parameters"><h2>Parameters, as they were in force</h2>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n' + "\n".join(rows)
        + "\n</tbody></table></div></section>"
    )  # fmt: skip


def _unused(parameters: Mapping[str, object]) -> frozenset[str]:
    network = parameters.get("network")
    return unused_fields(network) if isinstance(network, str) else frozenset()


def _value(value: object) -> str:
    if value is None or value is False:
        return "-"
    if value is True:
        return "on"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def commands_section(commands: Sequence[str]) -> str:
    lines = "\n".join(f"<pre class=command>{escaped(command)}</pre>" for command in commands)
    where = element("p", f"By wltui {__version__}, in the folder that the names of files are of:")
    title = element("h2", "How to make this yourself")
    return f'<section id="command" class="command">{title}{where}\n{lines}\n</section>'


def _timeline(runs: Sequence[PackedRun], strings: Strings) -> str:
    """Returns the element of the timeline, and the data that it is drawn from; "" where there are
    no lanes.
    """
    if not any(run.values["tracks"] for run in runs):
        return ""
    left_out_count = sum(run.left_out for run in runs)
    left_out_text = (
        f"{left_out_count} more lanes found no room on this page: export with --ranks to choose whose "
        "there are."
        if left_out_count
        else ""
    )
    return (
        '<section id="timeline" class="timeline"><h2>Timeline</h2>'
        + (element("p", left_out_text, "sub") if left_out_text else "")
        + '<p class="noscript">The timeline is drawn by the script of this page, which does not run here; '
        "all tables are below.</p>"
        '<div id="chart" hidden></div>'
        f'<script type="application/octet-stream" id="data">{pack_json(page_data(runs, strings))}</script>'
        "</section>"
    )


def _asset(name: str) -> str:
    return resources.files("simcore.render.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") + "'"


def document(title: str, parts: Sequence[str]) -> str:
    style, script = _asset("page.css"), _asset("page.js")
    # Only this script runs, by its hash, whatever a name contains; nothing is loaded from any network.
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    body = "\n".join(part for part in (*parts, words_section(parts)) if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="wltui {escaped(__version__)}">
<link rel="icon" href="data:,">
<title>{escaped(title, 300)}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""
