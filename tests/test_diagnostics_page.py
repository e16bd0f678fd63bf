"""docs/diagnostics.md explains every code of the source, and no other; wltui prints the line of each."""

from __future__ import annotations

import ast
import gzip
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from simcore.cluster import ClusterParameters, choose_cluster
from simcore.diagnostics import Diagnostic, InputError
from simcore.model.aicb import AicbTimes, aicb_text
from simcore.model.aicb_arguments import AicbArguments
from simcore.parameter_values.parameters_file import read_parameters
from simcore.parameters import Parameters
from simcore.program import building
from simcore.render.export import FORMATS, Request, save
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.sources.checking import check_file_of
from simcore.sweeping.point_lines import PointParser
from simcore.workload import open_workload
from simcore.workload import source as workload_source
from tests.diagnostic_examples_executing import EXECUTING
from tests.diagnostic_examples_hangs import HANGS
from tests.diagnostic_examples_measured import MEASURED, Example, relative
from tests.diagnostic_examples_models import MODEL_EXAMPLES
from tests.diagnostic_examples_networks import NETWORKS, POLICIES
from tests.diagnostic_examples_profiles import EXAMPLES as PROFILES
from tests.diagnostic_examples_schedules import SCHEDULES
from tests.diagnostic_examples_snapshots import SNAPSHOTS
from tests.measured.traces import step
from tests.syntax import nodes_by_file
from tests.workload.test_op_table import HEAD, twin
from tests.workload.test_op_table import row as op
from tests.workload.texts import HEADER, REPOSITORY, read, row, text_of
from tui.keys import read_keymap
from tui.screens import all_bindings

PAGE = (REPOSITORY / "docs" / "diagnostics.md").read_text(encoding="utf-8")
# A line of each code, as wltui prints it.
LINES = (REPOSITORY / "tests" / "diagnostic_examples.txt").read_text(encoding="utf-8").splitlines()
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# As the page has them.
SEVERITIES = {"E": "error", "W": "warning", "N": "note"}
# They have a code among their parameters and ask for what was said before.
ASKING = {"has", "count"}
Places = dict[str, set[int]]


def givers_of(tree: list[ast.AST]) -> Places:
    """Function or class -> at which arguments of a call the code may be; none if it takes no code."""
    found: Places = {}
    for node in tree:
        if isinstance(node, ast.ClassDef):
            fields = [one.target.id for one in node.body if isinstance(one, ast.AnnAssign)]  # type: ignore[union-attr]
            made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
            names = [one.arg for one in made[0].args.args[1:]] if made else fields
        elif isinstance(node, ast.FunctionDef) and node.name not in ASKING:
            names = [one.arg for one in node.args.args if one.arg != "self"]
        else:
            continue
        found.setdefault(node.name, set()).update({names.index("code")} if "code" in names else set())
    return found


def codes_in(tree: list[ast.AST], elsewhere: Places) -> set[str]:
    """Every code that a call of this module gives; a Diagnostic whose code cannot be found is a failure."""
    givers = elsewhere | givers_of(tree)
    found = set()
    # Loop variable -> its words: `for name in ("pp", "ep"): ... f"{name}-ignored"`.
    words: dict[str, set[str]] = {}
    for node in tree:
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            values = {str(getattr(one, "value", "")) for one in node.iter.elts}
            words.setdefault(getattr(node.target, "id", ""), set()).update(values)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").endswith("_CODE"):
            # Elsewhere the name holds code objects.
            found.update({node.value.value} if isinstance(node.value, ast.Constant) else ())
    for node in tree:
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        for place in givers.get(name, ()):
            if len(node.args) <= place:
                continue
            code = node.args[place]
            if isinstance(code, ast.Constant) and isinstance(code.value, str) and CODE.fullmatch(code.value):
                found.add(code.value)
            elif isinstance(code, ast.JoinedStr):
                loop, rest = code.values
                found.update(f"{word}{rest.value}" for word in words[loop.value.id])  # type: ignore[attr-defined]
            elif name == "Diagnostic":
                # The helper's own parameter, or the code of another diagnostic.
                assert getattr(code, "id", getattr(code, "attr", "")) == "code", ast.unparse(node)
    return found


