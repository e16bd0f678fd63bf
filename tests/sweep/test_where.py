"""Conditions of --where: what they mean, what is refused, and that none is ever run as Python."""

from __future__ import annotations

import operator
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.sweeping.space import VALUE_NAMES
from simcore.sweeping.where import Condition

VALUES = {
    "tp": 4, "pp": 16, "dp": 2, "schedule": "zb-h1", "virtual_stages": 2, "zero": 1, "recompute": "full",
    "overlap_grad_reduce": False, "compute_scale": 0.5, "stage_layers": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("tp*pp<=64", True),
        ("tp*pp<64", False),
        ("tp * (pp + dp) = 72", True),
        ("dp-tp = -2", True),
        ("virtual-stages-1 == 1", True),
        ("schedule = zb-h1", True),
        ("schedule != 'zb-h1'", False),
        ("zb-h1 = schedule", True),
        ("pp % tp = 0 and not tp > 8", True),
        ("tp > 8 or (pp >= 16 and recompute = full)", True),
        ("(tp > 8 or pp >= 16) and recompute = none", False),
        ("1 < tp <= 4 < pp", True),
        ("overlap_grad_reduce = off", True),
        ("compute-scale >= 0.5", True),
        ("stage_layers = none", True),
        ("stage_layers > 1", False),
        ("tp / (dp - 2) > 1", False),
        ("schedule < 3", False),
        ("zero=1", True),
    ],
)
def test_a_condition_holds(text: str, holds: bool) -> None:
    condition = Condition(text, VALUE_NAMES)
    assert condition.holds(VALUES) is holds
    assert pickle.loads(pickle.dumps(condition)).holds(VALUES) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tp <=", "it ends where a name, a number or ("),
        ("tp 8", "found 8 at character 4; a comparison"),
        ("tp", "it ends where a comparison"),
        ("schedul < 8", "a name of a parameter is expected; did you mean schedule?"),
        ("tp <= 8 pp", "found pp at character 9; and, or, or the end"),
        ("__import__('os').system('x')", "found . at character 17"),
        ("tp <= 8; pp", "found ; at character 8"),
        ("(tp < 8", "it ends where"),
        ("tp ** 2 > 4", "found * at character 5"),
        ("(" * 100 + "tp" + ")" * 100 + "< 8", "fewer parts in each other"),
        ("not " * 100 + "tp < 8", "fewer `not`"),
        ("", "it ends where"),
        ("tp < 8" + " " * 3000, "at most 2000"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        Condition(text, VALUE_NAMES)
    assert said in str(error.value)


_NUMBERS = st.integers(0, 12)


@given(st.lists(st.tuples(st.sampled_from(("+", "-", "*", "%")), _NUMBERS), max_size=6), _NUMBERS, _NUMBERS)
def test_sums_are_those_of_arithmetic(parts: list[tuple[str, int]], first: int, right: int) -> None:
    """Held against Python's own reading of the same text, which is all digits and signs."""
    text = f"{first}" + "".join(f" {sign} {number}" for sign, number in parts)
    for sign, compare in (("<", operator.lt), (">=", operator.ge), ("=", operator.eq)):
        try:
            expected = compare(eval(text), right)
        except ZeroDivisionError:
            expected = sign == "=" and False
        assert Condition(f"{text} {sign} {right}", VALUE_NAMES).holds({}) is expected
