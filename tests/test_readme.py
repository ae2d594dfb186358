"""The Python blocks of the README run, its links lead somewhere, and it is short."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)
LINKS = re.findall(r"\]\(([^)]+)\)", TEXT)


def test_the_readme_has_examples():
    assert len(BLOCKS) >= 2


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 150


def test_links_lead_somewhere():
    assert len(LINKS) >= 10
    assert [link for link in LINKS if not (README.parent / link).exists()] == []


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_block_runs(block, capsys):
    setup = "from sklearn_pnl import PNLSampler\n"
    exec(compile(setup + block, "README.md", "exec"), {})
    if "print(" in block:
        assert capsys.readouterr().out
