"""What wltui prints is what it printed, part by part: each change of a digest is a decision."""

from __future__ import annotations

import pytest

from tests.workload.texts import SHARED

from . import kept
from .cases import Case, corpus_cases, fixture_cases
from .running import digests

_CORPUS = [case for case in corpus_cases() if case.everyday]


def changed_parts(case: Case, of: kept.Kept) -> list[str]:
    """The parts of a case that are not as they were kept."""
    before = {case.name: of.get(case.name, {})}
    return [change.what for change in kept.changes(before, {case.name: digests(case)})]


@pytest.fixture(scope="module")
def of_fixtures() -> kept.Kept:
    return kept.read(kept.FIXTURES)


@pytest.fixture(scope="module")
def of_corpus() -> kept.Kept:
    return kept.read(kept.CORPUS)


@pytest.mark.sampled(25)
@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name) for case in fixture_cases() if case.everyday]
)
def test_a_seed_gives_the_outputs_that_were_kept(case: Case, of_fixtures: kept.Kept) -> None:
    assert changed_parts(case, of_fixtures) == [], "a decision? `make digests`, and name it in the commit"


@pytest.mark.skipif(not _CORPUS, reason=f"{SHARED} is not there")
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in _CORPUS])
def test_a_real_file_gives_the_outputs_that_were_kept(case: Case, of_corpus: kept.Kept) -> None:
    assert changed_parts(case, of_corpus) == [], "a decision? `make digests`, and name it in the commit"


def test_every_case_of_the_fixtures_is_kept_and_no_other(of_fixtures: kept.Kept) -> None:
    assert set(of_fixtures) == {case.name for case in fixture_cases()}


@pytest.mark.skipif(not _CORPUS, reason=f"{SHARED} is not there")
def test_every_case_of_the_corpus_is_kept_and_no_other(of_corpus: kept.Kept) -> None:
    assert set(of_corpus) == {case.name for case in corpus_cases()}
