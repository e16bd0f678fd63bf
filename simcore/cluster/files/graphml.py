"""A graph as networkx writes it with `write_graphml`: the nodes and links of `node_link`, as XML.

Attributes are `data` of declared keys: `kind` of a node, `gbps` and `latency_ns` (or `rate`, `latency`) of an
edge, `gpus_per_server` of the graph. A document type, and with it any entity, is refused.
"""

from __future__ import annotations

from typing import Any

from simcore.cluster.files.node_link import read_graph
from simcore.cluster.files.source import ClusterText
from simcore.cluster.parsing import Settings
from simcore.units import plain_number

_CODE = "topology-file"
_NUMBER_TYPES = ("int", "long", "float", "double")


def is_graphml(text: str) -> bool:
    """Returns whether a text that begins with `<` may be a graph."""
    return "<graphml" in text


def read_graphml(source: ClusterText) -> Settings:
    """Returns the settings of a graph. Raises InputError."""
    # Imported here: few cluster files are XML.
    from xml.parsers import expat

    reader = _Reader(source)
    # The text is UTF-8, whatever it declares.
    parser = expat.ParserCreate("UTF-8", " ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reader.refuse_doctype
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.add_text
    try:
        parser.Parse(source.text.encode(), True)
    except expat.ExpatError as error:
        message = f"this is not XML ({expat.ErrorString(error.code)}): expected a graph in GraphML"
        raise source.make_error(_CODE, message, (error.lineno, error.offset + 1)) from None
    return read_graph(source, {"graph": reader.graph, "nodes": reader.nodes, "links": reader.links})


class _Reader:
    """Collects what elements state; it keeps no tree, however deep they are."""

    def __init__(self, source: ClusterText) -> None:
        self.graph: dict[str, Any] = {}
        self.nodes: list[dict[str, Any]] = []
        self.links: list[dict[str, Any]] = []
        self._source = source
        # (name, type) of each declared key.
        self._keys: dict[str, tuple[str, str]] = {}
        # What `data` are of: the graph, or its last node or edge.
        self._owner = self.graph
        self._key = ""
        self._text: list[str] = []

    def refuse_doctype(self, *_: object) -> None:
        """Raises InputError: entities would make a large text of a small one, or name other files."""
        raise self._source.make_error(_CODE, "found a document type, expected a graph without one")

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        """Notes an element that begins."""
        kind = tag.rpartition(" ")[2]
        self._key = ""
        if kind == "key":
            name = attributes.get("attr.name", "")
            self._keys[attributes.get("id", "")] = name, attributes.get("attr.type", "string")
        elif kind == "node":
            self._owner = {"id": attributes.get("id")}
            self.nodes.append(self._owner)
        elif kind == "edge":
            self._owner = {"source": attributes.get("source"), "target": attributes.get("target")}
            self.links.append(self._owner)
        elif kind == "data":
            self._key, self._text = attributes.get("key", ""), []

    def end(self, tag: str) -> None:
        """Takes the value of `data`; behind a node or an edge `data` are of the graph."""
        kind = tag.rpartition(" ")[2]
        if kind == "data" and self._key in self._keys:
            name, value_type = self._keys[self._key]
            if name not in ("id", "source", "target"):
                self._owner[name] = _value("".join(self._text).strip(), value_type)
        elif kind in ("node", "edge"):
            self._owner = self.graph
        self._key = ""

    def add_text(self, text: str) -> None:
        """Adds a part of a text."""
        if self._key:
            self._text.append(text)


def _value(text: str, value_type: str) -> object:
    """Returns a number where the key is of one, whole where it is; else the text."""
    figure = plain_number(text) if value_type in _NUMBER_TYPES else None
    if figure is None:
        return text
    return int(figure) if figure.is_integer() and abs(figure) < 1e15 else figure
