"""The reader of `busbw.yaml`: the file as SimAI has it, and every message of a file that does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.compat.simai_busbw import BusbwFile
from simcore.diagnostics import InputError, printable
from tests.findings import findings

INPUTS = Path(__file__).parent / "simai"


def read(folder: Path, text: str) -> BusbwFile:
    path = folder / "b.yaml"
    path.write_text(text, encoding="utf-8")
    return BusbwFile(str(path))


def refused(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    return str(caught.value).replace(str(folder), "")


def told(file: BusbwFile, folder: Path) -> list[str]:
    return [one.text().replace(str(folder), "") for one in file.diagnostics]


@pytest.mark.parametrize("name", ["busbw.yaml", "busbw_docs.yaml", "busbw_fixed.yaml"])
def test_simais_own_files_are_read_as_they_are(name: str) -> None:
    file = BusbwFile(str(INPUTS / name))
    assert file.diagnostics == ()
    assert [file.get(f"TP.{key}") for key in ("allreduce", "allgather", "reducescatter", "alltoall")] == [
        300, 280, 280, 230,
    ]  # fmt: skip
    assert (file.get("EP.allgather"), file.get("EP.alltoall")) == (45, 80)
    assert file.get("DP.allreduce") == (380 if "fixed" in name else None)
    assert file.get("PP.busbw") == (None if "docs" in name else 47.5)


def test_commas_blanks_comments_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    plain = "t\nTP:\nallreduce: 300\nPP:\nbusbw: 47.5\n"
    odd = "t\r\n  TP :   # tensor\r\n\r\n\tallreduce , :  300 ,  # GiB/s\r\nPP:\r\n busbw,: 4.75e1"
    for text in (plain, odd):
        file = read(tmp_path, text)
        assert (file.get("TP.allreduce"), file.get("PP.busbw")) == (300, 47.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t\nTP:\nallreduce,: fast\n", "/b.yaml:3:13: error busbw-file found `fast` for TP.allreduce, "
         "expected a number from 1e-6 to 1e9 (GiB/s) or null"),
        ("t\nTP:\n  allreduce,:  0\n", "/b.yaml:3:16: error busbw-file found `0` for TP.allreduce, expected "
         "a number from 1e-6 to 1e9 (GiB/s) or null"),
        ("t\nTP:\nallreduce\n", "/b.yaml:3:1: error busbw-file found `allreduce`, expected a section "
         "(TP, DP, EP, PP) or KEY: GIBPS"),
        ("t\nallreduce,: 300\n", "/b.yaml:2:1: error busbw-file found `allreduce` before any section, "
         "expected one of TP, DP, EP, PP"),
        ("t\nTP: {allreduce: 300}\n", "/b.yaml:2:5: error busbw-file found `{allreduce: 300}` after TP:, "
         "expected its entries below it"),
        ("title\n", "/b.yaml:1:1: error busbw-file found no section, expected TP, DP, EP, PP after a title"),
        ("", "/b.yaml:1:1: error busbw-file found no section, expected TP, DP, EP, PP after a title"),
        ("t\nTP:\n\x1b[2J: 1\nx\n", "/b.yaml:4:1: error busbw-file found `x`, expected a section "
         "(TP, DP, EP, PP) or KEY: GIBPS"),
        ("t\n\x1b[2J\n", "/b.yaml:2:1: error busbw-file found `\\x1b[2J`, expected a section "
         "(TP, DP, EP, PP) or KEY: GIBPS"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_at_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text) == message


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="unreadable-file the file cannot be read: No such file or directory"
    ):
        BusbwFile(str(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match="not-a-cluster-file found a directory, expected a file"):
        BusbwFile(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t\nTP:\nallreduce,: null\n", "/b.yaml:3:1: error busbw-missing found null for TP.allreduce, "
         "expected its bandwidth in GiB/s: it is needed"),
        ("t\nTP:\nallreduce,:\n", "/b.yaml:3:1: error busbw-missing found null for TP.allreduce, "
         "expected its bandwidth in GiB/s: it is needed"),
        ("t\nDP:\nTP:\n", "/b.yaml:3:1: error busbw-missing found no TP.allreduce, expected "
         "its bandwidth in GiB/s: it is needed"),
        ("t\nDP:\n", "/b.yaml: error busbw-missing found no TP.allreduce, expected "
         "its bandwidth in GiB/s: it is needed"),
    ],
)  # fmt: skip
def test_a_missing_entry_is_named_when_it_is_needed(tmp_path: Path, text: str, message: str) -> None:
    file = read(tmp_path, text)
    assert file.get("TP.allreduce") is None
    with pytest.raises(InputError) as caught:
        file.require("TP.allreduce", "it is needed")
    assert str(caught.value).replace(str(tmp_path), "") == message


def test_what_means_nothing_is_said(tmp_path: Path) -> None:
    file = read(
        tmp_path, "TP:\nallreduce: 1\nallreduce: 2\nlatency: 3\nallgather: 4\nreducescatter: 5\nCP:\nx: 6\n"
    )
    assert findings(told(file, tmp_path)) == [
        "/b.yaml:1:1: warning busbw-title `TP:`, 1",
        "/b.yaml:3:1: warning busbw-repeated TP.allreduce, 2",
        "/b.yaml:4:1: note cluster-key-ignored `TP.latency`",
        "/b.yaml:7:1: note cluster-key-ignored `CP`",
        "/b.yaml:6:1: note cluster-key-ignored TP.reducescatter, TP.allgather",
    ]
    assert file.get("TP.allreduce") == 2


@given(
    st.text(st.sampled_from("TDEP:, \n#allreducegthsbw0123.null-~{}\t\x1b\"'"), max_size=80)
    | st.text(max_size=40)
)
def test_any_text_is_read_or_refused_in_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "b.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        found = [one.text() for one in BusbwFile(str(path)).diagnostics]
    except InputError as error:
        found = [str(error)]
    assert all(line == printable(line, 10**6) for line in found)
