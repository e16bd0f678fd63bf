"""docs/semantics.md: each reading of a rule is a test of that name."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")


def readings() -> list[str]:
    """The first sentence of each bullet under `Readings of the rules`."""
    section = PAGE[PAGE.index("## Readings of the rules") :]
    bullets = re.findall(r"^\* (.+(?:\n  .+)*)", section, re.MULTILINE)
    return [re.split(r"\.\s|\.$", bullet)[0] for bullet in bullets]


def test_each_reading_is_a_test_of_that_name() -> None:
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    found = readings()
    assert len(found) > 75
    for sentence in found:
        words = re.findall(r"\w+", sentence.lower().replace("'", ""))
        assert "test_" + "_".join(words) in tests, sentence


def test_the_page_stands_alone() -> None:
    for word in ("SPEC", "ORACLES", "FORMATS", "shared/"):
        assert word not in PAGE
    for link in re.findall(r"\]\(([^)]+)\)", PAGE):
        file, _, heading = link.partition("#")
        text = (ROOT / "docs" / file).read_text(encoding="utf-8") if file else PAGE
        headings = [words.lower().replace(" ", "-") for words in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
        assert not heading or heading in headings
