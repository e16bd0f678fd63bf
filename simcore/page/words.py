"""The words of a page that not every reader knows, each in a line: those that stand on it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from simcore.page.blocks import element

# As docs/vocabulary.md has them, in few words.
WORDS = {
    "tp": "tensor parallelism: ranks that share each layer",
    "dp": "data parallelism: ranks that have the same layers and other data",
    "pp": "pipeline parallelism: ranks that have other layers, the stages",
    "ep": "expert parallelism: ranks that share the experts of a layer",
    "cp": "context parallelism: ranks that share each sequence",
    "fwd": "forward",
    "ig": "the part of backward that makes input gradients",
    "wg": "the part of backward that makes weight gradients",
    "opt": "optimizer",
    "exposed": "communication for which compute stands still",
    "wait": "for the last member of a collective",
    "bubble": "a stage waits for what a neighbouring stage has not sent yet",
    "idle": "nothing runs on a rank: it is done; measured, also before its first operation and between two",
    "critical": "on the critical path: a chain of ops over all ranks, each waiting for the one before",
    "slack": "by how much longer something may take before the step is longer",
    "algbw": "bytes of a collective over its time",
    "busbw": "the same in bytes that cross the network, as nccl-tests count them",
    "mbs": "sequences of a micro-batch",
    "batch": "sequences of a step, of all replicas",
}  # fmt: skip
_WORD = re.compile(r"[a-z]+")


def words_section(parts: Iterable[str]) -> str:
    """The words that stand in some of these elements; "" of none."""
    there = set(_WORD.findall(re.sub(r"<script.*?</script>|<[^>]*>", " ", " ".join(parts), flags=re.DOTALL)))
    rows = [f"{element('dt', word)}{element('dd', text)}" for word, text in WORDS.items() if word in there]
    if not rows:
        return ""
    body = "\n".join(rows)
    return f'<section id="words" class="facts"><h2>Words of this page</h2><dl>\n{body}\n</dl></section>'
