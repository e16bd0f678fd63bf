"""Files of digests, one a family: a line a case with its parts, sorted, so that git merges and shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from .facts import Facts, canonical, checksum

FOLDER = Path(__file__).parent
_BETWEEN = " | "

# Case -> part -> digest.
Kept = dict[str, dict[str, str]]


def path_of(family: str) -> Path:
    """The file of a family."""
    return FOLDER / f"{family}.txt"


def digests(facts: Facts) -> dict[str, str]:
    """Part -> the digest of its facts, whatever the order of their keys."""
    return {part: checksum(canonical(value)) for part, value in facts.items()}


def read(path: Path) -> Kept:
    """The digests that a file keeps; none if it is not there."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
    pairs = [line.rsplit(_BETWEEN, 1) for line in lines]
    return {case: dict(part.split("=") for part in parts.split()) for case, parts in pairs}


def write(path: Path, kept: Mapping[str, Mapping[str, str]]) -> None:
    """Keep these digests, and no other ones."""
    lines = [
        f"{case}{_BETWEEN}{' '.join(f'{part}={digest}' for part, digest in parts.items())}\n"
        for case, parts in sorted(kept.items())
    ]
    path.write_text("".join(lines), encoding="utf-8")


def changes(before: Kept, after: Kept) -> dict[str, list[str]]:
    """Case -> the parts that are others than before, with a sign where one came or went."""
    found = {}
    for case in sorted(before.keys() | after.keys()):
        old, new = before.get(case, {}), after.get(case, {})
        parts = [part for part in old | new if old.get(part) != new.get(part)]
        if parts:
            found[case] = ["+" * (part not in old) + "-" * (part not in new) + part for part in parts]
    return found


def summary(found: Mapping[str, list[str]], cases: int) -> list[str]:
    """Lines that say which parts changed in how many cases, then which parts of which case."""
    counts = Counter(part for parts in found.values() for part in parts)
    by_part = ", ".join(f"{part} {count}" for part, count in sorted(counts.items()))
    return [
        f"{len(found)} of {cases} cases have changed" + (f", by part: {by_part}" if found else ""),
        *(f"  {case}: {' '.join(parts)}" for case, parts in found.items()),
    ]
