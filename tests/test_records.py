"""Named tuples of `simcore.records` beside those of the standard library."""

from __future__ import annotations

import inspect
import pickle
from collections import namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.records import NamedTuple


class Place(NamedTuple):
    """A place with a method, a default and a class method."""

    file: str
    line: int
    column: int = 1

    @property
    def text(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @classmethod
    def first(cls, file: str) -> Place:
        return cls(file, 1)


def made(fields: list[str], defaults: list[int]) -> Any:
    """A class of these fields, the last of which have defaults."""
    namespace: dict[str, Any] = {"__annotations__": dict.fromkeys(fields, "int"), "__module__": __name__}
    namespace |= zip(fields[len(fields) - len(defaults) :], defaults, strict=True)
    return type(NamedTuple)("Made", (NamedTuple,), namespace)


def outcome(call: Any) -> Any:
    """What a call gives, or the type of what it raises."""
    try:
        return call()
    except (TypeError, ValueError) as error:
        return type(error)


@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8),
    st.lists(st.integers(), max_size=8),
    st.lists(st.integers(), max_size=9),
    st.dictionaries(st.sampled_from("abcdefghi"), st.integers(), max_size=4),
)
def test_a_class_behaves_as_one_of_the_standard_library(
    fields: list[str], defaults: list[int], values: list[int], named: dict[str, int]
) -> None:
    defaults = defaults[: len(fields)]
    ours, theirs = made(fields, defaults), namedtuple("Made", fields, defaults=defaults)  # type: ignore[misc]
    assert ours._fields == theirs._fields == ours.__match_args__
    assert ours._field_defaults == theirs._field_defaults
    assert inspect.signature(ours) == inspect.signature(theirs)
    mine, other = outcome(lambda: ours(*values, **named)), outcome(lambda: theirs(*values, **named))
    assert mine == other
    if isinstance(other, type):
        return
    assert repr(mine) == repr(other)
    assert hash(mine) == hash(other)
    assert [getattr(mine, name) for name in fields] == [*other]
    assert mine._asdict() == other._asdict()
    assert type(mine._make(other)) is ours
    replaced = outcome(lambda: mine._replace(**named))
    assert replaced == outcome(lambda: other._replace(**named))
    assert outcome(lambda: ours._make(values)) == outcome(lambda: theirs._make(values))


def test_methods_defaults_and_pickling() -> None:
    place = Place.first("a.txt")
    assert place.text == "a.txt:1:1"
    assert place == ("a.txt", 1, 1)
    assert repr(place._replace(column=3)) == "Place(file='a.txt', line=1, column=3)"
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert type(again) is Place
    match place:
        case Place(file, line):
            assert (file, line) == ("a.txt", 1)
    with pytest.raises(AttributeError):
        place.line = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        place.colour = 2  # type: ignore[attr-defined]


def test_a_field_without_default_behind_one_with_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Made\.b has no default"):
        type(NamedTuple)("Made", (NamedTuple,), {"__annotations__": {"a": "int", "b": "int"}, "a": 1})
