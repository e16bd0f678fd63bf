"""Values that are computed once for an object and stored on it, for what `cached_property` cannot do:
computations that the first caller may stop, and callers that ask whether a value is there.

Import from here: `cached_method`, `is_cached`, `get_cached`, `forget`, `cached_on`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CachedMethod(Generic[T]):
    """A method of one object whose value is stored: a call computes it, unless it is stored already."""

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
        """Whether the value is stored, so that a call computes nothing."""
        return self._name in self._values

    @property
    def cached_value(self) -> T | None:
        """The stored value; None where there is none."""
        return self._values.get(self._name)

    def store(self, value: T) -> None:
        """Stores another value, which calls return from now on."""
        self._values[self._name] = value

    def forget(self) -> None:
        """Drops the stored value: the next call computes it again."""
        self._values.pop(self._name, None)


class cached_method(Generic[T]):
    """Decorates a method so that its value is computed once for each object; later arguments have no
    effect.
    """

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
    """Returns whether all `cached_property` of these names have been computed."""
    return all(name in owner.__dict__ for name in names)


def get_cached(owner: object, name: str, otherwise: T) -> T:
    """Returns the value of a `cached_property`; `otherwise` where it has not been computed."""
    value: T = owner.__dict__.get(name, otherwise)
    return value


def forget(owner: object, name: str) -> None:
    """Drops the value of a `cached_property`: the next access computes it again."""
    owner.__dict__.pop(name, None)


def cached_on(owner: object, name: str, make: Callable[[], T]) -> T:
    """Returns a value that is stored on an object under a name that its class does not know, made once."""
    values = owner.__dict__
    return CachedMethod(values, name, make)()
