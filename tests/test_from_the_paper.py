"""The page from the paper to the code names existing objects."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "from_the_paper.md"
TEXT = PAGE.read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(sklearn_pnl(?:\.\w+)+)`", TEXT)))
NUMBERED = [
    "Remark 3.1", "Remark 3.2", "Example 4.1", "Remark 4.2", "Remark 4.3",
    "equation 1", "equation 2", "equation 3", "Example A.1", "Algorithm 1",
    "Algorithm 2", "Remark C.1", "footnote",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_named_objects_exist(name):
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        break
    for attribute in parts[n:]:
        found = getattr(found, attribute)
    assert found.__doc__


def test_page_covers_all_numbered_statements_of_the_paper():
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| ")]
    first = " ".join(rows)
    assert [name for name in NUMBERED if name not in first] == []
