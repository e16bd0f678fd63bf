"""A value that cannot be is an error of its file, of each schema; and each reader is fuzzed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from benchmarks.fuzz_readers import OWN, READERS, ROOT, TARGETS, Judge, read_mutants
from simcore.diagnostics import Diagnostic, InputError
from tests.fuzz.impossible import impossible

# Their bytes have no words.
BINARY = ("nsys", "execution-trace", "cache")
# What stands for a value, by what the value is.
NO_NUMBER = ('"²"', "[]", "[1]", "{}", "true", '"\\u001b[2J"', "1e400", "1" + "0" * 40)
BAD = {
    "count": ("-1", "0.5", "4611686018427387904", *NO_NUMBER),
    "positive": ("-1", "0", *NO_NUMBER[:7]),
    "word": ("5", "[]", '["a"]', "{}", "true", '"\\u001b[2J"', '""'),
    "text": ("5", "[]", '["a"]', "{}", "true"),
    "cell": ("-1", "²", "x", "1e400", "nan", "\x1b[2J"),
    "list": ("5", '"a"', "{}", "true", "[[]]", "[-1]", '["²"]'),
}
# Target: places of its seeds, each with the value there in < >, and what that is.
SCHEMAS: dict[str, dict[str, str]] = {
    "gpu": {"memory = <96>": "positive", "sustained = <0.8>": "positive", 'base = <"h100">': "word",
            'source = <"ours">': "text"},
    "model": {"layers = <4>": "count", "heads = <4>": "count", "gated = <true>": "switch",
              "experts = <4>": "count", "vocab = <100>": "count"},
    "config": {'"hidden_size": <64>': "size", '"model_type": <"qwen2_moe">': "word",
               '"num_experts_per_tok": <2>': "size"},
    "op-table-json": {'"forward_compute_time": <1.5>': "scale", '"weight_grad_comm_size": <0>': "scale"},
    "kineto": {'"rank": <0>': "count", '"world_size": <2>': "count"},
    "json-trace": {'"id": <"1">': "id", '"type": <"COMP_NODE">': "word", '"name": <"a">': "text",
                   '"durationMicros": <"7">': "count", '"int64Val": <"9">': "id", '"uint64Val": <"64">': "id",
                   '"boolVal": <false>': "switch"},
    "comm-groups": {'"1": <[0, 1]>': "list", '<"17">': "key"},
    "remote-memory": {'"remote-mem-latency": <100>': "count", '"num-npus-per-node": <4>': "count",
                      '"memory-type": <"PER_NPU_MEMORY_EXPANSION">': "word"},
    "cluster-toml": {"splits = <4>": "count", "local_mem_bw = <1200.5>": "positive",
                     'algorithm = <["1=ring"]>': "list"},
    "astra-network": {"npus_count: <[ 4, 8 ]>": "list", "bandwidth: <[ 400.0, 50 ]>": "list"},
    "astra-system": {'"active-chunks-per-dimension": <2>': "count", '"scheduling-policy": <"LIFO">': "word"},
    "parameters": {"compute_scale = <0.9>": "scale", "microbatches = <4>": "count",
                   'cluster = <"h200-8">': "text", 'slow_rank = <["37=1.3", "7=2"]>': "list"},
    "keymap": {'zoom-in = <"i">': "shortcut"},
    "session": {'"columns":<80>': "count", '"span_ns":<500>': "count", '"tp":<4>': "count"},
    "slurm": {'account = <"ours">': "option", 'queue = <"gpu">': "option", "cores = <8>": "count",
              'memory = <"16GB">': "option", 'walltime = <"01:00:00">': "option"},
    "operation-sizes": {"<4096>,4096,4096": "cell"},
    "expert-loads": {"<10> 20": "cell"},
    "span-csv": {"0,7,10,<50>": "cell", "\n<0>,7": "cell"},
    "order": {"<0F0>,0F1": "cell"},
    "aicb-arguments": {"--world_size <8>": "cell"},
}  # fmt: skip
BAD["scale"] = ("-1", *NO_NUMBER[:7])
# A list is a size for each layer.
BAD["size"] = ("-1", "0.5", '"²"', "[-1]", "{}", "true", '"\\u001b[2J"', "1e400")
BAD["option"] = (*BAD["text"], '"a --wrap=x"', '"a\\nb"', '"\\u001b[2J"', '"a;b"', '""', '"a\\u202eb"')
BAD["switch"] = ("5", '"true"', "[]", "{}", '"²"')
BAD["id"] = ('"²"', "[]", "{}", "true", "1e400", "0.5", "1" + "0" * 40)
BAD["shortcut"] = ("5", "[[]]", "{}", "true", '"\\u001b[2J"')
BAD["key"] = ('"²"', '"-1"', '""', '"\\u001b[2J"')
ROWS = [(name, place, kind) for name, places in SCHEMAS.items() for place, kind in places.items()]


def error_of(judge: Judge, path: Path, data: bytes) -> Diagnostic | None:
    """The first error of a file."""
    path.write_bytes(data)
    try:
        found = judge.read(str(path), data)
    except InputError as error:
        return error.diagnostics[0]
    return next((one for one in getattr(found, "diagnostics", ()) if one.severity == "error"), None)


@pytest.mark.parametrize(("name", "place", "kind"), ROWS, ids=[f"{name} {place}" for name, place, _ in ROWS])
def test_a_value_that_cannot_be_is_an_error_of_its_file(
    tmp_path: Path, name: str, place: str, kind: str
) -> None:
    judge, path = Judge(name, tmp_path), tmp_path / "input"
    before, value, behind = re.split("[<>]", place)
    whole = f"{before}{value}{behind}".encode()
    seed = next(data for data in TARGETS[name][1]() if whole in data)
    assert error_of(judge, path, seed) is None
    for bad in BAD[kind]:
        error = error_of(judge, path, seed.replace(whole, f"{before}{bad}{behind}".encode(), 1))
        assert error is not None, bad
        assert error.message.isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_reads_its_mutants_or_refuses_them(tmp_path: Path, name: str) -> None:
    # 100 of each here; `python benchmarks/fuzz_readers.py --mutants 4000` reads 100,000 and more.
    lines = list(read_mutants(name, tmp_path, 100, 1))
    assert len(lines) == 1, lines[1:]


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [name for name in TARGETS if name not in BINARY])
def test_a_reader_stands_any_value_anywhere(tmp_path: Path, name: str) -> None:
    judge = Judge(name, tmp_path)
    for seed in TARGETS[name][1]():
        for data in impossible(seed[:1200]):
            judge.one(data)
    assert not (tmp_path / "findings.json").exists()


OPENING = {"read_file", "read_text", "read_bytes", "connect", "loads", "raw_decode", "parse_toml",
           "safe_load", "Decoder", "reader"}  # fmt: skip


def modules_that_read() -> set[str]:
    """The modules that open a file, or parse what one has."""
    found = set()
    for folder in ("simcore", "tui"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    words = ast.unparse(node.func).split(".")
                    if words[-1] in OPENING or words in (
                        ["open"],
                        ["os", "open"],
                        ["msgspec", "msgpack", "decode"],
                    ):
                        found.add(str(path.relative_to(ROOT)))
    return found


def test_every_reader_is_fuzzed() -> None:
    assert set(READERS.values()) <= set(TARGETS)
    assert modules_that_read() == {*READERS, *OWN}
    assert not set(READERS) & set(OWN)
