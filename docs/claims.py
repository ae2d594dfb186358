"""Collect the claims of the paper's figures, the results of the examples and verdicts.

``python docs/claims.py`` runs the examples of the paper and writes their output to
``paper_figures.csv``, of which ``fill.py`` makes a table. The examples need the images
of MNIST and CIFAR-10, see ``examples/paper/paper_images.py``.
"""

import csv
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples" / "paper"
KEPT = HERE / "paper_figures.csv"
PARTS = ("paper", "seen", "verdict")
# In the order of the paper.
FIGURES = (
    "plot_interactions",
    "plot_interpolation",
    "plot_chirp",
    "mnist_rows",
    "cifar_rows",
    "mnist_local_manifolds",
    "mnist_bandwidth",
    "mnist_neighbors",
    "mnist_pixels",
    "mnist_random_codes",
    "mnist_tensor_structure",
)


def claims_in(printed):
    """Triples of claim, what is seen, and verdict, from what an example prints."""
    lines = [
        line.split(":", 1)[1].strip()
        for line in printed.splitlines()
        if line.startswith(tuple(f"{part}:" for part in PARTS))
    ]
    return list(zip(lines[::3], lines[1::3], lines[2::3], strict=True))


def kept():
    """Rows of the CSV, as dicts of strings."""
    with open(KEPT, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(script):
    """What an example prints, without a window."""
    found = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


def collect():
    """Run the examples, and keep their claims."""
    packages = ("numpy", "scipy", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    rows = []
    for figure in FIGURES:
        found = claims_in(run(EXAMPLES / f"{figure}.py"))
        if not found:
            sys.exit(f"{figure} made no claim: are its images there?")
        print(f"{figure}: {', '.join(verdict for *_, verdict in found)}")
        command = f"python examples/paper/{figure}.py"
        rows += [(figure, *claim, command, versions) for claim in found]
    with open(KEPT, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["figure", *PARTS, "command", "versions"])
        writer.writerows(rows)


def table():
    """The claims as a Markdown table."""
    lines = ["| figure | claim of the paper | result | verdict |", "|---|---|---|---|"]
    for row in kept():
        script = f"{row['figure']}.py"
        title = (EXAMPLES / script).read_text("utf-8").split("\n")[2]
        link = f"[{title}](../examples/paper/{script})"
        cells = (link, row["paper"], row["seen"], f"**{row['verdict']}**")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    collect()
