"""`wltui op`: text, table and JSON, rows of a CSV file, and the exact words of its errors."""

from __future__ import annotations

import gzip
import json
import shlex
import statistics
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from benchmarks import measured_operations as measured
from simcore.diagnostics import InputError
from simcore.model.gpu import find_gpu
from simcore.model.operations.alone import KINDS, MOST, precisions_of, price_file
from simcore.workload import opening
from tests.command_line.running import wltui_here
from tests.command_line.test_imports import RUN, UNWANTED, loaded

PRODUCTS = "gemm_dtype,m,n,k\nbfloat16,256,128,128\nfp8,8192,8192,8192\n"
# What files of the tables are called.
NAMES = {"product": "gemm", "attention": "attention", "experts": "moe"}


def operations(*words: str) -> list[dict[str, Any]]:
    done = wltui_here("op", *words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)["operations"]
    return found


def rows_of(folder: Path, content: str | bytes, *words: str) -> list[dict[str, Any]]:
    path = folder / "ops.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return operations("product", "--from", str(path), *words)


def test_one_operation_says_what_it_takes_and_what_it_reaches() -> None:
    done = wltui_here("op", "product", "--m", "8192", "--n", "8192", "--k", "8192", "--gpu", "h100")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "product, m 8192, n 8192, k 8192, in bf16 on h100: 1.392 ms\n"
        "  bound by  compute\n"
        "  reaches   789.7 TFLOP/s\n"
        "  of peak   79.8 % of 989 TFLOP/s\n"
    )


def test_json_has_the_sizes_and_the_figures() -> None:
    words = shlex.split("op product --m 8192 --n 8192 --k 8192 --gpu b200 --precision fp8_block --json")
    found = json.loads(wltui_here(*words).stdout)
    (one,) = found.pop("operations")
    assert found == {"schema": "wltui.op/1", "operation": "product", "gpu": "b200"}
    assert list(one) == ["precision", "m", "n", "k", "ns", "bound", "tflops", "share_of_peak"]
    assert (one["precision"], one["m"], one["n"], one["k"]) == ("fp8_block", 8192, 8192, 8192)
    assert one["tflops"] == pytest.approx(2 * 8192**3 / one["ns"] / 1e3, rel=1e-5)
    assert one["share_of_peak"] == one["tflops"] / find_gpu("b200").peak_fp8


def test_attention_counts_what_the_mask_leaves_and_experts_each_choice() -> None:
    words = shlex.split("--batch 2 --seq 4096 --heads 32 --kv-heads 8 --head-dim 128")
    (one,) = operations("attention", *words)
    assert one["tflops"] * one["ns"] * 1e3 == pytest.approx(2 * 2 * 32 * 4096**2 * 128, rel=1e-5)
    words = shlex.split("--tokens 4096 --hidden 7168 --ffn 2048 --top-k 8 --experts 256 --ep 8")
    (one,) = operations("experts", *words)
    assert (one["tp"], one["ep"]) == (1, 8)
    assert one["tflops"] * one["ns"] * 1e3 == pytest.approx(2 * 4096 * 3 * 7168 * 2048, rel=1e-5)


def test_rows_of_a_file_are_a_table(tmp_path: Path) -> None:
    (tmp_path / "ops.csv").write_text(PRODUCTS)
    done = wltui_here("op", "product", "--from", str(tmp_path / "ops.csv"), "--gpu", "h100")
    assert done.stdout == (
        "# product on h100\n"
        "precision    m    n    k             us  TFLOP/s % of peak  bound\n"
        "bf16       256  128  128          2.992      2.8       0.3  launch\n"
        "fp8       8192 8192 8192        894.726   1228.9      62.1  compute\n"
    )


@pytest.mark.parametrize(
    "content",
    [
        PRODUCTS.replace("\n", "\r\n"),
        PRODUCTS.replace("\n", "\r"),
        "\ufeff\n" + PRODUCTS.replace("\n", "\n\n \n,,,\n"),
        '"gemm_dtype","m","n","k"\n"bfloat16","256","128","128"\n"fp8","8192","8192","8192"',
        " k , ms,m,gemm_dtype,n\n128,1,256, bf16,128\n 8192 ,,8192,fp8,8192\n",
        b"gemm_dtype,note,m,n,k\nbfloat16,\xff\x1b[m,256,128,128\nfp8,,8192,8192,8192\n",
        gzip.compress(PRODUCTS.encode()),
    ],
    ids=[
        "CRLF",
        "CR",
        "byte order mark, blank lines",
        "quoted",
        "other columns",
        "bytes that are no text",
        "gzip",
    ],
)
def test_rows_are_read_however_they_are_written(tmp_path: Path, content: str | bytes) -> None:
    assert rows_of(tmp_path, content) == rows_of(tmp_path, PRODUCTS)


def test_the_column_of_types_wins_and_without_one_precision_counts(tmp_path: Path) -> None:
    found = rows_of(tmp_path, PRODUCTS, "--precision", "fp8_block")
    assert [row["precision"] for row in found] == ["bf16", "fp8"]
    found = rows_of(tmp_path, "m,n,k\n8192,8192,8192\n", "--precision", "fp8_block")
    assert found == operations(*shlex.split("product --m 8192 --n 8192 --k 8192 --precision fp8_block"))


