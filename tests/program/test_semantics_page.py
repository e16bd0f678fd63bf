"""docs/semantics.md: each reading of a rule is a test of that name."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")


def readings() -> list[tuple[str, str]]:
    """(first sentence, test name) of each bullet under `Readings of the rules`."""
    section = PAGE[PAGE.index("## Readings of the rules") :]
    bullets = re.findall(r"^\* (.+?)`(test_\w+)`", section, re.MULTILINE | re.DOTALL)
    assert len(bullets) == len(re.findall(r"^\* ", section, re.MULTILINE))
    return [(re.split(r"\.\s", bullet)[0], name) for bullet, name in bullets]


def test_each_reading_is_a_test_of_that_name() -> None:
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    found = readings()
    assert len(found) > 25
    for sentence, name in found:
        words = re.findall(r"\w+", sentence.lower().replace("'", ""))
        assert name == "test_" + "_".join(words), sentence
        assert name in tests, name


def test_the_page_stands_alone() -> None:
    for word in ("SPEC", "ORACLES", "FORMATS", "shared/"):
        assert word not in PAGE
    for link in re.findall(r"\]\(([^)]+)\)", PAGE):
        file, _, heading = link.partition("#")
        text = (ROOT / "docs" / file).read_text(encoding="utf-8") if file else PAGE
        headings = [words.lower().replace(" ", "-") for words in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
        assert not heading or heading in headings
