"""`python -m tests.digests`: make the digests anew, and say what has changed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from multiprocessing import Pool
from pathlib import Path
from typing import TypeVar

from . import kept, parts
from .cases import Case, corpus_cases, fixture_cases
from .running import digests, printed_json, texts

_Made = TypeVar("_Made")
_DESCRIPTION = (
    "Runs the cases of tests/digests and writes the digests of their outputs, or with --check says alone "
    "what has changed. Words choose cases: those whose names have all of them."
)


def main(words: Sequence[str] | None = None) -> int:
    """Write or check the digests. Exit status 1 when --check finds a change."""
    parser = argparse.ArgumentParser(prog="python -m tests.digests", description=_DESCRIPTION)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if one has changed")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--texts", metavar="FOLDER", help="write the texts of the parts here, for diff -r")
    parser.add_argument("--adopt", action="store_true", help="first list the new keys in keys.txt")
    parser.add_argument("words", nargs="*", metavar="WORD", help="part of the names of cases")
    arguments = parser.parse_args(words)

    chosen = {
        path: [case for case in cases if all(word in case.name for word in arguments.words)]
        for path, cases in ((kept.FIXTURES, fixture_cases()), (kept.CORPUS, corpus_cases()))
    }
    if arguments.texts:
        _write_texts(Path(arguments.texts), _all(chosen))
        return 0
    if arguments.adopt:
        _adopt([key for keys in _map(_keys, _all(chosen), arguments.jobs) for key in keys])
    changed = False
    for path, cases in chosen.items():
        if cases:
            made = _map(digests, cases, arguments.jobs)
            changed |= _made(path, cases, made, arguments.check, not arguments.words)
        else:
            print(f"{path.name}: no such case")
    return 1 if arguments.check and changed else 0


def _map(function: Callable[[Case], _Made], cases: list[Case], jobs: int) -> list[_Made]:
    """What a function makes of each case, in so many processes of their own; with one in this."""
    if jobs == 1:
        return [function(case) for case in cases]
    with Pool(jobs) as pool:
        return pool.map(function, cases, 1)


def _all(chosen: dict[Path, list[Case]]) -> list[Case]:
    return [case for cases in chosen.values() for case in cases]


def _made(path: Path, cases: list[Case], made: list[dict[str, str]], check: bool, whole: bool) -> bool:
    """Say what has changed in a file and, unless it is only checked, write it; whether anything has.

    whole: whether these are all cases of the file, so that others have gone.
    """
    before = kept.read(path)
    after = {case.name: found for case, found in zip(cases, made, strict=True)}
    if not whole:
        after = before | after
    found = kept.changes(before, after)
    print(f"{path.name}: " + "\n".join(kept.summary(found, len(cases))))
    with_new = {change.case for change in found if change.part.endswith(parts.NEW_KEYS)}
    example = next((case for case in cases if case.name in with_new), None)
    if example is not None:
        print(f"new keys, of {example.name}: {', '.join(_new_keys(example))}")
    if not check:
        kept.write(path, after)
    return bool(found)


def _new_keys(case: Case) -> list[str]:
    """The keys of a case that `keys.txt` does not list."""
    return [line for line in _keys(case) if line.split(" ", 1)[1] not in parts.known_keys(line.split()[0])]


def _keys(case: Case) -> list[str]:
    """The keys of the JSON outputs of a case, as `keys.txt` lists them."""
    lines = []
    for view in ("json", "compare"):
        printed = printed_json(case, view) if view in case.views else None
        if printed is not None:
            lines += [f"{view} {keys}" for _, keys, _ in parts.flattened(json.loads(printed))]
    return sorted(set(lines))


def _adopt(found: list[str]) -> None:
    """Add keys to `keys.txt`; none is taken off."""
    path = parts.KNOWN_KEYS
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    path.write_text("".join(f"{line}\n" for line in sorted({*before, *found})), encoding="utf-8")
    parts.known_keys.cache_clear()


def _write_texts(folder: Path, cases: list[Case]) -> None:
    for case in cases:
        for part, text in texts(case).items():
            # As a name of a file, in which `/` would lead elsewhere.
            path = folder / case.name.replace("/", ":")[:200] / part
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="surrogateescape")


if __name__ == "__main__":
    sys.exit(main())