def test_attention_has_the_type_of_attention_not_of_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "ops.csv"
    head = "kv_cache_dtype,attn_dtype,batch_size,isl,num_heads,num_key_value_heads,head_dim\n"
    path.write_text(head + "bfloat16,fp8,1,4096,32,8,128\nfp8,bfloat16,1,4096,32,8,128\n")
    found = operations("attention", "--from", str(path))
    assert [row["precision"] for row in found] == ["fp8", "bf16"]


def test_a_gpu_of_a_file_is_priced(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[gpu]\nbase = "h100"\npeak = 500\n')
    words = shlex.split("op product --m 8192 --n 8192 --k 8192 --json")
    found = json.loads(wltui_here(*words, "--gpu", str(path)).stdout)
    assert found["gpu"] == "mine"
    assert found["operations"][0]["ns"] > 1.5 * operations(*words[1:-1])[0]["ns"]


SIZES = "whole number from 1 to 2^31 - 1"
PRODUCT = ["product", "--m", "8", "--n", "8", "--k", "8"]
REFUSED = [
    ([], "the following arguments are required: OPERATION (see wltui op --help)"),
    (
        ["prodcut"],
        "OPERATION prodcut: one of product, attention, experts is expected; did you mean product?",
    ),
    (["product", "--m", "8"], "product: --n, --k expected, or --from FILE (see wltui op --help)"),
    (["product", "--m", "8", "--n", "8", "--k", "8.0"], f"--k 8.0: a {SIZES} is expected"),
    ([*PRODUCT[:-1], "0"], f"--k 0: a {SIZES} is expected"),
    ([*PRODUCT[:-1], str(MOST + 1)], f"--k 2147483648: a {SIZES} is expected"),
    ([*PRODUCT[:-1], "\u0663"], f"--k \u0663: a {SIZES} is expected"),
    ([*PRODUCT, "--seq", "8"], "--seq: no size of product, which has --m, --n, --k"),
    ([*PRODUCT, "--from", "x.csv"], "--m, --n, --k: the rows of --from have their own, give one of the two"),
    (
        [*PRODUCT, "--precision", "fp8-block"],
        "--precision fp8-block: one of bf16, fp8, fp8_block, mxfp8, nvfp4 is expected; "
        "did you mean fp8_block?",
    ),
    (
        [*PRODUCT, "--precision", "fp8", "--gpu", "a100-80"],
        "--precision fp8: expected bf16, in which a100-80 computes products",
    ),
    (
        [*PRODUCT, "--precision", "nvfp4", "--gpu", "h100"],
        "--precision nvfp4: expected one of bf16, fp8, fp8_block, in which h100 computes products",
    ),
    (
        shlex.split("attention --batch 1 --seq 8 --heads 6 --kv-heads 4 --head-dim 8"),
        "found 4 key-value heads for 6 heads, which they do not divide: 3 would fit",
    ),
    (
        shlex.split("experts --tokens 8 --hidden 8 --ffn 8 --top-k 9 --experts 8"),
        "found 9 experts a token out of 8, expected at most 8",
    ),
    (
        shlex.split("experts --tokens 8 --hidden 8 --ffn 8 --top-k 1 --experts 8 --ep 3"),
        "found ep 3 for 8 experts, which it does not divide: 2 would fit",
    ),
    (
        shlex.split("experts --tokens 8 --hidden 8 --ffn 8 --top-k 1 --experts 8 --tp 16"),
        "found tp 16 for ffn 8, which it does not divide: 8 would fit",
    ),
]


def test_wrong_usage_is_one_line_and_exit_status_2() -> None:
    for words, message in REFUSED:
        done = wltui_here("op", *words)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n"), words


HEAD = "gemm_dtype,m,n,k\n"
COLUMNS = "expected the columns gemm_dtype, m, n, k"
BAD_FILES = [
    ("", f"1: error operations-file found nothing, {COLUMNS} and a row for each operation"),
    (HEAD, f"1: error operations-file found a heading alone, {COLUMNS} and a row for each operation"),
    ("m,n\n1,2\n", f"1: error operations-file found the columns m, n, {COLUMNS}"),
    ("\nm,n,k,m\n", "2: error operations-file found the column m 2 times, expected it once"),
    (
        "dtype,m,n,k\nfp8,1,2,3\n",
        "1: error operations-file found the columns dtype, m, n, k, expected gemm_dtype "
        "beside them, or --precision",
    ),
    (
        HEAD + "bf16,1,2,3\n\nbf16,1,2.0,3\n",
        f"4: error operations-file found 2.0 for n, expected a {SIZES}",
    ),
    (HEAD + "bf16,1,,3\n", f"2: error operations-file found nothing for n, expected a {SIZES}"),
    (HEAD + "bf16,-1,2,3\n", f"2: error operations-file found -1 for m, expected a {SIZES}"),
    (HEAD + "bf16,1,2,1e3\n", f"2: error operations-file found 1e3 for k, expected a {SIZES}"),
    (
        HEAD + "bf16,1,2,9999999999\n",
        f"2: error operations-file found 9999999999 for k, expected a {SIZES}",
    ),
    (HEAD + "bf16,1,2\n", "2: error operations-file found 3 cells, expected 4 as in the heading"),
    (
        HEAD + 'bf16,1,2,"3\n4"\nbf16,1,2,0\n',
        f"2: error operations-file found 3\\x0a4 for k, expected a {SIZES}",
    ),
    (
        HEAD + 'bf16,1,2,"\n3"\nbf16,1,2,0\n',
        f"4: error operations-file found 0 for k, expected a {SIZES}",
    ),
    (
        HEAD + 'bf16,1,2,3\nbf16,1,2,"3\nbf16,1,2,3\n',
        f"3: error operations-file found no CSV (unexpected end of data), {COLUMNS}",
    ),
    (
        HEAD + "nvfp4,1,2,3\n",
        "2: error operations-file found nvfp4 for gemm_dtype, expected one of bf16, fp8, fp8_block, "
        "in which h100 computes products",
    ),
    (
        HEAD + "bf16,1,2,3\n\x1b[31m,1,2,3\n",
        "3: error operations-file found \\x1b[31m for gemm_dtype, expected one of bf16, fp8, fp8_block, "
        "in which h100 computes products",
    ),
]


def test_a_file_that_cannot_be_read_is_one_line_and_exit_status_1(tmp_path: Path) -> None:
    path = tmp_path / "ops.csv"
    for content, message in BAD_FILES:
        path.write_bytes(content.encode())
        done = wltui_here("op", "product", "--from", str(path), "--gpu", "h100")
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{path}:{message}\n"), content


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n\0\0", b"\xff\xfem\0,\0", b"a," * 200_000, b"\0", b'"' * 9]
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ops.csv").write_bytes(content)
    for kind in KINDS:
        with pytest.raises(InputError, match="operations-file found"):
            price_file(find_gpu("h100"), kind, str(tmp_path / "ops.csv"))


def test_rows_take_less_than_eight_times_the_file_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured: 4 times, where the cache of times takes 15 more."""
    text = PRODUCTS
    # The buffers of reading, 1 MB for a file of any size, would hide what the rows take.
    monkeypatch.setattr(opening, "read_file", lambda *_: text.encode())
    # What is kept of the GPU is no part of a row.
    price_file(find_gpu("h100"), "product", "ops.csv")
    rows = (f"bfloat16,{256 * (1 + row % 64)},{128 * (1 + row)},4096" for row in range(1000))
    text = "gemm_dtype,m,n,k\n" + "\n".join(rows)
    tracemalloc.start()
    try:
        priced = price_file(find_gpu("h100"), "product", "ops.csv")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(priced.seconds) == 1000
    assert most < 8 * len(text)


def test_each_gpu_says_what_it_computes_in() -> None:
    assert precisions_of(find_gpu("a100-80"), "product") == ("bf16",)
    assert precisions_of(find_gpu("h100"), "experts") == ("bf16", "fp8", "fp8_block")
    assert precisions_of(find_gpu("b200"), "experts") == ("bf16", "fp8", "fp8_block", "mxfp8", "nvfp4")
    assert precisions_of(find_gpu("b200"), "attention") == ("bf16", "fp8")


@pytest.mark.skipif(not measured.FOLDER.exists(), reason="../shared/validation/ops is not here")
@pytest.mark.parametrize("gpu", measured.GPUS)
@pytest.mark.parametrize("kind", KINDS)
def test_measured_tables_are_answered_row_by_row_near_their_times(
    tmp_path: Path, gpu: str, kind: str
) -> None:
    table = measured.rows_of(gpu, NAMES[kind])[::50]
    if not table:
        assert (gpu, kind) == ("a100-80", "experts")
        return
    path = tmp_path / "ops.csv"
    columns = [column for column in table[0] if column != "ms"]
    lines = [",".join(row[column] for column in columns) for row in table]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    found = operations(kind, "--from", str(path), "--gpu", gpu)
    names = KINDS[kind].columns
    off: dict[str, list[float]] = {}
    for row, one in zip(table, found, strict=True):
        assert [one[name] for name in names] == [int(row[column]) for column in names.values()]
        precision = measured.PRECISIONS[row[KINDS[kind].types]]
        assert one["precision"] == precision
        length = {"product": "m", "attention": "seq", "experts": "tokens"}[kind]
        if one[length] >= measured.LEAST:
            off.setdefault(precision, []).append(abs(one["ns"] / (1e6 * float(row["ms"])) - 1))
    for precision, errors in off.items():
        # Of all rows at most 4.5 %, of experts 6.0; a sample has some 60 of each precision.
        most = 0.08 if kind == "experts" else 0.06
        assert statistics.median(errors) < most, precision


def test_the_command_imports_nothing_of_the_screen() -> None:
    for words in (["op", *PRODUCT], ["op", "--help"]):
        assert loaded(RUN.format(words=words, unwanted=(*UNWANTED, "yaml", "tui.app"))) == []