def codes_of_the_source() -> set[str]:
    """Every code that a call of the source gives to a diagnostic."""
    trees = list(nodes_by_file().values())
    givers: Places = {}
    for tree in trees:
        for name, places in givers_of(tree).items():
            givers.setdefault(name, set()).update(places)
    return set().union(*(codes_in(tree, givers) for tree in trees))


def explained_codes() -> dict[str, str]:
    """Code -> the row of the page that has it, perhaps with others of the same severity."""
    rows = re.findall(r"^\| (`[a-z0-9-]+`(?:, `[a-z0-9-]+`)*) (\|.*)$", PAGE, flags=re.MULTILINE)
    return {code: rest for codes, rest in rows for code in re.findall(r"[a-z0-9-]+", codes)}


@pytest.mark.slow
def test_every_code_of_the_source_is_explained_and_no_other() -> None:
    given, explained = codes_of_the_source(), set(explained_codes())
    assert {"no-such-file", "row-count", "tp-missing", "bad-gzip", "network-yml", "zero-step"} <= given
    assert {"trace-key", "stage-changes", "ranks-missing", "busbw-title", "ep-ignored"} <= given
    assert given - explained == set()
    assert explained - given == set()


def test_each_row_of_the_page_says_what_it_means() -> None:
    listed = re.findall(r"`([a-z0-9-]+)`(?=[^|]*\| [EWN])", PAGE)
    assert sorted(listed) == sorted(explained_codes())
    for line in explained_codes().values():
        _, severities, meaning, _ = (cell.strip() for cell in line.split("|"))
        assert {*severities.split(", ")} <= set(SEVERITIES), line
        assert meaning, line


# -- examples --------------------------------------------------------------------------


def text(content: str | bytes, **parameters: object) -> Example:
    """What a run of a file with this content says."""
    data = content if isinstance(content, bytes) else content.encode()

    def example(_: Path) -> list[Diagnostic]:
        try:
            run = simulate(read(data), Parameters(**parameters))  # type: ignore[arg-type]
        except InputError as error:
            return list(error.all_diagnostics)
        return list(SimulatedRun(run).diagnostics)

    return example


def results(_: Path) -> list[Diagnostic]:
    """What reading a line that is no point says."""
    try:
        PointParser("results.jsonl").parse(b'{"schema":"wltui.sweep/1"}', 1)
    except InputError as error:
        return list(error.diagnostics)
    return []


def checked(content: str) -> Example:
    """What `wltui check` says of a file with this content."""

    def example(_: Path) -> list[Diagnostic]:
        return list(check_file_of(lambda: read(content.encode())).diagnostics)

    return example


def opened(path: str) -> Example:
    """What opening this path says."""

    def example(folder: Path) -> list[Diagnostic]:
        with pytest.raises(InputError) as caught:
            open_workload(str(folder / path) if not path.startswith("/") else path)
        return [
            Diagnostic(one.severity, one.code, one.message, path, one.line, one.column)
            for one in caught.value.diagnostics
        ]

    return example


def cluster(flag: str, name: str, content: str) -> Example:
    """What a cluster or system file with this content says."""

    def example(folder: Path) -> list[Diagnostic]:
        (folder / name).write_text(content)
        try:
            found = choose_cluster(ClusterParameters(**{flag: str(folder / name)})).diagnostics  # type: ignore[arg-type]
        except InputError as error:
            found = error.diagnostics
        return [Diagnostic(one.severity, one.code, one.message, name, one.line, one.column) for one in found]

    return example


def cluster_folder(_: Path) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        choose_cluster(ClusterParameters(cluster="/"))
    return list(caught.value.diagnostics)


def topology_unused(folder: Path) -> list[Diagnostic]:
    (folder / "w.txt").write_text(TEXT)
    setup = Setup(open_workload(str(folder / "w.txt")), Parameters(cluster="dcn:16:npa=8:psn=2", world=16))
    named = setup.with_changes(network="analytical")
    return [*named.placement.diagnostics, *setup.without_flows("too many").placement.diagnostics]


