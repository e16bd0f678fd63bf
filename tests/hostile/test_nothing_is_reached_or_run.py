"""No answer of the program reaches for the network, runs a program or code of a file, or writes elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.command_line.running import environment, process
from tests.hostile.names import NASTY, traces, workload
from tests.tui.pseudo_terminal import Terminal


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """(a workload, another of the same layers, a measured run)."""
    folder = tmp_path_factory.mktemp("watched")
    return workload(folder), workload(folder, 6000), traces(folder)


COMMANDS = [
    "--help", "--version", "keys", "check A T", "report A --json --what-if", "report T", "compare A B",
    "compare A T", "calibrate A T", "A --snapshot 2", "T --snapshot 3", "A --against T --snapshot j",
    "export A --format chrome -o -", "report A --cluster YAML", "report A --params TOML",
    *(f"export A --format {form} -o OUT/{form}" for form in ("simai", "chrome", "csv")),
]  # fmt: skip


def test_commands_reach_and_run_nothing_and_write_where_they_are_told_alone(
    files: tuple[str, str, str], tmp_path: Path
) -> None:
    yaml, toml, out = tmp_path / "n.yml", tmp_path / "p.toml", tmp_path / "out"
    yaml.write_text(f'topology: !!python/object/apply:os.system [ "{NASTY["shell"]}" ]\nnpus_count: [ 2 ]\n')
    toml.write_text(f'schedule = "{NASTY["shell"]}"\n')
    out.mkdir()
    paths = dict(zip("ABT", files, strict=True)) | {"YAML": str(yaml), "TOML": str(toml)}
    words = [paths.get(word, word).replace("OUT", str(out)) for word in " ; ".join(COMMANDS).split()]
    done = process(
        [sys.executable, "-m", "tests.hostile.watched", *words], environment(WATCHED_FOLDER=str(out))
    )
    assert "forbidden" not in done.stderr
    # Two files are refused.
    refused = [
        line.partition(": error ")[2].split()[0] for line in done.stderr.splitlines() if ": error " in line
    ]
    assert (done.returncode, refused) == (1, ["network-yml", "parameters-file"])
    assert sorted(os.listdir(out)) == ["chrome", "csv", "simai"]
    assert not os.path.exists("owned")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", [0, 2])
def test_the_screen_reaches_and_runs_nothing_and_writes_its_session_alone(
    files: tuple[str, str, str], tmp_path: Path, place: int
) -> None:
    words = [sys.executable, "-m", "tests.hostile.watched", files[place]]
    env = {"XDG_STATE_HOME": str(tmp_path), "WATCHED_FOLDER": str(tmp_path)}
    with Terminal(words, env=env) as terminal:
        terminal.wait_for("[1 Summary]")
        for keys, words_there in (
            ("2", "[2 Timeline]"),
            ("3", "[3 Layers]"),
            ("4", "[4 Why]"),
            ("5", "[5 Par"),
        ):
            terminal.press(keys)
            terminal.wait_for(words_there)
        # The command is longer than a row.
        terminal.press("y")
        terminal.wait_for("The command line of this run")
        terminal.press("\x1b")
        terminal.wait_for("[5 Par")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert b"forbidden" not in terminal.raw
    assert os.listdir(tmp_path) == ["wltui"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import socket; socket.socket(socket.AF_INET)", "a socket"),
        ("import socket; socket.getaddrinfo('localhost', 1)", "socket.getaddrinfo"),
        ("import os; os.system('true')", "os.system"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("exec('x = \"touch${IFS}owned\"')", "code of a file"),
        ("open('owned', 'w')", "writing 'owned'"),
    ],
)
def test_the_watch_sees_what_it_is_for(code: str, said: str) -> None:
    words = f"import sys; from tests.hostile.watched import watch; sys.addaudithook(watch); {code}"
    # The words of -c are compiled before the hook is there.
    done = process([sys.executable, "-c", words])
    assert (done.returncode, said in done.stderr) == (77, True)
    assert not os.path.exists("owned")
