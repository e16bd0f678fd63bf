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
BINARY = ("nsys", "execution-trace", "cache", "memory-snapshot")
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
               '"num_experts_per_tok": <2>': "size", '"num_experts": <8>': "size",
               '"num_hidden_layers": <4>': "count", '"mlp_only_layers": <[]>': "layers",
               '"tie_word_embeddings": <false>': "switch", '"q_lora_rank": <16>': "size"},
    "model-map": {"vocab = <1000>": "mapped", 'hidden_size = <"hidden">': "mapped",
                  'family = <"llama">': "word"},
    "prices": {"h100 = <2.5>": "positive"},
    "sweep-results": {'"point":<0>': "count", '"step_time_ns":<10>': "count", '"gpus":<8>': "count",
                      '"layout":{"tp":<1>}': "count", '"memory_peak_bytes":<10>': "count",
                      '"work":<1>': "count", '"version":<"v">': "text",
                      '"command":<"wltui report x">': "text"},
    "simai": {"model_parallel_NPU_group: <4>": "cell", "\t<202424320>\t": "cell", "-1\t<1000>\tNONE": "cell",
              " pp: <4>": "cell", "checkpoints: <2> 0 1": "cell"},
    "policies": {"a -1 <10> ALLTOALL": "cell", "ALLTOALL <400>": "cell", "HYBRID_DLRM <1>": "cell"},
    "trace-map": {'kind = <"forward">': "word", 'group = <"dp">': "text"},
    "op-table-csv": {"getitem\t<4.791370158793459e-09>": "cell", "ALLREDUCE_ASYNC\t<1310720>": "cell"},
    "rank-trace": {"stage_id=<3>": "cell", "batch_id=<0>": "cell", "rank:<7>:recv": "cell",
                   "timestamp=<4509232423.74>": "cell"},
    "sequence-lengths": {"0 0 <4096>": "cell", "\n0 <1> 2048": "cell"},
    "launch": {"--num-layers <4>": "cell", "--seq-length <128>": "cell", "local_batch_size = <1>": "count",
               '"train_batch_size": <16>': "count", '"stage": <3>': "count", 'flavor = <"8B">': "word"},
    "busbw": {"allreduce,: <300>": "cell"},
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
    "topology": {"\n<0> 6 2880Gbps": "cell", '{"gpus_per_server": <2>}': "count",
                 '"gbps": <2880>, "latency_ns": 25': "positive"},
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
BAD["layers"] = ("5", '"²"', '["a"]', "[-1]", "[0.5]", "[[]]", "[true]", "{}", "true", '["-1"]')
BAD["mapped"] = ("-1", "0.5", "4611686018427387904", "[]", "[1]", "{}", "inf", "nan", '"²"', "1" + "0" * 40)
BAD["call"] = ("0.5", '"²"', "[]", "{}", "true", "1e400", "1" + "0" * 40)
BAD["key"] = ('"²"', '"-1"', '""', '"\\u001b[2J"')
ROWS = [(name, place, kind) for name, places in SCHEMAS.items() for place, kind in places.items()]
# What is left out, or read as absent, with a diagnostic that says so: the rest of such a file is of use.
LEFT_OUT: dict[str, dict[str, str]] = {
    "kineto": {'"ts": 110, "dur": <30.25>': "time"},
    "chrome": {'"dur": <5.5>': "time", '"name": <"forward-compute">': "event-name"},
    "rank-trace": {"duration=<629.77>": "cell"},
    "flight-recorder": {'"last_enqueued_collective": <2>': "call", '"ranks": <"[0, 1]">': "members",
                        '"version": <"2.9">': "text"},
}  # fmt: skip
BAD["time"] = ("-1", '"²"', "[]", "[1]", "{}", "true", '"\\u001b[2J"', "1e400")
BAD["event-name"] = ("[]", '["a"]', "{}", "true")
BAD["members"] = ("5", '"a"', "{}", "true", "[[]]", "[-1]", '["²"]', "[0.5]")
LEFT_OUT_ROWS = [(name, place, kind) for name, places in LEFT_OUT.items() for place, kind in places.items()]
# A line that states no step is text of the log.
FREE_TEXT = ("training-log", "followed-log", "nccl-tests")


def error_of(judge: Judge, path: Path, data: bytes) -> Diagnostic | None:
    """The first error of a file."""
    path.write_bytes(data)
    try:
        found = judge.read(str(path), data)
    except InputError as error:
        return error.diagnostics[0]
    return next((one for one in getattr(found, "diagnostics", ()) if one.severity == "error"), None)


def messages_of(judge: Judge, path: Path, data: bytes) -> set[str]:
    """The messages of a file's diagnostics."""
    path.write_bytes(data)
    try:
        return {one.message for one in getattr(judge.read(str(path), data), "diagnostics", ())}
    except InputError as error:
        return {one.message for one in error.diagnostics}


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


@pytest.mark.parametrize(
    ("name", "place", "kind"), LEFT_OUT_ROWS, ids=[f"{name} {place}" for name, place, _ in LEFT_OUT_ROWS]
)
def test_a_value_that_is_left_out_is_stated(tmp_path: Path, name: str, place: str, kind: str) -> None:
    judge, path = Judge(name, tmp_path), tmp_path / "input"
    before, value, behind = re.split("[<>]", place)
    whole = f"{before}{value}{behind}".encode()
    seed = next(data for data in TARGETS[name][1]() if whole in data)
    usual = messages_of(judge, path, seed)
    for bad in BAD[kind]:
        said = messages_of(judge, path, seed.replace(whole, f"{before}{bad}{behind}".encode(), 1))
        assert said - usual, bad


def test_each_reader_of_text_is_in_a_table() -> None:
    assert {*SCHEMAS, *LEFT_OUT, *BINARY, *FREE_TEXT} == set(TARGETS)


def test_only_one_function_asks_for_digits() -> None:
    """`"²".isdigit()` holds, and `int` refuses it: `is_whole` is asked before."""
    places = [
        str(path.relative_to(ROOT))
        for folder in ("simcore", "tui")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"\.isdigit\(\)", path.read_text(encoding="utf-8"))
    ]
    # Of bytes it holds for 0 to 9 alone.
    assert sorted(places) == ["simcore/cluster/files/source.py", "simcore/units.py"]


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
           "safe_load", "Decoder", "reader", "ParserCreate"}  # fmt: skip


# Most modules have none of these: to walk them all takes 2 s.
_CALLS = re.compile(rf"\b(?:{'|'.join(OPENING)}|open|decode)\s*\(")


def modules_that_read() -> set[str]:
    """The modules that open a file, or parse what one has."""
    found = set()
    for folder in ("simcore", "tui"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if not _CALLS.search(text):
                continue
            for node in ast.walk(ast.parse(text)):
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
