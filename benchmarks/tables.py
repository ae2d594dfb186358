"""Print one table per script as Markdown, and write it as CSV."""

import argparse
import csv
from collections import defaultdict
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def write_csv(rows, name):
    """Write dicts with the same keys to ``results/<name>.csv``; return the path."""
    path = RESULTS / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_csv(name):
    """Read ``results/<name>.csv`` as dicts of strings; no file gives no rows."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def updated(rows, name, *keys):
    """Return the rows of ``results/<name>.csv``, with new rows where the keys agree."""
    found = {}
    for row in [*read_csv(name), *rows]:
        found[tuple(str(row[key]) for key in keys)] = row
    return [*found.values()]


def grouped(rows, *keys):
    """Group rows that agree in some columns."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def markdown(rows, digits=3):
    """Format dicts with the same keys as a Markdown table, with rounded floats."""
    if not rows:
        return ""
    cells = [list(rows[0])]
    cells += [[_text(value, digits) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [any(_is_number(row[name]) for row in rows) for name in rows[0]]
    lines = [_line(cells[0], widths, numeric)]
    rule = [
        "-" * (w - 1) + ":" if n else "-" * w
        for w, n in zip(widths, numeric, strict=True)
    ]
    lines.append("| " + " | ".join(rule) + " |")
    lines += [_line(row, widths, numeric) for row in cells[1:]]
    return "\n".join(lines)


def report(rows, name, digits=3):
    """Print the table and write the CSV."""
    path = write_csv(rows, name)
    print(markdown(rows, digits), flush=True)
    print(f"\nwritten to {path.relative_to(RESULTS.parent.parent)}", flush=True)


def main(description, run, name):
    """Report the rows of ``run(quick)`` by a name; the command line has ``--quick``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="few and small problems")
    quick = parser.parse_args().quick
    # Rough figures must not take the place of full ones.
    report(run(quick), name + quick * "-quick")


def _text(value, digits):
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return "" if value is None else str(value)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _line(cells, widths, numeric):
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    )
    return "| " + " | ".join(padded) + " |"
