"""Write measured figures, measured tables and the output of code into the pages.

Run ``python docs/fill.py`` after a change of a benchmark, of the code or of a page. A
test compares the pages. Pages therefore read the same in the repository and on the
site.

``<!-- name -->0.511<!-- -->`` marks a figure. ``<!-- name -->``, lines and ``<!-- end
of name -->`` mark a table. ``measured.py`` and ``claims.py`` provide both. The blocks
of ``python`` on a page are run one after the other, and the block of ``text`` after a
block shows its output. A block of ``py`` is not run.
"""

import io
import math
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import claims  # noqa: E402
import measured  # noqa: E402

ROOT = HERE.parent
FIGURE = re.compile(r"<!-- ([\w-]+) -->([^\n]*?)<!-- -->")
TABLE = re.compile(r"^<!-- ([\w-]+) -->\n(.*?)^<!-- end of \1 -->$", re.S | re.M)
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)
NUMBER = re.compile(r"[+-]?\b\d+(?:\.\d*)?(?:e[+-]?\d+)?\b|(?<!\w)\.\d+")
SHOWN = re.compile(rf"({NUMBER.pattern}|\.\.\.)")


def pages():
    """Return all pages with marks or code: README, site and benchmarks."""
    found = [*HERE.glob("*.md"), *HERE.glob("guide/*.md")]
    found += ROOT.glob("benchmarks/**/README.md")
    return [ROOT / "README.md", *sorted(found)]


def pieces():
    """Return all figures and tables by the names of their marks."""
    tables = {"paper-figures": claims.table(), "reference": reference()}
    return measured.figures() | measured.tables() | tables


def reference():
    """Return the implementation of the paper's algorithms that the tests use."""
    text = (ROOT / "tests" / "geometry" / "test_reference.py").read_text("utf-8")
    code = re.search(r"# --- the reference.*?\n(.*?)# --- cases", text, re.S)[1]
    names = ("import numpy as np", "from scipy.optimize import minimize",
             "from scipy.special import xlogy")  # fmt: skip
    return "\n".join(["```python", *names, "\n", code.strip(), "```"])


def filled(text, pieces):
    """Return a page with new figures and tables."""
    text = TABLE.sub(
        lambda m: f"<!-- {m[1]} -->\n{pieces[m[1]]}\n\n<!-- end of {m[1]} -->", text
    )
    return FIGURE.sub(lambda m: f"<!-- {m[1]} -->{pieces[m[1]]}<!-- -->", text)


def blocks(text):
    """Return pairs of code and its shown output, None without an output."""
    return [(found[1], found[2]) for found in BLOCK.finditer(text)]


def run(text, name="page"):
    """Yield the output of each block of a page."""
    names = {"__name__": "__main__"}
    for code, _ in blocks(text):
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, name, "exec"), names)
        yield printed.getvalue()


def with_outputs(text, name="page"):
    """Return a page with new outputs; equal outputs up to rounding stay."""
    printed = run(text, name)

    def shown(found):
        output = next(printed).rstrip()
        if same(output, found[2] or ""):
            return found[0]
        after = f"\n```text\n{output}\n```\n" if output else ""
        return f"```python\n{found[1]}```\n{after}"

    return BLOCK.sub(shown, text)


def same(printed, shown):
    """Check whether two outputs agree: words exactly, numbers to four digits.

    Versions of NumPy round differently. Three dots on a page match any text.
    """
    parts = (part for part in SHOWN.split(" ".join(shown.split())) if part)
    found = re.fullmatch("".join(map(_pattern, parts)), " ".join(printed.split()))
    numbers = NUMBER.findall(" ".join(shown.split()))
    return found is not None and all(
        math.isclose(float(here), float(there), rel_tol=1e-4, abs_tol=1e-9)
        for here, there in zip(found.groups(), numbers, strict=True)
    )


def _pattern(part):
    if part == "...":
        return ".*?"
    return f"({NUMBER.pattern})" if NUMBER.fullmatch(part) else re.escape(part)


def main():
    """Fill every page."""
    found = pieces()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = with_outputs(filled(text, found), page.name)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