def parameters_file(folder: Path) -> list[Diagnostic]:
    (folder / "p.toml").write_text("splits = 0\n")
    with pytest.raises(InputError) as caught:
        read_parameters(str(folder / "p.toml"))
    return relative(caught.value.diagnostics, folder)


def keymap(folder: Path) -> list[Diagnostic]:
    (folder / "keys.toml").write_text('[timeline]\nzoom-in = "Ctrl+1"\n')
    with pytest.raises(InputError) as caught:
        read_keymap(str(folder / "keys.toml"), all_bindings(), ())
    (one,) = caught.value.diagnostics
    return [replace(one, file="keys.toml")]


def many_rows(folder: Path) -> list[Diagnostic]:
    most, building.MOST_ROWS = building.MOST_ROWS, 2
    try:
        return text(text_of(ROW, ROW, ROW))(folder)
    finally:
        building.MOST_ROWS = most


def large(folder: Path) -> list[Diagnostic]:
    most, workload_source.MOST_BYTES = workload_source.MOST_BYTES, 2**20
    try:
        return text(text_of(row()) + " " * 2**21)(folder)
    finally:
        workload_source.MOST_BYTES = most


def exported(content: str, **parameters: object) -> Example:
    def example(_: Path) -> list[Diagnostic]:
        workload = read(content)
        requested = Parameters(**parameters)  # type: ignore[arg-type]
        return list(FORMATS[0].build_export(Request(workload, requested)).diagnostics)

    return example


def timeline(_: Path) -> list[Diagnostic]:
    workload = read(TEXT)
    (chrome,) = [one for one in FORMATS if one.name == "chrome"]
    return list(chrome.build_export(Request(workload, Parameters())).diagnostics)


def unwritable(folder: Path) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        save(str(folder / "none" / "out.txt"), [], False)
    (one,) = caught.value.diagnostics
    return [Diagnostic(one.severity, one.code, one.message, "none/out.txt")]


def table(*rows: str, head: str = HEAD) -> str:
    return "\n".join([head, *rows])


def changed(content: str, old: str, new: str) -> str:
    assert old in content
    return content.replace(old, new, 1)


ROW, TEXT = row(), text_of(row())
SHARD = text_of(
    row("grad_gather", wg="ALLGATHER 100"),
    row("grad_param_comm", wg="REDUCESCATTER 800"),
    header="HYBRID_TRANSFORMER",
)
BARE = text_of(ROW, header="HYBRID_TRANSFORMER")
BLOCK = text_of(row("embedding_layer"), row("mlp_layer"), header=f"{HEADER} pp_comm: 0")
DP = op("x_grad", bwd="1 ALLREDUCE_ASYNC 8")
# 16 GPUs of which only 10 are on the switch, with an uplink of half their bandwidth.
TOPOLOGY = (
    "18 8 0 2 11 H100\n16 17\n"
    + "".join(f"{gpu} 16 200Gbps 0.0005ms 0\n" for gpu in range(10))
    + "16 17 1000Gbps 0.0005ms 0\n"
)
LINKS = '"units-count": [4], "links-count": [2], "link-latency": [500], "link-bandwidth": [25]}'
OF_AICB = AicbArguments("--world_size 2 --tensor_model_parallel_size 2 --global_batch 1").config
OF_TP = aicb_text(OF_AICB, AicbTimes(80000, 100000, 100000, (800, 900)))
tp_of_3 = text(changed(changed(TEXT, "group: 2", "group: 3"), "all_gpus: 8", "all_gpus: 24").replace(
    "NONE 0", "ALLREDUCE 64", 1))  # fmt: skip

