"""Which field of the form is about a change of the what-if table that no parameter makes alone."""

from __future__ import annotations

_SCALES = {"layer": "layer scale", "compute": "compute scale", "stream": "comm scale"}


def label_of(knob: str) -> str:
    """The label of the field that comes next to a knob; empty where there is none.

    `dimension 1 bandwidth` has one of its own; a layer, a kind of compute and a stream are part of what
    a field scales.
    """
    kind, _, rest = knob.partition(" ")
    if kind == "dimension":
        return "dim {}  {}".format(*rest.split(" ", 1))
    return _SCALES.get(kind, "")
