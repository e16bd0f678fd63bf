"""docs/diagnostics.md explains every code of the source, and no other, each with an example that is real."""

from __future__ import annotations

import ast
import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from simcore.cluster import choose_cluster
from simcore.diagnostics import Diagnostic, InputError
from simcore.export import FORMATS, save
from simcore.parameters import Parameters
from simcore.program import building
from simcore.simulation import simulate
from simcore.workload import open_workload, read_workload
from simcore.workload import source as workload_source
from tests.workload.test_op_table import HEAD, twin
from tests.workload.test_op_table import row as op
from tests.workload.texts import HEADER, REPOSITORY, row, text_of

PAGE = (REPOSITORY / "docs" / "diagnostics.md").read_text(encoding="utf-8")
# Function -> which of its arguments is the code.
GIVERS = {"Diagnostic": 1, "add": 1, "note": 1, "degree": 1, "_refusal": 1, "refusal": 0}
CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SEVERITIES = ("error", "warning", "note")


def codes_of_the_source() -> set[str]:
    """Every code that a call of the source gives to a diagnostic."""
    found = set()
    for path in [*(REPOSITORY / "simcore").rglob("*.py"), *(REPOSITORY / "tui").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_CODE":
                found.add(ast.literal_eval(node.value))
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name not in GIVERS or len(node.args) <= GIVERS[name]:
                continue
            # A method leaves out the path that a function of the same name takes first.
            for argument in node.args[: GIVERS[name] + 1]:
                value = argument.value if isinstance(argument, ast.Constant) else None
                if isinstance(value, str) and CODE.fullmatch(value) and value not in SEVERITIES:
                    found.add(value)
    return found - {"tp", "ep", "pp", "algorithm", "dim"}  # names of fields and keys, not codes


def explained_codes() -> set[str]:
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE, flags=re.MULTILINE))


def test_every_code_of_the_source_is_explained_and_no_other() -> None:
    given, explained = codes_of_the_source(), explained_codes()
    assert {"no-such-file", "row-count", "tp-missing", "bad-gzip", "network-yml", "zero-step"} <= given
    assert given - explained == set()
    assert explained - given == set()


def test_each_row_of_the_page_says_what_is_done_and_what_to_do() -> None:
    rows = re.findall(r"^\| `[a-z0-9-]+` \|.*$", PAGE, flags=re.MULTILINE)
    assert len(rows) == len(explained_codes())
    for line in rows:
        _, _, severities, meaning, done, advice, _ = (cell.strip() for cell in line.split("|"))
        assert {*severities.split(", ")} <= set(SEVERITIES), line
        assert all((meaning, done, advice)), line


# -- examples --------------------------------------------------------------------------

Example = Callable[[Path], list[Diagnostic]]


def text(content: str | bytes, **parameters: object) -> Example:
    """What a run of a file with this content says."""
    data = content if isinstance(content, bytes) else content.encode()

    def example(_: Path) -> list[Diagnostic]:
        try:
            run = simulate(read_workload("w.txt", data), Parameters(**parameters))  # type: ignore[arg-type]
        except InputError as error:
            return list(error.found)
        return list(run.diagnostics)

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
            found = choose_cluster(Parameters(**{flag: str(folder / name)})).diagnostics  # type: ignore[arg-type]
        except InputError as error:
            found = error.diagnostics
        return [Diagnostic(one.severity, one.code, one.message, name, one.line, one.column) for one in found]

    return example


def cluster_folder(_: Path) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        choose_cluster(Parameters(cluster="/"))
    return list(caught.value.diagnostics)


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
        workload = read_workload("w.txt", content.encode())
        return list(FORMATS[0].export(workload, Parameters(**parameters)).diagnostics)  # type: ignore[arg-type]

    return example


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
EXAMPLES: dict[str, Example] = {
    "no-such-file": opened("none.txt"),
    "is-a-directory": opened("/"),
    "not-a-regular-file": opened("/dev/null"),
    "unreadable-file": opened("/dev/null/w.txt"),
    "empty-file": text("\n"),
    "unknown-format": text("Dear reader,\n"),
    "unsupported-format": text('{"traceEvents": []}'),
    "bad-gzip": text(gzip.compress(TEXT.encode())[:-9]),
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
    "unknown-key": text(changed(TEXT, "ep:", "mode: 1 ep:")),
    "stray-value": text(changed(TEXT, "\n1\n", "\n1 row\n")),
    "float-value": text(changed(TEXT, " 10 ", " 10.5 ")),
    "dependency": text(changed(TEXT, "-1", "0")),
    "comment": text("# made by hand\n" + TEXT),
    "row-breaks": text(changed(TEXT, " 20 ", "\n20 ")),
    "process-time": text(changed(TEXT, " 100", " 7")),
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
    "tp-missing": text(BARE),
    "ep-missing": text(BARE),
    "pp-missing": text(BARE),
    "all-gpus-missing": text(BARE),
    "gather-is-shard": text(SHARD),
    "ep-clamped": text(changed(TEXT, "ep: 1", "ep: 64")),
    "not-rescaled": text(TEXT, tp=4),
    "degrees-do-not-fit": text(changed(TEXT, "all_gpus: 8", "all_gpus: 9")),
    "ga-missing": text(BARE),
    "ga-differs": text(changed(BLOCK, "ga: 1", "ga: 4")),
    "vpp-missing": text(BARE),
    "vpp-differs": text(changed(BLOCK, "vpp: 1", "vpp: 2")),
    "no-blocks": text(text_of(row("grad_gather"))),
    "pp-comm-missing": text(changed(TEXT, "pp: 1", "pp: 2")),
    "too-many-rows": many_rows,
    "dialect-not-simulated": text(TEXT, dialect="astra-sim-1"),
    "parameter-ignored": text(TEXT, microbatches=2),
    "cannot-simulate": text(changed(TEXT, " 10 ", f" {2**63 - 1} ")),
    "zero-step": text(text_of("a -1 0 NONE 0 0 NONE 0 0 NONE 0 100")),
    "cluster-default": text(TEXT),
    "group-flat": text(changed(changed(TEXT, "group: 2", "group: 3"), "all_gpus: 8", "all_gpus: 24").replace(
        "NONE 0", "ALLREDUCE 64", 1)),
    "not-a-cluster-file": cluster_folder,
    "network-yml": cluster("cluster", "network.yml", "topology: [ Ring ]\nnpus_count: [ 0 ]\n"),
    "system-json": cluster("system", "system.json", '{"preferred-dataset-splits": 0}'),
    "cluster-toml": cluster("cluster", "cluster.toml", "splits = 0\n"),
    "cluster-key-ignored": cluster("system", "system.json", '{"trace-enabled": 1}'),
    "not-in-file": exported(TEXT, comm_scale=2.0),
    "row-count-written": exported(changed(TEXT, "\n1\n", "\n3\n")),
    "unwritable-file": unwritable,
}  # fmt: skip


def example_of(code: str, folder: Path) -> str:
    """The line that wltui writes for the example of a code."""
    said = [one.text() for one in EXAMPLES[code](folder) if one.code == code]
    assert said, f"the example of {code} does not give it"
    return said[0]


def test_every_explained_code_has_an_example() -> None:
    assert set(EXAMPLES) == explained_codes()


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_example_on_the_page_is_what_wltui_says(tmp_path: Path, code: str) -> None:
    examples = PAGE[PAGE.index("## Examples") :].split("\n")
    assert example_of(code, tmp_path) in examples
