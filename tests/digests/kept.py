"""The files of digests: a line a case and part, sorted, so that git merges and shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent
FIXTURES = _HERE / "fixtures.txt"
CORPUS = _HERE / "corpus.txt"
_BETWEEN = " | "

# Case -> part -> digest.
Kept = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Change:
    """A digest that is another one than was kept; None: there was none, or there is none any more."""

    case: str
    part: str
    before: str | None
    after: str | None

    @property
    def what(self) -> str:
        """The part, with a sign where it came or went."""
        sign = "+" if self.before is None else "-" if self.after is None else ""
        return sign + self.part


def read(path: Path) -> Kept:
    """The digests that a file keeps; none if it is not there."""
    kept: Kept = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        case, part, digest = line.rsplit(_BETWEEN, 2)
        kept.setdefault(case, {})[part] = digest
    return kept


def write(path: Path, kept: Mapping[str, Mapping[str, str]]) -> None:
    """Keep these digests, and no other ones."""
    lines = [
        _BETWEEN.join((case, part, digest)) + "\n"
        for case, parts in sorted(kept.items())
        for part, digest in sorted(parts.items())
    ]
    path.write_text("".join(lines), encoding="utf-8")


def changes(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> list[Change]:
    """What differs, by case and part."""
    found = []
    for case in sorted(before.keys() | after.keys()):
        old, new = before.get(case, {}), after.get(case, {})
        found += [
            Change(case, part, old.get(part), new.get(part))
            for part in sorted(old.keys() | new.keys())
            if old.get(part) != new.get(part)
        ]
    return found


def summary(found: Iterable[Change], cases: int) -> list[str]:
    """Lines that say which parts changed in how many cases, then which parts of which case."""
    by_case: dict[str, list[str]] = {}
    for change in found:
        by_case.setdefault(change.case, []).append(change.what)
    if not by_case:
        return [f"no digest of {cases} cases has changed"]
    counts = Counter(what for several in by_case.values() for what in several)
    lines = [f"{len(by_case)} of {cases} cases have changed; cases by part:"]
    most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines += [f"  {count:5} {what}" for what, count in most_first]
    lines += [f"{case}: {', '.join(several)}" for case, several in by_case.items()]
    return lines
