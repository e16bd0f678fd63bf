"""What is computed once for an object, and kept on it: beside `cached_property`, where the first who asks may
stop it, or where others ask whether it is known.

Import from here: `once`, `is_known`, `known`, `forget`, `kept_on`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CachedMethod(Generic[T]):
    """The value of a method of one object; called it is computed, unless it is known."""

    __slots__ = ("_make", "_name", "_values")

    def __init__(self, values: dict[str, Any], name: str, make: Callable[..., T]) -> None:
        self._values, self._name, self._make = values, name, make

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        if self._name not in self._values:
            self._values[self._name] = self._make(*args, **kwargs)
        value: T = self._values[self._name]
        return value

    @property
    def is_cached(self) -> bool:
        """Whether it is there without being computed."""
        return self._name in self._values

    @property
    def cached_value(self) -> T | None:
        """The value where it is known."""
        return self._values.get(self._name)

    def store(self, value: T) -> None:
        """Another value from now on."""
        self._values[self._name] = value

    def forget(self) -> None:
        """Who asks next has it computed anew."""
        self._values.pop(self._name, None)


class cached_method(Generic[T]):
    """Makes a method one whose value is computed once for each object; later arguments do not count."""

    def __init__(self, method: Callable[..., T]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, owner: Any, of: type) -> CachedMethod[T]:
        if owner is None:
            return self  # type: ignore[return-value]  # of the class
        # No attribute has a name with a blank.
        name = f"once {self._method.__name__}"
        return CachedMethod(owner.__dict__, name, self._method.__get__(owner, of))


def is_cached(owner: object, *names: str) -> bool:
    """Whether all `cached_property` of these names are there without being computed."""
    return all(name in owner.__dict__ for name in names)


def get_cached(owner: object, name: str, otherwise: T) -> T:
    """The value of a `cached_property` where it is known."""
    value: T = owner.__dict__.get(name, otherwise)
    return value


def forget(owner: object, name: str) -> None:
    """Who asks for a `cached_property` next has it computed anew."""
    owner.__dict__.pop(name, None)


def cached_on(owner: object, name: str, make: Callable[[], T]) -> T:
    """A value of an object that knows nothing of it, made once."""
    values = owner.__dict__
    return CachedMethod(values, name, make)()
