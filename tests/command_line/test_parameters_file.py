"""`--params FILE`: the same parameters as TOML, and what is said of a file that does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.diagnostics import InputError
from simcore.parameter_values.choices import choices
from simcore.parameter_values.parameters_file import read_parameters, toml_of
from simcore.parameters import FLAGS, Flag, Parameters
from simcore.program.schedules import SCHEDULES
from tests.command_line.running import OLD_HEADER, SEED_001, wltui_here


def test_a_file_of_parameters_is_read_and_the_command_line_counts_more(tmp_path: Path) -> None:
    path = tmp_path / "params.toml"
    path.write_text(
        '# faster\ncompute_scale = 0.5\nmicrobatches = 4\nslow_rank = ["7=1.3", "8=2"]\n'
        'no_fold = false\nnetwork = "analytical"\ncluster = "h200-8"\n'
    )
    words = ("report", OLD_HEADER, "--json")
    found = json.loads(wltui_here(*words, "--params", str(path), "--microbatches", "2").stdout)
    flags = ["--compute-scale", "0.5", "--microbatches", "2", "--slow-rank", "7=1.3", "--slow-rank", "8=2"]
    same = json.loads(wltui_here(*words, *flags, "--cluster", "h200-8").stdout)
    assert found == same
    assert found["parameters"]["slow_rank"] == ["7=1.3", "8=2"]


def read(text: str, folder: Path) -> dict[str, object]:
    path = folder / "p.toml"
    path.write_text(text, encoding="utf-8")
    return read_parameters(str(path))


NAME = "expected the name of a parameter"
WRONG = [
    ("\ncompute_scal = 2\n", f"2:1: found `compute_scal`, {NAME}, for example compute_scale"),
    ("[scale]\ncompute_scale = 2\n", f"1:2: found `scale`, {NAME}, for example rescale"),
    ("a.b = 2\n", f"1:1: found `a`, {NAME}"),
    ('# one\n"\\u202e" = 2\n', f"2:1: found `\\u202e`, {NAME}"),
    ('"t\\u0070" = 1\n  "pp" = 0\n', "2:3: pp 0: a whole number from 1 to 2^40 is expected"),
    ('"t\\u0070" = 0\n', "1:1: tp 0: a whole number from 1 to 2^40 is expected"),
    ("tp = 2020-01-01\n", "1:1: found `2020-01-01` for tp, expected a whole number"),
    ("tp = 2020-01-01 10:00:00\n", "1:1: found `2020-01-01T10:00:00` for tp, expected a whole number"),
    (
        "dim = [[2020-01-01, true], 'a']\n",
        '1:1: found `[[2020-01-01, true], "a"]` for dim, expected a list of texts',
    ),
    ("tp = 2\n  pp = 0\n", "2:3: pp 0: a whole number from 1 to 2^40 is expected"),
    ("tp = 2.0\n", "1:1: tp 2.0: a whole number from 1 to 2^40 is expected"),
    ('tp = "2"\n', "1:1: found `2` for tp, expected a whole number"),
    ("comm_scale = true\n", "1:1: found `true` for comm_scale, expected a number"),
    ("comm_scale = inf\n", "1:1: comm_scale inf: a number of 0 or more (up to 1e12) is expected"),
    ("no_fold = 1\n", "1:1: found `1` for no_fold, expected true or false"),
    ('dim = "ring:8:1:5"\n', "1:1: found `ring:8:1:5` for dim, expected a list of texts"),
    ("dim = [8]\n", "1:1: found `[8]` for dim, expected a list of texts"),
    (
        'schedule = "zigzag"\n',
        f"1:1: found `zigzag` for schedule, expected one of {', '.join(SCHEDULES)}",
    ),
    (
        'network = "busbw"\n',
        "1:1: found `busbw` for network, expected one of analytical, shared, busbw:FILE, simai-auto, "
        "links, flows",
    ),
    (
        'tp = 8\ndim = ["ring:8"]\n',
        "2:9: dim ring:8: KIND:SIZE:GBPS:NS is expected, for example switch:8:450:500",
    ),
    (
        'dim = ["switch:8:450:500", "ring:8:0:5"]\n',
        "1:29: dim ring:8:0:5: GBPS `0` is not a number from 1e-6 to 1e9 (GB/s)",
    ),
    ('algorithm = ["foo"]\n', "1:15: algorithm foo: DIM=NAME is expected, for example 0=ring"),
    ('algorithm = ["x=ring"]\n', "1:15: algorithm x=ring: DIM `x` is not the number of a dimension"),
    (
        'slow_rank = ["zz"]\n',
        "1:15: slow_rank zz: R=X, for example 37=1.3 is expected, X above 0 and up to 1e6",
    ),
    (
        'slow_link = ["1=0.5"]\n',
        "1:15: slow_link 1=0.5: DIM:R=X, for example 1:37=0.5 is expected",
    ),
    (
        'overlap = ["dp=2"]\n',
        "1:13: overlap dp=2: KIND=RATIO is expected, KIND one of dp, tp, ep, pp, RATIO from 0 to 1, "
        "for example dp=0.5,tp=0.3",
    ),
    ("tp = \n", "1:6: this is not TOML: Invalid value"),
    ("a\u001b = 1\n", "1:2: this is not TOML: Expected '=' after a key in a key/value pair"),
    (f"a = {'[' * 3000}", "found too many nested lists, expected single values"),
]


def test_what_does_not_fit_is_told_with_its_place(tmp_path: Path) -> None:
    for text, message in WRONG:
        with pytest.raises(InputError) as caught:
            read(text, tmp_path)
        place, said = message.split(": ", 1) if message[0].isdigit() else ("", message)
        where = f"{tmp_path}/p.toml:{place}" if place else f"{tmp_path}/p.toml"
        assert str(caught.value) == f"{where}: error parameters-file {said}"


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.toml", "the file cannot be read: No such file or directory"),
        (tmp_path, "found no regular file, expected a file of parameters"),
    ):
        done = wltui_here("report", SEED_001, "--params", str(path))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"{path}: error parameters-file {message}\n"
    bad = tmp_path / "p.toml"
    bad.write_bytes(b"tp = 2\npp = \xff\n")
    with pytest.raises(
        InputError, match=r"p.toml:2:6: error parameters-file found byte 0xff, expected UTF-8 text"
    ):
        read_parameters(str(bad))
    bad.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(InputError, match="found more than 1 MiB, expected a file of parameters"):
        read_parameters(str(bad))


_WORD = st.text(st.characters(blacklist_categories=("Cs", "Z", "Cc")), min_size=1, max_size=8)
_VALUES = {
    "count": st.integers(1, 64),
    "positive": st.floats(0.001, 1e9),
    "scale": st.floats(0, 1e9),
    "text": _WORD,
    "switch": st.just(True),
}
_ITEMS = {
    "dim": st.sampled_from(["switch:8:450:500", "ring:4:0.1:0"]),
    "algorithm": st.sampled_from(["0=ring", "1=direct4"]),
    "overlap": st.sampled_from(["dp=0.5,tp=0.3", "pp=0"]),
    # Whether it is NAME:PHASE or an operation is known when a workload or a trace is open.
    "layer_scale": _WORD.map(lambda name: f"{name}=0.5"),
    "slow_rank": st.sampled_from(["37=1.3", "0=2"]),
    "slow_link": st.sampled_from(["1:37=0.5", "0:0=1e-3"]),
    "link_rate": st.sampled_from(["36-52=0.5", "0-32=0"]),
    "kind_scale": st.sampled_from(["dp=0", "expert dp=1.5"]),
    "stage_scale": st.sampled_from(["3=0.9", "none=0"]),
    "slow_host": st.sampled_from(["3=0.9", "0=0"]),
    "without_lines": st.sampled_from(["82-83", "7"]),
    "time_scale": st.sampled_from(["compute fwd=0.9", "stream tp=0", "layer mlp_row=2"]),
}


def _values_of(flag: Flag) -> st.SearchStrategy[Any]:
    """Values that a parameter may have."""
    if flag.kind == "word":
        return st.sampled_from(choices(flag.field)).map(lambda word: word.replace("FILE", "b.yaml"))
    if flag.kind == "words":
        return st.lists(_ITEMS[flag.field], min_size=1, max_size=3).map(tuple)
    return _VALUES[flag.kind]


@given(st.data())
def test_what_is_saved_is_read_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    parameters = Parameters()
    for flag in data.draw(st.lists(st.sampled_from(FLAGS), unique=True)):
        parameters = replace(parameters, **{flag.field: data.draw(_values_of(flag))})
    found = read(toml_of(parameters.explicit_values()), tmp_path_factory.mktemp("p"))
    assert Parameters(**found) == parameters
