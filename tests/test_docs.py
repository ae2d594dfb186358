"""Pages show the measured values and the output of their code."""

import re
import sys
from pathlib import Path

import pytest

import sklearn_pnl

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
import _gallery  # noqa: E402
import drawings  # noqa: E402
import fill  # noqa: E402

PAGES = {page.relative_to(fill.ROOT).as_posix(): page for page in fill.pages()}
TEXTS = {name: page.read_text(encoding="utf-8") for name, page in PAGES.items()}
WITH_CODE = [name for name, text in TEXTS.items() if fill.blocks(text)]


@pytest.fixture(scope="module")
def pieces():
    # Earlier versions of SciPy use a normal approximation of p for few rows with ties.
    pytest.importorskip("scipy", minversion="1.15")
    return fill.pieces()


@pytest.mark.parametrize("name", TEXTS)
def test_figures_and_tables_agree_with_the_results(name, pieces):
    assert fill.filled(TEXTS[name], pieces) == TEXTS[name], "python docs/fill.py"


@pytest.mark.parametrize("name", WITH_CODE)
def test_outputs_agree_with_the_code(name):
    if "HistGradientBoosting" in TEXTS[name]:
        # Earlier versions of scikit-learn grow different trees from the same rows.
        pytest.importorskip("sklearn", minversion="1.9")
    shown = [output for _, output in fill.blocks(TEXTS[name])]
    for printed, wanted in zip(fill.run(TEXTS[name], name), shown, strict=True):
        assert fill.same(printed, wanted or ""), f"python docs/fill.py\n{printed}"


def test_changed_outputs_are_detected():
    assert fill.same("a  0.1234500001\n", "a 0.12345")
    assert fill.same("3 rows, AUC 0.7 of 1", "3 rows, AUC ... of 1")
    assert not fill.same("0.124", "0.123") and not fill.same("", "3")


LINKING = sorted({*PAGES.values(), *fill.ROOT.glob("*.md")})


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.stem)
def test_links_have_existing_targets(page):
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


def test_pictures_agree_with_the_script(tmp_path):
    drawings.draw_all(tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert {path.name for path in drawings.PICTURES.iterdir()} == drawn


@pytest.mark.parametrize("name", TEXTS)
def test_tables_have_at_most_seven_columns(name):
    rows = re.findall(r"^\|.*\|$", re.sub(r"`[^`\n]*`", "", TEXTS[name]), re.M)
    assert all(len(re.findall(r"(?<!\\)\|", row)) <= 8 for row in rows)


@pytest.mark.parametrize("name", TEXTS)
def test_decimals_have_a_leading_zero(name):
    text = re.sub(r"```.*?```|`[^`\n]*`|<!--.*?-->", "", TEXTS[name], flags=re.S)
    assert re.findall(r".{20}(?<![\w.\d/])\.\d", text) == []


def test_the_order_of_the_gallery_names_existing_examples():
    examples = {path.name for path in (fill.ROOT / "examples").glob("*.py")}
    assert set(_gallery.FIRST) <= examples


def test_the_reference_lists_every_public_name():
    pages = (DOCS / "api" / f"{page}.rst" for page in ("index", "types"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    listed = set(re.findall(r"^(?:   |\.\. auto(?:class|data):: )(\w+)$", text, re.M))
    public = {*sklearn_pnl.__all__, *sklearn_pnl.geometry.__all__}
    public |= {*sklearn_pnl.control.__all__}
    assert public - listed == {"geometry"}
