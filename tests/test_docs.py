"""The Python blocks of the pages run, those of a page one after the other."""

import ast
import re
from pathlib import Path

import pytest

import sklearn_pnl

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [p for p in sorted([*DOCS.glob("*.md"), *DOCS.glob("guide/*.md")])
         if "```python" in p.read_text(encoding="utf-8")]  # fmt: skip


def test_there_are_pages():
    assert len(PAGES) >= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())
def test_blocks_run(page, capsys):
    text, names = page.read_text(encoding="utf-8"), {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, page.name, "exec"), names)
        if "print(" in block:
            assert capsys.readouterr().out


def messages():
    """Texts in the sources, with dots for what is filled in."""
    for path in (DOCS.parent / "sklearn_pnl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                given = [getattr(part, "value", "") for part in node.values]
                yield "…".join(p if isinstance(p, str) else "" for p in given)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_errors_that_are_explained_are_in_the_sources():
    quoted = re.findall(
        r"^\| `(.*?)` \|", (DOCS / "errors.md").read_text(encoding="utf-8"), re.M
    )
    texts = list(messages())
    assert len(quoted) >= 15
    for message in quoted:
        pieces = [piece.strip(" :;,.") for piece in message.split("…")]
        wanted = [piece for piece in pieces if len(piece) > 3]
        assert any(all(p in text for p in wanted) for text in texts), message


def test_the_reference_lists_every_public_name():
    text = (DOCS / "api" / "index.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", text, re.M)
    public = [*sklearn_pnl.__all__, *sklearn_pnl.geometry.__all__]
    public.remove("geometry")
    assert sorted(listed) == sorted(public)