EXAMPLES: dict[str, Example] = {
    "sweep-line": results,
    "no-such-file": opened("none.txt"),
    "is-a-directory": opened("/"),
    "not-a-regular-file": opened("/dev/null"),
    "unreadable-file": opened("/dev/null/w.txt"),
    "empty-file": text("\n"),
    "unknown-format": text("Dear reader,\n"),
    "unsupported-format": text('{"workload_graph": []}'),
    "measured-run": text(step(0)),
    "bad-gzip": text(gzip.compress(TEXT.encode())[:10]),
    "too-large": large,
    "not-a-number": text(changed(TEXT, "10", "ten")),
    "negative-value": text(changed(TEXT, "10", "-10")),
    "value-too-large": text(changed(TEXT, " 10 ", f" {2**63} ")),
    "checkpoint-list": text(changed(TEXT, "ep:", "checkpoints: 2 0 ep:")),
    "incomplete-row": text(TEXT + "mlp_row -1 10"),
    "no-rows": text(HEADER + "\n0\n"),
    "header-too-long": text(HEADER + " word" * 100_000),
    "row-count": text(changed(TEXT, "\n1\n", "\n3\n")),
    "no-row-count": text(changed(TEXT, "\n1\n", "\n")),
    "unknown-collective": text(changed(TEXT, "NONE", "BROADCAST")),
    "extra-cells": text(TEXT.rstrip() + " 7\n"),
    "zero-degree": text(changed(TEXT, "pp: 1", "pp: 0")),
    "repeated-key": text(changed(TEXT, "pp: 1", "pp: 1 pp: 1")),
    "checkpoint-range": text(changed(TEXT, "ep:", "checkpoints: 1 5 ep:")),
    "not-utf-8": text(TEXT.encode().replace(b"attention", b"\xe9tention")),
    "unknown-key": text(changed(TEXT, "ep:", "fold: 1 ep:")),
    "stray-value": text(changed(TEXT, "\n1\n", "\n1 row\n")),
    "float-value": text(changed(TEXT, " 10 ", " 10.5 ")),
    "dependency": text(changed(TEXT, "-1", "0")),
    "comment": text("# made by hand\n" + TEXT),
    "row-breaks": text(changed(TEXT, " 20 ", "\n20 ")),
    "process-time": text(changed(TEXT, " 100", " 7")),
    "aicb-model": checked(aicb_text(AicbArguments("--global_batch 1").config, None)),
    "lost-layers": checked(aicb_text(AicbArguments(
        "--num_layers 36 --hidden_size 4096 --num_attention_heads 32 --pipeline_model_parallel 5 "
        "--world_size 5 --vocab_size 50257").config, None)),
    "backward-unsent": checked(OF_TP),
    "all-parameters": checked(OF_TP),
    "pp-comm-differs": checked(
        changed(changed(changed(OF_TP, "pp: 1", "pp: 2"), "gpus: 2", "gpus: 4"), "comm: 0", "comm: 67108864")
    ),
    "example-cells": checked(aicb_text(OF_AICB, AicbTimes(799000, 1820000, 2478000, (16647000, 17374000)))),
    "above-peak": checked(aicb_text(OF_AICB, AicbTimes(8000, 1000, 1000, (800, 900)))),
    "missing-column": text(table("", head="\t".join(HEAD.split("\t")[:-1]))),
    "bad-json": text(twin(table(op()))[:-1]),
    "repeated-column": text(table(op() + "\ta", head=f"{HEAD}\tname")),
    "unknown-column": text(table(op() + "\ta", head=f"{HEAD}\tnote")),
    "several-kinds": text(table(DP, op("x_tensor_model_parallel", fwd="1 ALLREDUCE 8"))),
    "forward-only": text(table(op(bwd="0 None 0"))),
    "group-assumed": text(table(op(fwd="1 ALLREDUCE 8"))),
    "layers-assumed": text(table(op("model_decoder_layers_0_self_attn_layer_norm"), op("view_11"))),
    "layer-not-found": text(table(op())),
    "ranks-assumed": text(table(DP)),
    "schedule-default": text(TEXT),
    "few-microbatches-assumed": text(changed(BLOCK, "pp: 1", "pp: 2"), schedule="zb-h1"),
    "memory-assumed": text(OF_TP),
    "overlap-assumed": text(OF_TP),
    "tp-missing": text(BARE),
    "ep-missing": text(BARE),
    "pp-missing": text(BARE),
    "all-gpus-missing": text(BARE),
    "gather-is-shard": text(SHARD),
    "compute-placeholder": text(changed(changed(changed(TEXT, " 10 ", " 1 "), " 20 ", " 1 "), " 30 ", " 0 ")),
    "ep-clamped": text(changed(TEXT, "ep: 1", "ep: 64")),
    "rescaled": text(
        aicb_text(AicbArguments("--global_batch 8 --world_size 8").config, None), rescale="on", tp=2),
    "not-rescaled": text(TEXT, tp=4),
    "degrees-do-not-fit": text(changed(TEXT, "all_gpus: 8", "all_gpus: 9")),
    "ga-missing": text(BARE),
    "ga-differs": text(changed(BLOCK, "ga: 1", "ga: 4")),
    "vpp-missing": text(BARE),
    "vpp-differs": text(changed(BLOCK, "vpp: 1", "vpp: 2")),
    "no-blocks": text(text_of(row("grad_gather"))),
    "pp-comm-missing": text(changed(TEXT, "pp: 1", "pp: 2")),
    "stage-layout-default": text(changed(BLOCK, "pp: 1", "pp: 2")),
    "too-many-rows": many_rows,
    "parameter-ignored": text(TEXT, microbatches=2),
    "cannot-simulate": text(changed(TEXT, " 10 ", f" {2**63 - 1} ")),
    "zero-step": text(text_of("a -1 0 NONE 0 0 NONE 0 0 NONE 0 100")),
    "cluster-default": text(TEXT),
    "group-straddles": tp_of_3,
    "group-flat": tp_of_3,
    "not-a-cluster-file": cluster_folder,
    "network-yml": cluster("cluster", "network.yml", "topology: [ Ring ]\nnpus_count: [ 0 ]\n"),
    "system-json": cluster("system", "system.json", '{"preferred-dataset-splits": 0}'),
    "network-json": cluster("cluster", "network.json", '{"topologies-per-dim": ["Mesh"], ' + LINKS),
    "network-delay-ignored": cluster(
        "cluster", "network.json", '{"nic-latency": [7], "topologies-per-dim": ["Ring"], ' + LINKS),
    "scheduler-ignored": cluster("system", "system.txt", "inter-dimension-scheduling: themis\n"),
    "topology-file": cluster("cluster", "topo", "3 2 1 0 1 H100\n2\n0 9 400Gbps 0.0005ms 0\n"),
    "simai-conf": cluster("system", "SimAI.conf", "CC_MODE fast\n"),
    "topology": cluster("cluster", "topo", TOPOLOGY),
    "topology-unconnected": cluster("cluster", "topo", TOPOLOGY),
    "topology-unused": topology_unused,
    "paths-balanced": topology_unused,
    "topology-oversubscribed": cluster("cluster", "topo", TOPOLOGY),
    "cluster-toml": cluster("cluster", "cluster.toml", "splits = 0\n"),
    "cluster-key-ignored": cluster("system", "system.json", '{"trace-enabled": 1}'),
    "parameters-file": parameters_file,
    "keymap": keymap,
    "not-in-file": exported(TEXT, comm_scale=2.0),
    "row-count-written": exported(changed(TEXT, "\n1\n", "\n3\n")),
    "unwritable-file": unwritable,
    "equal-ranks": timeline,
    **MEASURED, **HANGS, **SNAPSHOTS, **NETWORKS, **POLICIES, **MODEL_EXAMPLES, **PROFILES, **SCHEDULES,
    **EXECUTING,
}  # fmt: skip


def test_every_explained_code_has_an_example() -> None:
    assert set(EXAMPLES) == set(explained_codes())


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_line_of_a_code_is_what_wltui_says(tmp_path: Path, code: str) -> None:
    said = [one for one in EXAMPLES[code](tmp_path) if one.code == code]
    assert said, f"the example of {code} does not give it"
    assert said[0].text() in LINES
    letters = explained_codes()[code].split("|")[1].strip().split(", ")
    assert said[0].severity in [SEVERITIES[letter] for letter in letters]


def test_there_is_one_line_for_each_code() -> None:
    codes = [re.search(r": (?:error|warning|note) ([a-z0-9-]+) ", line) for line in LINES]
    assert sorted(code[1] for code in codes if code) == sorted(EXAMPLES)
    assert all(codes)
