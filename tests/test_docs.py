"""Pages show what is measured and what their code prints."""

import ast
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sklearn_pnl

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
import drawings  # noqa: E402
import fill  # noqa: E402

PAGES = {page.relative_to(fill.ROOT).as_posix(): page for page in fill.pages()}
TEXTS = {name: page.read_text(encoding="utf-8") for name, page in PAGES.items()}
WITH_CODE = [name for name, text in TEXTS.items() if fill.blocks(text)]
# They are made of what the site alone has: cards, lists of pages.
OF_THE_SITE = {"docs/index.md", "docs/guide/index.md", "docs/changelog.md"}


def test_there_are_pages():
    assert len(WITH_CODE) >= 13
    assert sum(len(fill.FIGURE.findall(text)) for text in TEXTS.values()) >= 30
    assert sum(len(fill.TABLE.findall(text)) for text in TEXTS.values()) >= 10


@pytest.fixture(scope="module")
def pieces():
    # Before, p of few rows with ties was that of a normal approximation.
    pytest.importorskip("scipy", minversion="1.15")
    return fill.pieces()


@pytest.mark.parametrize("name", TEXTS)
def test_figures_and_tables_are_those_of_the_results(name, pieces):
    assert fill.filled(TEXTS[name], pieces) == TEXTS[name], "python docs/fill.py"


@pytest.mark.parametrize("name", WITH_CODE)
def test_outputs_are_what_the_code_prints(name):
    shown = [output for _, output in fill.blocks(TEXTS[name])]
    for printed, wanted in zip(fill.run(TEXTS[name], name), shown, strict=True):
        assert fill.same(printed, wanted or ""), f"python docs/fill.py\n{printed}"


@pytest.mark.parametrize("name", sorted({*TEXTS} - OF_THE_SITE))
def test_pages_read_the_same_in_the_repository(name):
    text = re.sub(r"```.*?```", "", TEXTS[name], flags=re.S)
    assert "{{" not in text and "}}" not in text
    assert not re.findall(r"^:::.*|\{[a-z:]+\}`.*|^\(.*\)=$", text, re.M)
    assert "```{" not in TEXTS[name]
    # A line that begins with a mark would be HTML as a whole.
    assert not re.findall(r"^[\s-]*<!-- [\w-]+ -->.+", text, re.M)


LINKING = sorted({*PAGES.values(), *fill.ROOT.glob("*.md")})


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            titles = re.findall(r"^#+ (.*)", target.read_text(encoding="utf-8"), re.M)
            slugs = [
                re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles
            ]
            assert anchor in slugs, link


def test_marks_are_filled():
    pieces = {"n": "7", "t": "| a |"}
    text = "about <!-- n --><!-- --> rows\n<!-- t -->\nold\n<!-- end of t -->\n"
    made = "about <!-- n -->7<!-- --> rows\n<!-- t -->\n| a |\n\n<!-- end of t -->\n"
    assert fill.filled(text, pieces) == fill.filled(made, pieces) == made
    with pytest.raises(KeyError):
        fill.filled("<!-- gone -->7<!-- -->", pieces)


def test_outputs_are_filled():
    text = "```python\nx = 1\nprint(x)\n```\n\nSo.\n\n```python\nx += 1\n```\n"
    made = text.replace("print(x)\n```\n", "print(x)\n```\n\n```text\n1\n```\n")
    assert fill.with_outputs(text) == fill.with_outputs(made) == made
    assert fill.with_outputs(made.replace("\n1\n", "\n2\n")) == made
    kept = made.replace("\n1\n", "\n...\n")
    assert fill.with_outputs(kept) == kept
    assert fill.blocks(made) == [("x = 1\nprint(x)\n", "1\n"), ("x += 1\n", None)]


@pytest.mark.parametrize(
    "printed, shown, wanted",
    [
        ("0.12345\n", "0.12345", True),
        ("a  0.1234500001\n", "a 0.12345", True),
        ("4e-16", "0.0", True),
        ("0.124", "0.123", False),
        ("3 rows", "4 rows", False),
        ("3 rows", "3 columns", False),
        ("3 rows", "3 rows 4", False),
        ("", "3", False),
        ("3 rows, AUC 0.7 of 1", "3 rows, AUC ... of 1", True),
        ("3 rows, AUC 0.7 of 2", "3 rows, AUC ... of 1", False),
        ("-.5 x0", "-.5 x0", True),
        ("x1", "x0", False),
    ],
)
def test_outputs_are_compared(printed, shown, wanted):
    assert fill.same(printed, shown) is wanted


def test_pictures_are_those_of_the_script(tmp_path):
    drawings.draw_all(tmp_path)
    drawn = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert {path.name for path in drawings.PICTURES.iterdir()} == {*drawn}
    assert min(drawn.values()) > 10_000
    used = "".join(TEXTS.values())
    assert all(f"pictures/{name}" in used for name in drawn)


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


def reference():
    """Names that the reference lists, each with its module."""
    for page in ("index", "types"):
        module = "sklearn_pnl"
        for line in (DOCS / "api" / f"{page}.rst").read_text("utf-8").splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            elif found := re.match(r"(?:   |\.\. auto(?:class|data):: )(\w+)$", line):
                yield module, found[1]


def test_the_reference_lists_every_public_name():
    listed = {(m, name) for m, name in reference() if name != "types"}
    for module, name in listed:
        assert hasattr(import_module(module), name), (module, name)
    public = {*sklearn_pnl.__all__, *sklearn_pnl.geometry.__all__} - {"geometry"}
    assert public <= {name for _, name in listed}


def test_links_to_functions_lead_to_their_files():
    links = re.findall(r"\[`([\w.]+)`\]\(([\w/]+\.py)\)", TEXTS["README.md"])
    assert len(links) > 8
    for name, path in links:
        source = (DOCS.parent / path).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"(def|class) {part}\b", source), (name, path)


def test_pages_are_short():
    assert sum(len(text.split()) for text in TEXTS.values()) <= 35_000
