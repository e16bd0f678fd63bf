"""docs/diagnostics.md explains every code that a cluster file can give."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_code_of_the_room_is_explained() -> None:
    files = (ROOT / "simcore" / "cluster" / "files").glob("*.py")
    source = "\n".join(path.read_text() for path in files)
    given = set(re.findall(r'_CODE = "([a-z0-9-]+)"', source))
    given |= set(re.findall(r'"(?:error|warning|note)", "([a-z0-9-]+)"', source))
    given |= set(re.findall(r'refusal\("([a-z0-9-]+)"', source))
    explained = set(
        re.findall(r"^\| `([a-z0-9-]+)`", (ROOT / "docs" / "diagnostics.md").read_text(), re.MULTILINE)
    )
    assert {"network-yml", "not-a-cluster-file", "cluster-key-ignored", "no-such-file"} <= given
    assert given <= explained
