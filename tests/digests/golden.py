"""Golden files: the facts of a case as a JSON that one reads, and how two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .cases import Case
from .facts import Facts, canonical, checksum

FOLDER = Path(__file__).parent / "golden"
# Lists that stand in full, as each of their entries is computed by itself.
_WHOLE = ("what_if.what_if", "words.sentences", "words.diagnostics", "words.places")
# What is on the command line, or what the classes have already: its checksum stands alone.
_BRIEF = (
    "rest.parameters", "rest.a.parameters", "rest.b.parameters",
    "measured.measured.accounts", "measured.measured.replay.accounts",
)  # fmt: skip
# Keys whose 0 is a name, not nothing.
_NAMED = ("rank", "stage", "index", "microbatch", "start_ns")
# An entry of more characters is long; a list of so many entries has a middle; one of so few figures and names
# is a row of a table.
_LONG_ENTRY, _MANY, _ROW = 120, 20, 8
_LONGEST_TEXT = 40
# Characters of a line with one record, and of one with several short values.
_WIDTH, _FILLED = 160, 110
_CHECKSUM = "checksum"


def golden(case: Case, facts: Facts) -> Facts:
    """What the golden file of a case has: its command line, and its facts with long lists thinned; at the
    end of each part the checksum of all of it, so that nothing escapes.
    """
    parts = {part: thinned(value, part) for part, value in facts.items()}
    return {"case": case.name} | {
        part: value | {_CHECKSUM: checksum(canonical(facts[part]))} if isinstance(value, dict) else value
        for part, value in parts.items()
    }


def read(name: str) -> Facts:
    """What the golden file of that name has; nothing if it is not there."""
    path = FOLDER / f"{name}.json"
    facts: Facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return facts


def write(name: str, facts: Facts) -> None:
    """Keep these facts under that name."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(f"{pretty(facts)}\n", encoding="utf-8")


def thinned(value: Any, place: str = "", inner: bool = False) -> Any:
    """A value without what is 0 or false, in which of each long list the first and last entries stand, with
    how many there are, the totals of their figures and their checksum.

    place: the keys that lead to it. inner: whether it is in an entry of a list, where fewer stand.
    """
    if isinstance(value, str):
        return (
            value
            if len(value) <= _LONGEST_TEXT or place.startswith("words")
            else f"{value[:_LONGEST_TEXT]}..."
        )
    if place in _BRIEF:
        return {"entries": len(value), _CHECKSUM: checksum(canonical(value))}
    if isinstance(value, dict):
        return {
            name: thinned(of, f"{place}.{name}", inner) for name, of in value.items() if of or name in _NAMED
        }
    if not isinstance(value, list):
        return value
    count, long = len(value), value and len(canonical(value[0])) > _LONG_ENTRY
    is_row = count <= _ROW and not any(isinstance(part, dict | list) for part in value)
    if is_row or count <= (3 if inner or long else 6) or place in _WHOLE:
        return [thinned(entry, place if place in _WHOLE else "", True) for entry in value]
    places = {"first": 0, "second": 1, "middle": count // 2, "last but one": -2, "last": -1}
    if inner or long:
        del places["second"], places["last but one"]
    if inner or count < _MANY:
        del places["middle"]
    shown = {place: thinned(value[at], "", True) for place, at in places.items()}
    return {"entries": count} | _totals(value) | shown | {_CHECKSUM: checksum(canonical(value))}


def _totals(entries: list[Any]) -> dict[str, Any]:
    """The sum of numbers, or of each time and size of records."""
    if all(isinstance(entry, int) for entry in entries):
        return {"total": sum(entries)}
    sums: dict[str, int] = {}
    for entry in entries:
        for key, figure in entry.items() if isinstance(entry, dict) else ():
            if (
                key not in ("start_ns", "end_ns")
                and key.endswith(("ns", "bytes"))
                and isinstance(figure, int)
            ):
                sums[key] = sums.get(key, 0) + figure
    sums = {key: total for key, total in sums.items() if total}
    return {"totals": sums} if sums else {}


def pretty(value: Any, indent: str = "", before: int = 0) -> str:
    """A value as text: on one line what fits, else a line for each entry and for several short values.

    before: how wide its key is.
    """
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + before + len(line) <= _WIDTH or not isinstance(value, dict | list):
        return line
    inner = f"{indent} "
    if isinstance(value, list):
        lines, begin, end = [pretty(entry, inner) for entry in value], "[", "]"
    else:
        keys = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        entries = [key + pretty(of, inner, len(key)) for key, of in zip(keys, value.values(), strict=True)]
        lines, begin, end = _filled(entries, _FILLED - len(inner)), "{", "}"
    return f"{begin}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{end}"


def _filled(entries: list[str], width: int) -> list[str]:
    """Lines of entries: neighbours that are no lists or records share one."""
    lines: list[str] = []
    shares = False
    for entry in entries:
        is_short = entry[-1] not in "]}"
        if is_short and shares and len(lines[-1]) + len(entry) < width:
            lines[-1] += f", {entry}"
        else:
            lines.append(entry)
        shares = is_short
    return lines


def differences(before: Any, after: Any) -> list[str]:
    """Each place where a golden file and the facts differ, with both figures; a checksum where nothing that
    stands in its list or part differs.
    """
    old, new = dict(_flattened(before)), dict(_flattened(after))
    places = [place for place in old | new if old.get(place) != new.get(place)]
    figures = [place for place in places if not place.endswith(_CHECKSUM)]
    sums = [place for place in places if place.endswith(_CHECKSUM)]
    # The innermost list tells most: it is before those that it is in.
    for place in sorted(sums, key=len, reverse=True):
        if not any(other.startswith(place.removesuffix(_CHECKSUM)) for other in figures):
            figures.append(place)
    return [f"{place}: {_shown(old, place)} is now {_shown(new, place)}" for place in figures]


def _shown(values: dict[str, Any], place: str) -> str:
    if place not in values:
        return "nothing"
    note = " (of entries that do not stand here)" if place.endswith(_CHECKSUM) else ""
    return f"{json.dumps(values[place], ensure_ascii=False)}{note}"


def _flattened(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """(place, value) of each figure and name: `layers.layers.first.slack_ns`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flattened(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _flattened(inner, f"{place}[{number}]")
    else:
        yield place, value
