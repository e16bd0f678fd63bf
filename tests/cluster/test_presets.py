"""Presets: their figures, their size, and that the documentation has them all."""

import re
from pathlib import Path

import pytest

from simcore.cluster import DEFAULT_PRESET, PRESETS, ClusterParameters, choose_cluster
from simcore.names import PRESET_NAMES
from simcore.parameters import flag_of
from simcore.units import format_number

FIGURES = {
    "h100-8": ("switch:8:450:500 switch:128:50:1000", 3350),
    "a100-8": ("switch:8:300:500 switch:128:25:1000", 2039),
    "h200-8": ("switch:8:450:500 switch:128:50:1000", 4800),
    "b200-8": ("switch:8:900:500 switch:128:50:1000", 8000),
    "gb200-nvl72": ("switch:64:900:500 switch:16:50:1000", 8000),
    "tpu-v4": ("ring:4:50:500 ring:4:50:500 ring:64:50:500", 1200),
}


def test_every_preset_that_the_help_names_is_there() -> None:
    assert tuple(PRESETS) == PRESET_NAMES


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_for_1024_ranks(name: str) -> None:
    choice = choose_cluster(ClusterParameters(cluster=name))
    assert choice.npus is None
    assert not choice.is_default
    cluster = choice.cluster(1024)
    flags = " ".join(dimension.flag() for dimension in cluster.dims)
    assert (flags, cluster.local_mem_bandwidth) == FIGURES[name]
    assert (cluster.splits, cluster.active_chunks, cluster.endpoint_delay_ns) == (1, 1, 10)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("world", [1, 2, 7, 8, 9, 71, 73, 1000])
def test_a_preset_is_as_large_as_the_world_and_no_larger(name: str, world: int) -> None:
    cluster = choose_cluster(ClusterParameters(cluster=name)).cluster(world)
    inner = cluster.npus // cluster.dims[-1].size
    assert world <= cluster.npus < world + inner


def test_without_a_cluster_it_is_the_default_one() -> None:
    choice = choose_cluster(ClusterParameters())
    assert choice.is_default
    assert choice.cluster(100) == choose_cluster(ClusterParameters(cluster=DEFAULT_PRESET)).cluster(100)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_its_source_in_the_documentation_and_its_name_in_the_help(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "network.md").read_text()
    row = re.search(rf"^\| `{name}`.*$", page, re.MULTILINE)
    assert row is not None
    cluster = choose_cluster(ClusterParameters(cluster=name)).cluster(1024)
    assert f"| {format_number(cluster.local_mem_bandwidth)} GB/s |" in row[0]
    for dimension in cluster.dims[:-1]:
        assert f"{dimension.kind} {dimension.size}" in row[0]
    assert name in flag_of("cluster").help
    source = PRESETS[name].__doc__
    assert source is not None
    assert "data sheet" in source or "ISCA" in source
