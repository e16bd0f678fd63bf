"""The bill of materials of what `pip install wltui` brings here: CycloneDX 1.5, as JSON.

Usage: python docs/sbom.py [EXTRA ...] > sbom.json; with extras also what they bring. Names, versions and
licences are those of the installed packages: no index is asked.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement

ROOT = "wltui"


def name_of(package: str) -> str:
    """Returns the name of a package as indices compare it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def installed(extras: set[str]) -> dict[str, Distribution]:
    """Returns the packages that wltui needs here, itself first, by name. Raises PackageNotFoundError."""
    found: dict[str, Distribution] = {}
    pending = [(ROOT, extras)]
    seen = set()
    while pending:
        name, some = pending.pop(0)
        if (name, frozenset(some)) in seen:
            continue
        seen.add((name, frozenset(some)))
        found[name] = distribution(name)
        for requirement in map(Requirement, found[name].requires or ()):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *some)):
                pending.append((name_of(requirement.name), requirement.extras))
    return found


def component(name: str, package: Distribution) -> dict[str, Any]:
    """Returns what the bill states of a package."""
    licence = package.metadata.get("License-Expression") or package.metadata.get("License")
    stated = licence if licence and "\n" not in licence else "not stated in one line"
    return {
        "type": "application" if name == ROOT else "library", "name": name, "version": package.version,
        "purl": f"pkg:pypi/{name}@{package.version}", "bom-ref": name,
        "licenses": [{"license": {"name": stated}}],
    }  # fmt: skip


def bill(extras: set[str]) -> dict[str, Any]:
    """Returns the bill of materials."""
    own, *others = (component(name, package) for name, package in installed(extras).items())
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own},
        "components": sorted(others, key=lambda one: one["name"]),
    }  # fmt: skip


def main(extras: list[str]) -> int:
    """Prints the bill; status 1 where a package that is needed is not installed."""
    try:
        print(json.dumps(bill(set(extras)), indent=1))
    except PackageNotFoundError as error:
        print(f"{error.name} is not installed", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
