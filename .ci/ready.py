"""Stop a release that is not ready: ``python .ci/ready.py v1.2.3``.

A release is ready if the tag is the version in ``pyproject.toml``, the changelog has a
dated section for the version, and ``pyproject.toml`` contains no placeholder.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "OWNER"


def lacking(tag, project, changelog):
    """Return sentences that state why a tag cannot be released."""
    version = project["version"]
    if tag != f"v{version}":
        yield f"The tag {tag} differs from the version {version} in pyproject.toml."
    dated = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$"
    if not re.search(dated, changelog, re.M):
        yield f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'."
    for path, text in _texts(project, "project"):
        if PLACEHOLDER in text:
            yield f"{path} contains the placeholder {PLACEHOLDER}."


def _texts(value, path):
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, f"{path}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, path)
    else:
        yield path, str(value)


def main(tag):
    """Print the reasons against a release, and exit with status 1 if there are any."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sys.exit("\n".join(lacking(tag, project, changelog)) or 0)


if __name__ == "__main__":
    main(sys.argv[1])
