"""`python -m tests.digests`: make golden files and digests anew, and say what has changed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from tests.workload.texts import SHARED

from . import golden, kept
from .cases import GOLDEN, Case, families
from .facts import facts_of

_DESCRIPTION = (
    "Runs the cases of tests/digests and writes their golden files and digests, or with --check says alone "
    "what has changed. Words choose cases: those whose names have all of them."
)
_LINES = 12


def main(words: Sequence[str] | None = None) -> int:
    """Write or check. Exit status 1 when --check finds a change."""
    parser = argparse.ArgumentParser(prog="python -m tests.digests", description=_DESCRIPTION)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 if anything has changed"
    )
    parser.add_argument("--without", metavar="KEY", help="as if no fact had this key: is all else as before?")
    parser.add_argument(
        "--texts", metavar="FOLDER", help="write all facts here, for diff -r, and nothing else"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("words", nargs="*", metavar="WORD", help="part of the names of cases")
    arguments = parser.parse_args(words)

    by_name = {
        name: case for name, case in GOLDEN.items() if _is_chosen(f"{name} {case.name}", case, arguments)
    }
    by_family = {
        family: [case for case in cases if _is_chosen(f"{family} {case.name}", case, arguments)]
        for family, cases in families().items()
    }
    cases = [*by_name.values(), *(case for cases in by_family.values() for case in cases)]
    make = partial(_make, arguments.without, Path(arguments.texts) if arguments.texts else None)
    made = dict(zip(cases, _map(make, cases, arguments.jobs), strict=True))
    if arguments.texts:
        return 0
    writes = not (arguments.check or arguments.without)
    changed = [_is_golden_changed(name, made[case], writes) for name, case in by_name.items()]
    print(f"golden: {sum(changed)} of {len(by_name)} files have changed")
    for family, several in by_family.items():
        after = {case.name: made[case] for case in several}
        changed.append(_are_digests_changed(family, after, writes, not arguments.words))
    return 1 if any(changed) and not writes else 0


def _is_chosen(name: str, case: Case, arguments: argparse.Namespace) -> bool:
    return case.is_there and all(word in name for word in arguments.words)


def _map(function: Any, cases: list[Case], jobs: int) -> list[Any]:
    """What a function makes of each case, in so many processes of their own; with one in this."""
    if jobs == 1:
        return [function(case) for case in cases]
    with Pool(jobs) as pool:
        return pool.map(function, cases, 1)


def _make(without: str | None, texts: Path | None, case: Case) -> dict[str, Any]:
    """What is kept of a case."""
    facts = facts_of(case)
    if without is not None:
        facts = _without(facts, without)
    if texts is not None:
        texts.mkdir(parents=True, exist_ok=True)
        # As a name of a file, in which `/` would lead elsewhere.
        path = texts / f"{case.name.replace('/', ':')[:200]}.json"
        path.write_text(golden.pretty(facts), encoding="utf-8", errors="surrogateescape")
    return golden.golden(case, facts) if case in GOLDEN.values() else kept.digests(facts)


def _without(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _without(of, key) for name, of in value.items() if name != key}
    return [_without(of, key) for of in value] if isinstance(value, list) else value


def _is_golden_changed(name: str, after: dict[str, Any], writes: bool) -> bool:
    """Say what has changed of a golden file, and write it."""
    found = golden.differences(golden.read(name), after)
    if found:
        more = [f"... and {len(found) - _LINES} more"] if len(found) > _LINES else []
        print(f"golden/{name}.json:", *found[:_LINES], *more, sep="\n  ")
    if writes:
        golden.write(name, after)
    return bool(found)


def _are_digests_changed(family: str, after: kept.Kept, writes: bool, is_whole: bool) -> bool:
    """Say what has changed of a family, and write it. is_whole: whether the others of its cases have gone."""
    path = kept.path_of(family)
    before = kept.read(path)
    others = (
        {} if is_whole and SHARED.exists() else {name: of for name, of in before.items() if name not in after}
    )
    found = kept.changes(before, others | after)
    print(f"{path.name}:", "\n".join(kept.summary(found, len(after))))
    if writes:
        kept.write(path, others | after)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
