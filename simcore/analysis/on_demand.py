"""A sequence whose items are made when they are asked for: columns behind it, objects for what is shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar, overload

Item = TypeVar("Item", covariant=True)


class OnDemand(Sequence[Item], Generic[Item]):
    """`make` makes the item at an index from 0 to length - 1, each time it is asked for; none is kept."""

    def __init__(self, length: int) -> None:
        self._places = range(length)

    @abstractmethod
    def make(self, index: int) -> Item:
        """The item at `index`."""

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self.make(row) for row in self._places[index]]
        return self.make(self._places[index])
