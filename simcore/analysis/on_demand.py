"""A sequence whose items are made when they are asked for: columns behind it, objects for what is shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar, overload

Item = TypeVar("Item", covariant=True)


class OnDemand(Sequence[Item], Generic[Item]):
    """`make` makes the item at a place from 0 to length - 1, each time it is asked for; none is kept."""

    def __init__(self, length: int) -> None:
        self._places = range(length)

    @abstractmethod
    def make(self, place: int) -> Item:
        """The item at `place`."""

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        if isinstance(place, slice):
            return [self.make(index) for index in self._places[place]]
        return self.make(self._places[place])
