"""Check what the README shows; its code is tested with the other pages."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_examples():
    assert len(re.findall(r"^```python$", TEXT, re.M)) >= 2
    assert "pip install ." in TEXT and 'pip install -e ".[tests]" && pytest' in TEXT
    assert "pnlsampler__order" in TEXT and "pnlsampler__k_neighbors" in TEXT


def test_the_first_screen_states_when_not_to_use_the_package():
    first_screen = "\n".join(TEXT.splitlines()[:50])
    assert "do not over-sample" in first_screen
    assert "docs/when_to_oversample.md" in first_screen
