"""Figures in the text of pages come from a CSV file, from code, or from this list.

A measured value (a time, a score, a p-value, a share of rows) is on no list: a page
shows it in marks that ``docs/fill.py`` fills, in the output of its code, or not at all.
The lists hold constants of the method, settings of benchmarks and sizes of examples.
"""

import ast
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
import fill  # noqa: E402

PAGES = [fill.ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("guide/*.md")]
SOURCES = sorted((fill.ROOT / "sklearn_pnl").rglob("*.py"))
TEXTS = {page.relative_to(fill.ROOT).as_posix(): page for page in sorted(PAGES)}

FIGURE = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?%?")
MEASURED = re.compile(
    r"\b\d(?:[\d,.]*\d)?\s+(?:ms|s|seconds?|minutes?|[KMG]iB|times\s+(?:as\s+(?:long|fast)|faster|slower))\b"
    r"|\bp\s*[<=]\s*\d",
    re.I,
)
NOT_TEXT = (
    fill.TABLE,
    fill.FIGURE,
    fill.BLOCK,
    re.compile(r"^```py\n.*?^```|^```\npip .*?^```|^```\npython .*?^```", re.S | re.M),
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"`+[^`]+`+"),
    re.compile(r"\$\$.*?\$\$|\$[^$\n]*\$", re.S),
    re.compile(r"\]\([^)]*\)|https?://\S+"),
    # Directives and options of the site.
    re.compile(r"^:+[{a-z].*$", re.M),
)
# By kind: figures that are no measurements on any page.
KINDS = {
    "versions": r"(?:Python|scikit-learn|imbalanced-learn) \d+\.\d+",
    "publications": r"[A-Z]\w+,? (?:19|20)\d\d\b|arXiv:[\d.]+|BSD-3-Clause",
    "numbered statements": r"(?:[Ss]ection|Remark|Example|[Ff]igure|[Ee]quation"
    r"|Algorithm|Theorem|[Tt]able)s? \d+(?:\.\d+)?(?: to \d+)?",
    "numbers of list items": r"(?m)^\d\.\s",
    "orders": r"\b[Oo]rder \d(?: to \d)?",
    "values, bounds and single items": r"(?<![\w./])[01](?![\w/%]|[.,]\d)|\[0, 1\]",
    "shapes of rows": r"\d+ x \d+|\((?:n|\d+)(?:, \d+)+\)",
    "learners": r"\d+-NN|(?:5|25) nearest neighbours|leaves of 5 rows",
    "units of tables": r"1000 times|multiplied by 1000|ms per row",
    "ratios of classes": r"1/[235]\b|ROS 0\.3|MGS 5",
    "limits of the searches": r"(?:at most|more than) (?:500|1,000) columns",
    "tolerances that the tests use": r"to 1e-\d\b|\(1e-9\)",
    "the level of significance": r"p-value near 0\.05|below 0\.05|the 5% level",
}
# By page: constants of the method, settings of benchmarks, sizes of examples. A space
# matches any white space.
EXAMPLE, SETTING, CONSTANT = (
    "size or value of an example",
    "setting of a benchmark",
    "constant of the method or of the code",
)
ALLOWED = {
    "README.md": {
        SETTING: [
            "at most 600 rows", "6 to 34 in training", "at most 2,000 rows",
        ],
    },
    "docs/benchmarks.md": {
        EXAMPLE: ["between 3 and 60", "such as 5 or 0.25"],
        CONSTANT: [r"\*step 0.1\* is"],
        SETTING: [
            "5 / 50 training images", "200 / 1,000 / 5,000 training rows",
            "pixels up to 255", "offset of 1e-5",
            "at most 800 rows", "at least 60% of the columns",
            r"\d+ to [\d,]+ \| \d+ to \d+ \(\d+\)", "up to 35%", "at least 60% binary",
            r"\(99 to 1,282 rows, 12 to 142 minority rows\)",
            "1,000,000 rows", "16,384 rows", "100,000 rows with 20 columns",
        ],
    },
    "docs/comparison.md": {
        CONSTANT: ["At 0.5 the", "near 0.5"],
        SETTING: [
            "200 / 1,000 / 5,000 training rows", "(?:200|1,000|5,000) training(?= )",
            "at least 1,000 rows", "at most 100,000 rows",
        ],
    },
    "docs/from_the_paper.md": {
        CONSTANT: ["step 0.98", "17 for M_1 and 1,410 for M_5"],
        EXAMPLE: ["CIFAR-10"],
    },
    "docs/getting_started.md": {EXAMPLE: ["minority class of 20 rows"]},
    "docs/guide/constraints.md": {
        EXAMPLE: [
            "150 new rows", "total of 5", "19%", "such as 0.01", "60 homes", "45,000",
        ]
    },
    "docs/guide/decoding.md": {
        SETTING: ["10,000 training rows and 8 neighbours"],
        EXAMPLE: ["the digit 3"],
    },
    "docs/guide/encoding.md": {EXAMPLE: ["3 channels"], CONSTANT: ["at least 0.05"]},
    "docs/guide/evaluation.md": {
        CONSTANT: [
            "at most 0.6", "at most 0.05", "at most 0.2", "0.8 to 1.25", "0.4 to 0.6",
        ],
        EXAMPLE: ["30 features"],
    },
    "docs/guide/loglinear.md": {
        EXAMPLE: ["592 students", "121 stroke patients"],
        CONSTANT: ["or 2 for each parameter"],
    },
    "docs/guide/relations.md": {
        EXAMPLE: [
            "a \\+ b = 10", "can have 17", "age of 18",
        ],
        CONSTANT: ["2\\^24 cells", "at least 5 rows"],
    },
    "docs/guide/sampling.md": {
        CONSTANT: [
            "at least 7 and at most 10", "fewer than 7\\)", "uses 5",
            "16,384 rows", "therefore 0.6",
        ],
        EXAMPLE: ["300 new rows", "50 training rows"],
    },
    "docs/glossary.md": {EXAMPLE: ["such as 0.01 or 7 days"]},
    "docs/guide/value_support.md": {EXAMPLE: ["1,000 euros, 15 minutes", "age of 18"]},
    "docs/index.md": {EXAMPLE: ["Left: 20 rows", "total of 5"]},
    "docs/large_data.md": {
        SETTING: ["8 columns", "\"> 60\"", "On 16 cores"],
        EXAMPLE: ["such as 0.01"],
        CONSTANT: ["16,384 rows", "2\\^24 cells", "64 MiB", "8e-6", "version 1.9"],
    },
    "docs/paper.md": {
        # The default of the weight of the mean is 0.98. A code of order 1 has 17 cells.
        CONSTANT: [
            "offset of 1e-5", "bandwidth 0.05", "767 of 784 pixels",
            "98% of (the mean|each)", "2% of each", "except 17",
            r"0.98\. The", "step of 0.98", "fixed step 0.98",
        ],
        EXAMPLE: ["the 11 features", "CIFAR-10"],
    },
    "docs/parameters.md": {
        CONSTANT: ["0.6 \\(default\\)", "0.6 for", "0.41 for"],
        SETTING: ["at most 200 rows", "at least 20 rows"],
        EXAMPLE: ["can have 17"],
    },
    "docs/recipes.md": {
        EXAMPLE: ["60 bands", "class 8", "4,096 rows"],
        SETTING: [
            "5 images per class", "16,000 samples", "2,700 clips",
            "1,000,000 rows and 20 features", "10% of the rows",
            "at most 200 training rows", "at least 20 rows",
        ],
    },
    "docs/troubleshooting.md": {EXAMPLE: ["has 17", "40% of the rows"]},
    "docs/when_to_oversample.md": {
        CONSTANT: ["at least 20 rows"],
        SETTING: [
            "at most 600 rows", "at most 800 rows", "10 or 30 training",
            "at most 100,000 rows", "6 to 34 minority rows", "median of 24",
            "100 to 2,000 rows", "6 to 111 minority rows", "up to 2,308 rows",
            "25 instead of 5", "(10|30|100) rows per", "x 5",
        ],
    },
}  # fmt: skip


