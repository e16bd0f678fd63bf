"""Cluster files: the kind of one, decided by its content, and its reader."""

from __future__ import annotations

import re
from functools import lru_cache

from simcore.cluster.files.astra_network import read_network_json, read_network_yml
from simcore.cluster.files.astra_system import read_system
from simcore.cluster.files.cluster_toml import read_cluster_toml
from simcore.cluster.files.graphml import is_graphml, read_graphml
from simcore.cluster.files.htsim_topology import is_htsim_topology, read_htsim_topology
from simcore.cluster.files.node_link import is_node_link, read_node_link
from simcore.cluster.files.simai_topology import (
    is_configuration,
    is_topology,
    read_configuration,
    read_topology,
)
from simcore.cluster.files.source import ClusterText
from simcore.cluster.parsing import Settings

__all__ = ["read_cluster_file", "read_system_file"]


def read_cluster_file(path: str) -> Settings:
    """Returns the settings in wltui's own TOML, ASTRA-sim's network file, 2.0 or 1.0, SimAI's or htsim's
    topology file, or a graph of networkx, JSON or GraphML. Raises InputError.
    """
    return _read_settings(ClusterText(path))


@lru_cache(maxsize=4)
def _read_settings(source: ClusterText) -> Settings:
    """Returns the settings of a text: a run and what is tried with it have one topology, whose routes are
    found once.
    """
    first = re.search(r"^[ \t]*([^#\s].*)$", source.text, re.MULTILINE)
    if first is None:
        raise source.make_error("not-a-cluster-file", "the file is empty, expected a cluster")
    if is_topology(first[1]):
        return read_topology(source)
    if is_htsim_topology(source.text):
        return read_htsim_topology(source)
    if first[1][0] == "<" and is_graphml(source.text):
        return read_graphml(source)
    if first[1][0] in "{" and is_node_link(source.text):
        return read_node_link(source)
    if first[1][0] in "{":
        if "-implementation" in source.text:
            message = "found an ASTRA-sim system file, expected a network (--system takes this one)"
            raise source.make_error("not-a-cluster-file", message, source.locate(first.start(1)))
        return read_network_json(source)
    is_toml = re.match(r"\[|[\w.\"'-]+[ \t]*=", first[1])
    return read_cluster_toml(source) if is_toml else read_network_yml(source)


def read_system_file(path: str, dimensions: int) -> Settings:
    """Returns the settings in an ASTRA-sim system file, 2.0 or 1.0, or SimAI's configuration. Raises
    InputError.
    """
    source = ClusterText(path)
    return read_configuration(source) if is_configuration(source.text) else read_system(source, dimensions)
