"""Parameters, clusters, networks and keys that are made to hurt: numbers, nesting, aliases, sizes.

Each is answered within seconds by one line that says where and what; nothing of a file is run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from simcore.diagnostics import InputError
from tests.hostile.running import wltui
from tui.app import WltuiApp
from tui.keys import read_keymap
from tui.screens import all_bindings

SEED = "fixtures/000_gpt13b_tp4_old_header.txt"
# Generous: the machine may be busy. Each of these took minutes, or for ever, or is some milliseconds.
PATIENCE = 10.0
LONG_NUMBER = "found a number of more than 1000 digits, expected a shorter one"

TOML = {
    "decimal": (f"tp = {'1' * 5000}\n", f"1:6: error CODE {LONG_NUMBER}"),
    "hexadecimal": (f"x = 1\ntp = -0x{'f' * 5000}\n", f"2:7: error CODE {LONG_NUMBER}"),
    "binary": (f"tp = 0b{'1' * 900_000}\n", f"1:6: error CODE {LONG_NUMBER}"),
    "a million digits in a list": (f"dim = [{'7' * 1_000_000}]\n", f"1:8: error CODE {LONG_NUMBER}"),
    "dotted key": (
        f"{'.'.join(['a'] * 200_000)} = 1\n",
        "1:1: error CODE found a key of more than 32 parts, expected single values",
    ),
    "quoted dotted key": (
        "tp = { " + " . ".join(['"a"'] * 100_000) + " = 1 }\n",
        "1:8: error CODE found a key of more than 32 parts, expected single values",
    ),
    "dotted table": (
        f"\n[{'.'.join(['a'] * 20_000)}]\n",
        "2:2: error CODE found a key of more than 32 parts, expected single values",
    ),
    "lists": (
        f"tp = {'[' * 500_000}",
        ": error CODE found too many nested lists, expected single values",
    ),
    "tables": (
        f"tp = {'{a=' * 300_000}",
        ": error CODE found too many nested lists, expected single values",
    ),
    "escape sequence": (
        "tp = \x1b[31m\n", "1:6: error CODE this is not TOML: Invalid value",
    ),
    "unicode digits": ("tp = \u0663\n", "1:6: error CODE this is not TOML: Invalid value"),
}  # fmt: skip


def said(path: Path, *words: str, seed: str = SEED) -> str:
    """The one line on stderr of a report that is refused, from behind the path on."""
    started = time.monotonic()
    done = wltui("report", seed, *words)
    assert time.monotonic() - started < PATIENCE
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert len(done.err) < 1000
    return done.err.removeprefix(f"{path}:").rstrip("\n")


@pytest.mark.parametrize(("text", "expected"), TOML.values(), ids=TOML)
@pytest.mark.parametrize(("option", "code"), [("--params", "parameters-file"), ("--cluster", "cluster-toml")])
def test_toml_that_is_made_to_hurt_is_one_line(
    tmp_path: Path, option: str, code: str, text: str, expected: str
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text, encoding="utf-8")
    if option == "--cluster":
        # What begins like no cluster is another format's.
        text = f"splits = 1\n{text}"
        path.write_text(text, encoding="utf-8")
        line, colon, rest = expected.partition(":")
        expected = f"{int(line) + 1}{colon}{rest}" if line else expected
    assert said(path, option, str(path)) == expected.replace("CODE", code).removeprefix(":")


def test_keys_of_that_kind_are_one_line_too(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    bindings = all_bindings()
    for text, expected in TOML.values():
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            read_keymap(str(path), bindings, WltuiApp.BINDINGS)
        wanted = expected.removeprefix(":").replace("CODE", "keymap").replace("single values", "keys")
        assert str(caught.value).removeprefix(f"{path}:") == wanted


@pytest.mark.parametrize("depth", [5, 90, 150, 300])
def test_a_value_that_is_nested_as_deep_as_it_can_be_is_shown_cut(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "a.toml"
    for opening, inner, closing in (("[", "", "]"), ("{a=", "1", "}")):
        path.write_text(f"tp = {opening * depth}{inner}{closing * depth}\n")
        line = said(path, "--params", str(path))
        assert line.startswith(("1:1: error parameters-file found `", " error parameters-file "))
        assert line.startswith("1:1") or "too many" in line


NUMBERS = [f"1{'0' * 400}", "1e400", "-1e400", "nan", "inf", "-1", f"0x{'f' * 900}"]


@pytest.mark.parametrize("field", ["tp", "compute_scale", "splits", "jitter", "nvlink"])
def test_a_number_that_no_parameter_has_is_refused_with_its_place(tmp_path: Path, field: str) -> None:
    path = tmp_path / "a.toml"
    for number in NUMBERS:
        path.write_text(f"{field} = {number}\n")
        assert said(path, "--params", str(path)).startswith(f"1:1: error parameters-file {field} "), number


GOOD = "npus_count: [ 128 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"
LAUGHS = "a: &a [ lol, lol ]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
)
SEQUENCE = "error network-yml found a sequence in topology, expected a single value"
KINDS = "Ring, FullyConnected or Switch"
YAML = {
    "billion laughs": (LAUGHS + "topology: *u\n" + GOOD, f"20:4: {SEQUENCE}"),
    "alias of itself": ("topology: &a [ *a ]\n" + GOOD, f"1:11: {SEQUENCE}"),
    "object": (
        'topology: !!python/object/apply:os.system [ "touch OWNED" ]\n' + GOOD,
        f"1:45: error network-yml found `touch OWNED` in topology, expected {KINDS}",
    ),
    "module": (
        'topology: [ !!python/name:os.system "" ]\n' + GOOD,
        f"1:13: error network-yml found `` in topology, expected {KINDS}",
    ),
    "nesting": (
        f"topology: {'[' * 1_000}\n",
        "1:26: error network-yml found more than 16 levels, expected the keys topology, npus_count, "
        "bandwidth, latency",
    ),
    "many values": (
        f"topology: [{'Ring,' * 100_000}]\n" + GOOD,
        "1:65537: error network-yml found more than 65536 characters, expected the keys topology, "
        "npus_count, bandwidth, latency",
    ),
    "long alias": (
        f"topology: *{'a' * 50_000}\n",
        f"1:11: error network-yml this is not YAML: found undefined alias '{'a' * 174}...",
    ),
    "escape sequence": (
        "topology: [ \x1b]52;c;QQ==\x07 ]\n",
        "1:13: error network-yml this is not YAML: found character U+001B",
    ),
    "escaped escape sequence": (
        'topology: [ "\\e[31m\\u202e" ]\n' + GOOD,
        f"1:13: error network-yml found `\\x1b[31m\\u202e` in topology, expected {KINDS}",
    ),
    "underlines": (
        "topology: [ Ring ]\n" + GOOD.replace("128", "1_28"),
        "2:15: error network-yml found `1_28` in npus_count, expected a whole number from 1 to 1000000",
    ),
    "10^400": (
        "topology: [ Ring ]\n" + GOOD.replace("50.0", f"1{'0' * 400}"),
        f"3:14: error network-yml found `1{'0' * 36}...` in bandwidth, "
        "expected a number from 1e-6 to 1e9 (GiB/s)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "expected"), YAML.values(), ids=YAML)
def test_yaml_that_is_made_to_hurt_is_one_line_and_nothing_of_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    path = tmp_path / "network.yml"
    path.write_text(text)
    seed = os.path.abspath(SEED)
    monkeypatch.chdir(tmp_path)
    assert said(path, "--cluster", str(path), seed=seed) == expected
    assert os.listdir(tmp_path) == ["network.yml"]


NETWORK = (
    '{"topologies-per-dim": ["Ring"], "units-count": [UNITS], "links-count": [1], "link-latency": [1], '
    '"link-bandwidth": [BANDWIDTH]}'
)


@pytest.mark.parametrize(
    ("option", "text", "name"),
    [
        ("--cluster", NETWORK.replace("BANDWIDTH", "1"), "units-count"),
        ("--cluster", NETWORK.replace("UNITS", "128").replace("BANDWIDTH", "UNITS"), "link-bandwidth"),
        ("--system", '{"preferred-dataset-splits": UNITS}', "preferred-dataset-splits"),
        ("--system", '{"local-mem-bw": UNITS}', "local-mem-bw"),
    ],
)
def test_a_number_that_no_json_file_has_is_refused_with_its_place(
    tmp_path: Path, option: str, text: str, name: str
) -> None:
    path = tmp_path / "a.json"
    for number in ("1" + "0" * 400, "1e400", "-1e400", "NaN", "-Infinity", "-1", '"1_0"'):
        path.write_text(text.replace("UNITS", number))
        line = said(path, option, str(path))
        assert line.startswith("1:"), number
        assert f" {name}, expected " in line, number


def test_json_of_any_depth_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "system.json"
    for depth in (*range(940, 1000, 4), 5000, 300_000):
        path.write_text(f'{{"active-chunks-per-dimension": {"[" * depth}{"]" * depth}}}')
        assert ": error system-json found " in f":{said(path, '--system', str(path))}", depth


def test_a_number_of_more_digits_than_python_reads_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "system.json"
    path.write_text(f'{{"endpoint-delay": {"1" * 900_000}}}')
    line = said(path, "--system", str(path))
    assert line.startswith(" error system-json ")
    assert "too long" in line


BUSBW = "t\nTP:\nallreduce,: "


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"), ("1e400", "1e400"), ("nan", "nan"), ("\u0663", "\u0663"), ("1_0", "1_0"),
        ("-5", "-5"), ("\u202e5", "\\u202e5"), ("1" * 500_000, "1" * 37 + "..."),
    ],
)  # fmt: skip
def test_a_bus_bandwidth_that_is_none_is_one_line(tmp_path: Path, value: str, shown: str) -> None:
    path = tmp_path / "busbw.yaml"
    path.write_text(BUSBW + value + "\n", encoding="utf-8")
    assert said(path, "--network", f"busbw:{path}") == (
        f"3:13: error busbw-file found `{shown}` for TP.allreduce, expected a number from 1e-6 to 1e9 "
        "(GiB/s) or null"
    )


def test_a_key_of_the_cluster_that_steers_a_terminal_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "network.yml"
    path.write_text('topology: [ Ring ]\n"\\e]0;owned\\a\\u2066": 1\n' + GOOD)
    done = wltui("check", SEED, "--cluster", str(path))
    assert done.status in (0, 1, 2)
    done = wltui("report", SEED, "--cluster", str(path), "--json")
    assert done.status == 0
    assert "\\x1b]0;owned\\x07\\u2066" in done.out.replace("\\\\", "\\")