def text_of(page):
    """Return the text of a page without code, outputs, filled figures and links."""
    text = page.read_text(encoding="utf-8")
    for pattern in NOT_TEXT:
        text = pattern.sub(" ", text)
    return text


def without(text, patterns):
    """Remove allowed figures from a text."""
    for pattern in patterns:
        text = re.sub(pattern.replace(" ", r"\s+"), " ", text)
    return text


def figures_in(text):
    """Return the figures of a text with the words around them."""
    return [
        " ".join(text[max(0, found.start() - 50) : found.end() + 30].split())
        for found in FIGURE.finditer(text)
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_figures_on_pages_have_a_source(name):
    text = without(text_of(TEXTS[name]), KINDS.values())
    for pattern in chain(*ALLOWED.get(name, {}).values()):
        assert without(text, [pattern]) != text, f"not on the page: {pattern}"
        text = without(text, [pattern])
    assert figures_in(text) == []


def test_a_measured_figure_on_a_page_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "The AUC is 0.84, <!-- auc -->0.83<!-- --> before (section 2, order 1).\n"
        "It took 12 s `for 3 rows`, 1.5 times as long, see [x](y.md#4).\n"
        "```python\nprint(5)\n```\n\n```text\n5\n```\n"
    )
    text = without(text_of(page), KINDS.values())
    assert FIGURE.findall(text) == ["0.84", "12", "1.5"] and len(figures_in(text)) == 3


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_docstrings_state_no_measurements(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node) or ""
            assert MEASURED.findall(text.split("Examples\n---")[0]) == []
