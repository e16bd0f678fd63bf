"""Base classes of records: classes that are fields and little more, which cost little time at the start.

`Struct` is msgspec's, whose classes are made in C. A dataclass is made by running a text of Python, 0.8 ms
each (importing Textual takes 280 ms): 40 ms for the 50 that `report` needs. 50 Structs take 1 ms, and
their objects are made three times as fast.

`NamedTuple` is `typing.NamedTuple` but for how its classes are made: typing's run a text of Python for each
class and compile each annotation separately, 0.1 to 0.2 ms a class; `report` needs 70.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any

# msgspec imports typing_extensions first for what typing has too, and that imports `inspect`: 10 of 28 ms.
_WITHHELD = "typing_extensions"
if _WITHHELD not in sys.modules:
    sys.modules[_WITHHELD] = None  # type: ignore[assignment]
try:
    from msgspec import Struct, field
    from msgspec.structs import asdict, replace
finally:
    if sys.modules[_WITHHELD] is None:
        del sys.modules[_WITHHELD]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from _collections import _tuplegetter

    _make_tuple = tuple.__new__
    # Number of fields of a class -> code of its `__new__`, in which each class puts the names of its fields.
    _CODE = {}

    class _Fields(tuple):
        """The methods of all named tuples, with the names and results of `collections.namedtuple`."""

        __slots__ = ()
        _fields: tuple[str, ...] = ()

        @classmethod
        def _make(cls, values: Iterable[Any]) -> Any:
            """Returns a tuple of these values in the order of the fields."""
            record = _make_tuple(cls, values)
            if len(record) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(record)}")
            return record

        def _replace(self, /, **values: Any) -> Any:
            """Returns the same tuple with other values of these fields."""
            record = self._make(map(values.pop, self._fields, self))
            if values:
                raise ValueError(f"Got unexpected field names: {list(values)!r}")
            return record

        __replace__ = _replace

        def _asdict(self) -> dict[str, Any]:
            """Returns the values by field."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({values})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            """Returns what pickling keeps."""
            return tuple(self)

    class _NamedTuples(type):
        """Makes the classes: tuples of the annotated fields, with methods and defaults as written."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace.get("__annotations__", ()))
            defaults: dict[str, Any] = {}
            for index, field in enumerate(fields):
                if field in namespace:
                    defaults[field] = namespace[field]
                elif defaults:
                    raise TypeError(f"{name}.{field} has no default, and stands behind fields that have one")
                namespace[field] = _tuplegetter(index, f"Field {index}")
            if len(fields) not in _CODE:
                names = "".join(f"_{index}, " for index in range(len(fields)))
                _CODE[len(fields)] = eval(f"lambda _cls, {names}: _make_tuple(_cls, ({names}))").__code__
            code = _CODE[len(fields)].replace(co_varnames=("_cls", *fields), co_name="__new__")
            new = namespace["__new__"] = FunctionType(code, globals(), "__new__", tuple(defaults.values()))
            new.__qualname__ = f"{name}.__new__"
            namespace["_fields"] = namespace["__match_args__"] = fields
            namespace["_field_defaults"], namespace["__slots__"] = defaults, ()
            return type(name, (_Fields,), namespace)

    class NamedTuple(metaclass=_NamedTuples):
        """The base of a named tuple; no class has it as its base once it is made."""


__all__ = ["NamedTuple", "Struct", "asdict", "field", "replace"]
