"""The README has an example, its links lead somewhere, and it is short.

Its blocks are run with those of the other pages.
"""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
LINKS = re.findall(r"\]\(([^)]+)\)", TEXT)


def test_the_readme_has_examples():
    assert len(re.findall(r"^```python$", TEXT, re.M)) >= 2


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_links_lead_somewhere():
    assert len(LINKS) >= 10
    assert [link for link in LINKS if not (README.parent / link).exists()] == []
