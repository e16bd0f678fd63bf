"""Names that were handed to us: the gate of what is printed, and words of a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from simcore.shell_words import join_words, quote_word, split_words
from tests.hostile.names import HANDED
from tests.hostile.running import UNSAFE
from tui.cli import guarded
from tui.printing import Controls, shown_text


def test_a_command_that_forgets_a_name_prints_nothing_raw(capsys: pytest.CaptureFixture[str]) -> None:
    def careless(words: list[str]) -> int:
        for name in HANDED:
            print(name)
            print("of", name, file=sys.stderr)
            sys.stdout.writelines([name, "\n"])
            print(Controls(f"\r{name}\x1b[K"), end="")
        return 0

    before = sys.stdout, sys.stderr
    assert guarded(careless, []) == 0
    assert (sys.stdout, sys.stderr) == before
    done = capsys.readouterr()
    # Line ends are a command's own; of controls those alone that `Controls` may have.
    assert set(UNSAFE.findall(done.out)) <= {"\r", "\x1b"}
    assert done.out.count("\x1b") == len(HANDED) + done.out.count("\x1b[31m")
    assert UNSAFE.findall(done.err) == []


def test_what_is_shown_stays_as_it_is() -> None:
    for text in ("a b\n", "\u2588\u2500 12 %\n", "\u65e5\u672c\u8a9e", "\u00e9\u0301"):
        assert shown_text(text) == text


@pytest.mark.parametrize("name", HANDED, ids=range(len(HANDED)))
def test_a_shell_takes_a_name_as_it_is_and_shows_nothing_raw(name: str) -> None:
    quoted = quote_word(name)
    assert UNSAFE.findall(quoted) == []
    assert split_words(join_words(["wltui", name, "x y"])) == ["wltui", name, "x y"]
    if quoted.isascii() and "$'" not in quoted:
        assert shlex.split(quoted) == [name]
    if "\0" not in name and len(name) < 10_000:
        printed = subprocess.run(["bash", "-c", f"printf %s {quoted}"], stdout=subprocess.PIPE, check=True)
        assert printed.stdout == os.fsencode(name)
