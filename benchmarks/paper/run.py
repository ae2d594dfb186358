"""Run the experiments that the cache lacks, then report.

``python -m benchmarks.paper.run``, or with ``--quick``
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from ..cache import versions
from ..harness import evaluate
from ..tables import markdown
from .learners import learners
from .problems import DATA_SETS, SIZES, TABLE_1, experiments, quick
from .report import summarise, write
from .samplers import baselines
from .scores import score

COMMAND = "python -m benchmarks.paper.run"
FOLDER = Path(__file__).parent / "cache"
LEFT_OUT = (
    "Quick: one split of at most 600 rows of a table, 2,000 images of MNIST, 300 of "
    "CIFAR-10, 270 clips (180 uncut), 500 test rows, 3 epochs; nothing is written. "
    "The figures below show that it runs, and nothing else."
)


def main():
    options = _options()
    chosen = [
        replace(e, n_seeds=min(e.n_seeds, options.seeds or e.n_seeds))
        for e in experiments()
        if e.name in (options.problems or DATA_SETS)
        and e.share in (options.sizes or (TABLE_1, *SIZES))
    ]
    run = partial(
        evaluate,
        samplers=baselines,
        learners=learners,
        score=score,
        n_jobs=options.n_jobs,
    )
    if options.quick:
        print(LEFT_OUT, flush=True)
        with TemporaryDirectory() as folder:
            rows = run([quick(e) for e in chosen], folder=folder)
        _show(rows)
    else:
        rows = run(chosen, folder=FOLDER, known=options.known)
        _show(rows)
        # A part of the whole must not take the place of it.
        if set(chosen) == set(experiments()):
            write(rows, made_with())
            print("python docs/fill.py writes the tables anew into the pages")


def _show(rows):
    shown = ("problem", "size", "sampler", "seeds", "accuracy", "deviation")
    shown = (*shown, "minus none", "minus none, se")
    print(markdown([{name: row[name] for name in shown} for row in summarise(rows)], 4))


def made_with():
    """Return columns that describe the versions and settings of the figures."""
    packages = versions() | {"sklearn-pnl": version("sklearn-pnl")}
    told = " ".join(f"{name}={number}" for name, number in packages.items())
    return {"versions": told, "command": COMMAND}


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", choices=list(DATA_SETS))
    sizes = (TABLE_1, *SIZES)
    parser.add_argument("--sizes", nargs="+", type=float, choices=sizes)
    parser.add_argument("--seeds", type=int, help="at most so many splits")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--known", action="store_true", help="report what is cached")
    parser.add_argument("--quick", action="store_true", help="in less than 2 minutes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
