"""What a small file of YAML takes: half a second and 20 MB, whatever it has; what is refused has its place.

A `network.yml` of ASTRA-sim is the only YAML that is read; SimAI's `busbw.yaml` is read line by line.
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from simcore.cluster.files.astra_network import read_network_yml
from simcore.cluster.files.source import ClusterText
from simcore.diagnostics import Diagnostic, InputError

_GOOD = "topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n"
_CHARACTERS = 2**16
# What repeats until the file has 64 KiB, or the whole rest of it.
_ATTACKS = {
    "keys": "".join(f"k{number}: 1\n" for number in range(9000)),
    "anchors": f"x: [{', '.join(f'&a{number} 1' for number in range(9000))}",
    "aliases": f"x: &a [1]\ny: [{'*a, ' * 20000}",
    "aliases of aliases": "a: &a [1, 1]\n" + "".join(f"b: &a [{'*a, ' * 9}*a]\n" for _ in range(9000)),
    "tags": f"x: [{'!!python/name:os.system 1, ' * 9000}",
    "brackets": f"x: {'[' * _CHARACTERS}",
    "braces": f"x: {'{' * _CHARACTERS}",
    "keys in brackets": f"x: {'[a: ' * _CHARACTERS}",
    "questions": "? " * _CHARACTERS,
    "dashes": "- " * _CHARACTERS,
    "levels": "x:\n" + "".join(" " * level + "-\n" for level in range(1, 400)),
    "values": f"x: [{'1,' * _CHARACTERS}",
    "empty lists": f"x: [{'[],' * _CHARACTERS}",
    "pairs": f"x: {{{'a: 1, ' * _CHARACTERS}",
    "a long key": "k" * _CHARACTERS,
    "a long quoted key": f'"{"k" * _CHARACTERS}',
    "a long text": "x: a\n" + " b\n" * _CHARACTERS,
    "escapes": 'x: "' + "\\x41" * _CHARACTERS,
    "comments": "#\n" * _CHARACTERS,
    "documents": "---\n" * _CHARACTERS,
    "merges": "x: &a {b: 1}\n" + "<<: *a\n" * _CHARACTERS,
}


@pytest.mark.parametrize("attack", _ATTACKS)
def test_a_small_file_takes_little_and_what_is_wrong_has_its_place(tmp_path: Path, attack: str) -> None:
    path = tmp_path / "network.yml"
    path.write_text((_GOOD + _ATTACKS[attack])[:_CHARACTERS])
    source = ClusterText(str(path))
    tracemalloc.start()
    begin = time.process_time()
    errors: tuple[Diagnostic, ...] = ()
    try:
        read_network_yml(source)
    except InputError as error:
        errors = error.diagnostics
    seconds, peak_bytes = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(error.line and error.column for error in errors)
    # tracemalloc makes it three times as slow.
    assert seconds < 1.5
    assert peak_bytes < 20 * 10**6
