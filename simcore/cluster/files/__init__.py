"""Cluster files: which kind one is, found from its content, and its reader."""

from __future__ import annotations

import re

from simcore.cluster.files.astra_network import read_network_yml
from simcore.cluster.files.astra_system import read_system_json
from simcore.cluster.files.cluster_toml import read_cluster_toml
from simcore.cluster.files.source import Source
from simcore.cluster.settings import Settings

__all__ = ["read_cluster_file", "read_system_file"]


def read_cluster_file(path: str) -> Settings:
    """The settings in wltui's own TOML or in an ASTRA-sim 2.0 `network.yml`. Raises InputError."""
    source = Source(path)
    first = re.search(r"^[ \t]*([^#\s].*)$", source.text, re.MULTILINE)
    if first is None:
        raise source.refusal("not-a-cluster-file", "the file is empty, expected a cluster")
    if first[1][0] in "{":
        message = "found JSON, an ASTRA-sim 1.0 network or a system file, expected a network.yml or TOML"
        hint = " (--system takes a system.json)"
        raise source.refusal("not-a-cluster-file", message + hint, source.place(first.start(1)))
    is_toml = re.match(r"\[|[\w.\"'-]+[ \t]*=", first[1])
    return read_cluster_toml(source) if is_toml else read_network_yml(source)


def read_system_file(path: str, dimensions: int) -> Settings:
    """The settings in an ASTRA-sim 2.0 `system.json`. Raises InputError."""
    return read_system_json(Source(path), dimensions)
