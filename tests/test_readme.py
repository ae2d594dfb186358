"""The README has examples, and is short; the rest is tested with the other pages."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_examples():
    assert len(re.findall(r"^```python$", TEXT, re.M)) >= 2
    assert 'pip install -e ".[tests]" && pytest' in TEXT
    assert "Codes.paper(" in TEXT


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 130
