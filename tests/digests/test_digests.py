"""What wltui states of a run is what it stated: each change of a golden file or digest is a decision."""

from __future__ import annotations

import pytest

from tests.workload.texts import SHARED

from . import golden, kept
from .cases import GOLDEN, SLOW, families
from .facts import facts_of

_ADVICE = "a decision? `make digests`, read the difference, and say why in the commit:"


def _assert_as_kept(name: str) -> None:
    case = GOLDEN[name]
    if not case.is_there:
        pytest.skip(f"{SHARED} is not there")
    found = golden.differences(golden.read(name), golden.golden(case, facts_of(case)))
    assert not found, "\n  ".join([_ADVICE, *found])


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in SLOW])
def test_a_run_has_the_facts_of_its_golden_file(name: str) -> None:
    _assert_as_kept(name)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("name", SLOW)
def test_a_long_run_has_the_facts_of_its_golden_file(name: str) -> None:
    _assert_as_kept(name)


def test_each_golden_case_has_its_file_and_no_other_is_there() -> None:
    assert {path.stem for path in golden.FOLDER.iterdir()} == GOLDEN.keys()


def test_each_family_keeps_its_cases_and_no_other() -> None:
    files = {path.stem for path in kept.FOLDER.glob("*.txt")}
    assert files == families().keys()
    if SHARED.exists():
        for family, cases in families().items():
            assert kept.read(kept.path_of(family)).keys() == {case.name for case in cases}, family
