"""Records: classes that are fields and little more. msgspec's, whose classes are made in C.

A dataclass is made by running a text of Python, 0.8 ms each where importing Textual takes 280: 40 ms for the
50 that `report` needs. These take 1 ms together, and their objects are made three times as fast.
"""

import sys

# msgspec asks typing_extensions first, for what typing has too, and it brings `inspect`: 10 of 28 ms.
_WITHHELD = "typing_extensions"
if _WITHHELD not in sys.modules:
    sys.modules[_WITHHELD] = None  # type: ignore[assignment]
try:
    from msgspec import Struct, field
    from msgspec.structs import asdict, replace
finally:
    if sys.modules[_WITHHELD] is None:
        del sys.modules[_WITHHELD]

__all__ = ["Struct", "asdict", "field", "replace"]
