"""The form from outside: from a scrubbing key to the picture with the new step time, and ten keys at once.

Drives the real program in the pseudo-terminal of `terminal.py`, on seed 002: with one change, and with
two others in place, whose effects alone are simulated behind the picture; and on a model, GPT-3 175B on 1,024
GPUs in 8 stages with 96 micro-batches, whose rows, times and memory are made anew at each key.

Usage: python benchmarks/scrubbing.py [ROUNDS] [--write]; --write puts the table into benchmarks/README.md.
Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pyte

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import SEED_002, WLTUI, Table, finished, number_of
from benchmarks.terminal import COLUMNS, QUESTION, ROWS, Terminal

CHANGE_MS = 300.0
BURST = 10
_FORM = ("--screen", "parameters", "--no-session")
_MODEL = (
    "gpt-3-175b", "--gpu", "h100", "--world", "1024", "--tp", "8", "--pp", "8", "--global-batch", "1536",
    "--seq", "2048",
)  # fmt: skip


class Scrubbed(NamedTuple):
    """A field that is scrubbed: the words that open it, the keys to it, its label, and where it begins."""

    words: tuple[str, ...]
    keys: str
    label: str
    begin: int


# The others put a schedule and twice the bandwidth between servers.
RUNS = {
    "one change": Scrubbed((SEED_002,), "jjjjjj", "microbatches", 16),
    "two others": Scrubbed((SEED_002,), "jjjjjll" + "j" * 13 + ">" + "k" * 12, "microbatches", 16),
    "a model": Scrubbed(_MODEL, "j" * 9, "seq", 2048),
}
_STEP = re.compile(r"step (\d[\d.]* \w+)")


class Form:
    """The form in a terminal, its cursor on the field that is scrubbed."""

    def __init__(self, scrubbed: Scrubbed) -> None:
        self.terminal = Terminal((*WLTUI, *scrubbed.words, *_FORM))
        self._value = re.compile(rf"{scrubbed.label} +< (\d+) >")
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._fed = 0
        self.terminal.read_first(60.0)
        for key in scrubbed.keys:
            self.terminal.press(key)
            # What the change sets off behind the picture.
            self.terminal.read(0.5)
        self.feed()

    def feed(self) -> list[tuple[float, str, int]]:
        """(seconds since the keys, step time shown, value shown) after each piece that came."""
        found = []
        for seconds, data in self.terminal.chunks[self._fed :]:
            self._stream.feed(data.replace(QUESTION, b""))
            text = "\n".join(self._screen.display)
            value, step = self._value.search(text), _STEP.search(text)
            # The old step stays until the new run is there; beside it stands that one simulates.
            if value and step and "simulating" not in text:
                found.append((seconds, step[1], int(value[1])))
        self._fed = len(self.terminal.chunks)
        return found

    def press(self, keys: str) -> tuple[float, int]:
        """(seconds until the step time of the last value is shown, that value)."""
        self.terminal.begun = time.perf_counter()
        os.write(self.terminal.master, keys.encode())
        until = time.perf_counter() + 5
        seen: list[tuple[float, str, int]] = []
        while time.perf_counter() < until:
            answer = self.terminal.read(0.6)
            seen += self.feed()
            if not answer.sent:
                break
        if not seen:
            raise SystemExit(f"no new step time within 5 s of {keys}")
        _, step, value = seen[-1]
        return next(seconds for seconds, *shown in seen if shown == [step, value]), value


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    rounds = int(number_of(words, 10))
    table = Table(f"{rounds} rounds")
    table.add(f"{'':<24}   median  slowest   budget {CHANGE_MS:.0f} ms")
    for name, scrubbed in RUNS.items():
        form = Form(scrubbed)
        for title, keys in (("a key", "l"), (f"{BURST} keys at once", "l" * BURST)):
            times, counted = [], []
            for _ in range(rounds):
                seconds, value = form.press(keys)
                times.append(seconds * 1000)
                counted.append(value - scrubbed.begin)
                form.press("\x7f")
            line = f"{name}, {title:<16} {statistics.median(times):6.0f} ms {max(times):5.0f} ms"
            table.add(f"{line}   keys that counted: {min(counted)} of {len(keys)}")
            table.judge(f"{name}, {title}, median ms", statistics.median(times), CHANGE_MS)
            table.judge(f"{name}, {title}, keys lost", len(keys) - min(counted), 0)
        form.terminal.end()
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
