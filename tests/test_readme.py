"""The Python blocks of the README run, one after the other."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def test_the_readme_has_examples():
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_block_runs(block, capsys):
    setup = "from sklearn_pnl import PNLSampler\n"
    exec(compile(setup + block, "README.md", "exec"), {})
    if "print(" in block:
        assert capsys.readouterr().out
