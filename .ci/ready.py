"""Check that a release is ready: ``python .ci/ready.py v1.2.3``.

The tag must equal the version in ``pyproject.toml``, the changelog must have a dated
section for the version, and ``pyproject.toml`` and the README must contain no
placeholder.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACEHOLDER = "OWNER"


def lacking(tag, project, changelog, readme):
    """Yield the reasons why a tag cannot be released."""
    version = project["version"]
    if tag != f"v{version}":
        yield (
            f"The tag is {tag}, but the version in pyproject.toml is {version}. Set "
            f"the version, or create the tag v{version}."
        )
    dated = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$"
    if not re.search(dated, changelog, re.M):
        yield (
            f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'. Add the section."
        )
    metadata = _texts(project, "pyproject.toml: project")
    for path, text in (*metadata, ("README.md", readme)):
        if PLACEHOLDER in text:
            yield (
                f"{path} contains the placeholder {PLACEHOLDER}. "
                "Replace it by the owner of the repository."
            )


def _texts(value, path):
    """Yield the path and the text of each value of a nested project table."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, f"{path}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, path)
    else:
        yield path, str(value)


def main(tag):
    """Print the reasons against the release, and exit with an error if any exist."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    changelog, readme = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("CHANGELOG.md", "README.md")
    )
    sys.exit("\n".join(lacking(tag, project, changelog, readme)) or 0)


if __name__ == "__main__":
    main(sys.argv[1])
