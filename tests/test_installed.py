"""What is built and installed: all of the program, nothing of the tests, and nothing is left of it.

No index is asked: the build back end and pip are those beside the tests. Seen to fail: without
`force-include` the example, with `packages = ["simcore", "tui", "tests"]` the list, with a wheel
built from a distribution whose `include` lacks `fixtures`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from simcore import __version__
from simcore.model.toml_text import parse_toml
from tests.command_line.running import OLD_HEADER, ROOT, SEED_002, Done, environment, process, wltui_here

EXAMPLE = "tui/example/002_gpt_1024npu.txt"
DATA = {
    EXAMPLE,
    "simcore/__init__.pyi",
    "simcore/api/keywords.pyi",
    "simcore/py.typed",
    "simcore/model/gpus.toml",
    "simcore/model/operations/attention.toml",
    "simcore/model/operations/experts.csv",
    "simcore/model/operations/experts.toml",
    "simcore/model/operations/products.toml",
    "simcore/model/operations/servers.toml",
    "simcore/model/published.csv",
    "simcore/compat/simai_ratio.csv",
    "simcore/render/page/page.css",
    "simcore/render/page/page.js",
}
# Where the shells and `man` look below the prefix: put there by the wheel.
SHELL = {
    f"wltui-{__version__}.data/data/share/{name}"
    for name in ("man/man1/wltui.1", "bash-completion/completions/wltui", "zsh/site-functions/_wltui")
}


FIRST_LINES = """\
import simcore as wl
print(wl.__file__)
run  = wl.load("workload.txt").run()
slow = run.with_(bandwidth={"tp": 0.5})          # factors, by group or dimension; every flag has its keyword
print(slow.step_time_ns, slow.critical_path.by("kind"), slow.accounts(), sep="\\n")
slow.spans(rank=0).to_pandas()
print(wl.compare(run, slow).reasons)
print(len(wl.sweep("workload.txt", tp=[1, 2, 4, 8]).to_pandas()))
"""


def needs(module: str) -> None:
    """Skips where a module of the tests is not installed."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def built(folder: Path, source: Path, kind: str) -> Path:
    """A wheel or a source distribution of a folder."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = process(["sh", "-c", 'cd "$1" && shift && exec "$@"', "-", str(source), *words])
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


def program() -> set[str]:
    """All files that make the program run, as they are installed."""
    modules = {
        str(path.relative_to(ROOT)) for room in ("simcore", "tui") for path in (ROOT / room).rglob("*.py")
    }
    return modules | DATA | SHELL


def content(wheel: Path) -> set[str]:
    """The files of a wheel without those that say what it is."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_a_wheel_holds_the_program_and_its_data_runs_anywhere_and_goes_without_a_trace(
    tmp_path: Path,
) -> None:
    needs("hatchling")
    needs("pip")
    wheel = built(tmp_path / "dist", ROOT, "wheel")
    assert wheel.name == f"wltui-{__version__}-py3-none-any.whl"
    assert content(wheel) == program()
    # 2.19 MB in November 2026: with configurations of 80 families, hung jobs, flows, snapshots and inference.
    assert wheel.stat().st_size < 2.3 * 10**6

    home = tmp_path / "home"
    venv.create(home, symlinks=True)
    # All that a report needs beside the standard library.
    (site,) = home.glob("lib/python*/site-packages")
    records = importlib.util.find_spec("msgspec")
    assert records is not None
    assert records.origin is not None
    (site / "msgspec").symlink_to(Path(records.origin).parent)
    before = files(home)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(home / "bin" / "python"),
        "--disable-pip-version-check",
    ]
    # Python compiles what is used: 2 s less than all of it here.
    flags = ["--quiet", "--no-deps", "--no-index", "--no-compile"]
    done = process([*pip, "install", *flags, str(wheel)], quiet())
    assert done.returncode == 0, done.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def installed(words: str) -> Done:
        # As a user has it: bytecode is written where it can be.
        return process(
            ["sh", "-c", f'cd "$1" && "$2"/bin/wltui {words}', "-", str(elsewhere), str(home)], quiet()
        )

    assert installed("--version").stdout == f"wltui {__version__}\n"
    assert installed("<&-").stdout == wltui_here("report", SEED_002).stdout.replace(
        SEED_002, str(next(home.glob(f"lib/python*/site-packages/{EXAMPLE}")))
    )
    assert installed(f"report {ROOT / OLD_HEADER} --network simai-auto").returncode == 0
    assert list(elsewhere.iterdir()) == []

    # The first lines of docs/python.md, with the pandas of the tests, from the wheel alone.
    environment_of_tests = quiet() | {"PYTHONPATH": str(Path(records.origin).parents[1])}
    lines = FIRST_LINES.replace("workload.txt", str(ROOT / OLD_HEADER))
    words = ["sh", "-c", 'cd "$1" && "$2" -c "$3"', "-", str(elsewhere), str(home / "bin" / "python"), lines]
    done = process(words, environment_of_tests)
    assert done.returncode == 0, done.stderr
    where, step, *_, points = done.stdout.splitlines()
    assert where.startswith(str(home))
    assert int(step) > 0
    assert points == "4"

    done = process([*pip, "uninstall", "--quiet", "--yes", "wltui"], quiet())
    assert done.returncode == 0, done.stderr
    assert files(home) == before


