"""Write into the pages what they show: figures, tables, and what their code prints.

``python docs/fill.py`` after a benchmark, a change of the code or of a page; a test
compares. So pages read the same in the repository as on the site.

``<!-- name -->.511<!-- -->`` is a figure and ``<!-- name -->``, lines, ``<!-- end of
name -->`` a table, each from ``measured.py`` and its like. A block of ``python`` is
run, those of a page one after the other, and the block of ``text`` after it is what it
printed. A block of ``py`` is not run.
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
    """Every page with marks or code: the README, the site's, those of benchmarks."""
    found = [*HERE.glob("*.md"), *HERE.glob("guide/*.md")]
    found += ROOT.glob("benchmarks/**/README.md")
    return [ROOT / "README.md", *sorted(found)]


def pieces():
    """All that is measured, by the names that marks have."""
    tables = measured.tables() | {"paper-figures": claims.table()}
    return measured.figures() | tables


def filled(text, pieces):
    """A page with its figures and tables made anew."""
    text = TABLE.sub(
        lambda m: f"<!-- {m[1]} -->\n{pieces[m[1]]}\n\n<!-- end of {m[1]} -->", text
    )
    return FIGURE.sub(lambda m: f"<!-- {m[1]} -->{pieces[m[1]]}<!-- -->", text)


def blocks(text):
    """Pairs of code, and of what the page says that it prints; None for nothing."""
    return [(found[1], found[2]) for found in BLOCK.finditer(text)]


def run(text, name="page"):
    """What each block of a page prints."""
    names = {"__name__": "__main__"}
    for code, _ in blocks(text):
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, name, "exec"), names)
        yield printed.getvalue()


def with_outputs(text, name="page"):
    """A page with what its code prints; what is the same but for rounding stays."""
    printed = run(text, name)

    def shown(found):
        output = next(printed).rstrip()
        if same(output, found[2] or ""):
            return found[0]
        after = f"\n```text\n{output}\n```\n" if output else ""
        return f"```python\n{found[1]}```\n{after}"

    return BLOCK.sub(shown, text)


def same(printed, shown):
    """Whether a page shows what is printed: word by word, numbers to four digits.

    Other versions of NumPy round otherwise. Three dots on a page stand for anything,
    where other versions print something else.
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