def quiet() -> dict[str, str]:
    """The environment of a user who has the rest of the program's packages elsewhere, or not at all."""
    return {name: value for name, value in environment().items() if not name.startswith("PIP_")}


def files(folder: Path) -> set[str]:
    """All that is in a folder, however deep."""
    return {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}


def test_a_wheel_has_what_is_committed_alone(tmp_path: Path) -> None:
    needs("hatchling")
    if not (ROOT / ".git").exists() or shutil.which("make") is None:
        pytest.skip("this is no checkout with make")
    folder = tmp_path / "clone"
    assert process(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder)]).returncode == 0
    (folder / "simcore" / "notes_of_mine.py").write_text("secret = 1")
    done = process(
        ["make", "-C", str(folder), "wheel", f"BIN={Path(sys.executable).parent}", "-o", ".venv/.stamp-test"]
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    files = content(wheel)
    assert "simcore/notes_of_mine.py" not in files
    assert "simcore/__init__.py" in files


def test_the_bill_of_materials_has_what_is_imported() -> None:
    needs("packaging")
    done = process([sys.executable, str(ROOT / "docs" / "sbom.py")])
    if done.returncode:
        pytest.skip(f"a checkout that is not installed: {done.stderr}")
    bill = json.loads(done.stdout)
    assert {"msgspec", "textual", "rich", "pyyaml"} <= {one["name"] for one in bill["components"]}
    assert all(one["version"] and one["purl"] for one in bill["components"])


def test_a_source_distribution_has_what_make_test_needs_and_makes_the_same_wheel(tmp_path: Path) -> None:
    needs("hatchling")
    source = built(tmp_path / "dist", ROOT, "sdist")
    assert source.name == f"wltui-{__version__}.tar.gz"
    folder = tmp_path / f"wltui-{__version__}"
    with tarfile.open(source) as archive:
        names = archive.getnames()
        there = {name.split("/")[1] for name in names}
        # Most of it, and no part of a wheel.
        left = tuple(f"{folder.name}/{name}/" for name in ("tests", "docs", "benchmarks"))
        members = [one for one in archive.getmembers() if not one.name.startswith(left)]
        if sys.version_info >= (3, 12):
            archive.extractall(tmp_path, members, filter="data")
        else:
            archive.extractall(tmp_path, members)
    assert there >= {
        "simcore", "tui", "tests", "fixtures", "docs", "benchmarks", "pyproject.toml", "constraints.txt",
        "requirements",
        "Makefile", "README.md", "CHANGELOG.md", "LICENSE",
    }  # fmt: skip
    assert not [name for name in names if name.endswith(".pyc")]
    assert content(built(tmp_path / "wheel", folder, "wheel")) == program()


def _pins(path: str) -> dict[str, dict[str, int]]:
    """By package its versions in a file of requirements, each with how many hashes it has."""
    text = (ROOT / path).read_text(encoding="utf-8").replace("\\\n", " ")
    pins: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        if (match := re.match(r"([\w.-]+)==([^\s;]+)", line)) is not None:
            name = re.sub(r"[-_.]+", "-", match[1]).lower()
            pins.setdefault(name, {})[match[2]] = line.count("--hash=sha256:")
    return pins


@pytest.mark.parametrize(("path", "extra"), [("requirements/run.txt", ""), ("requirements/test.txt", "test")])
def test_what_make_installs_is_all_that_is_needed_with_hashes_and_the_versions_that_were_chosen(
    path: str, extra: str
) -> None:
    needs("packaging")
    from packaging.requirements import Requirement

    project = parse_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "the project")
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += project["project"]["optional-dependencies"][extra] if extra else []
    pins, chosen = _pins(path), _pins("constraints.txt")
    for requirement in map(Requirement, wanted):
        versions = pins[re.sub(r"[-_.]+", "-", requirement.name).lower()]
        assert all(requirement.specifier.contains(version) for version in versions), requirement
    assert all(hashes for versions in pins.values() for hashes in versions.values())
    # Some are of other systems alone: nobody has chosen their version.
    assert {
        name: versions.keys() - chosen[name].keys() for name, versions in pins.items() if name in chosen
    } == {name: set() for name in pins if name in chosen}
