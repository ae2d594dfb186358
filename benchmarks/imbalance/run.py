"""Run samplers and learners on imbalanced tables, then report.

``python -m benchmarks.imbalance.run --tables fresh --seeds 0 1 --n-jobs 2``
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from ..harness import evaluate
from . import report
from .learners import FOR_RAW_ROWS, LEARNERS
from .problems import SETS, load_tables
from .samplers import BASELINES
from .scores import of_model

FOLDER = Path(__file__).parent / "cache"


def main():
    options = _options()
    changes = {"draws": tuple(options.seeds), "scaled": not options.raw}
    tables = [replace(table, **changes) for table in load_tables(options.tables)]
    if options.only:
        tables = [table for table in tables if table.name in options.only]
    rows = evaluate(
        tables,
        chosen(options.samplers, BASELINES),
        chosen(options.learners, FOR_RAW_ROWS if options.raw else LEARNERS),
        of_model,
        folder=FOLDER,
        n_jobs=options.n_jobs,
    )
    # A part of the tables must not take the place of all.
    name = options.tables + "-raw" * options.raw + "-part" * bool(options.only)
    report.write(rows, name)
    report.report(name)


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="fresh", choices=SETS)
    parser.add_argument("--only", nargs="+", help="tables of the set by name")
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[0, 1], help="four folds each"
    )
    parser.add_argument(
        "--raw", action="store_true", help="sample rows in their own units"
    )
    parser.add_argument("--samplers", nargs="+", help="default: all")
    parser.add_argument("--learners", nargs="+", help="default: all")
    parser.add_argument("--n-jobs", type=int, default=1)
    return parser.parse_args()


def chosen(names, known):
    """Select entries of a dict by name, or all entries without names."""
    unknown = [name for name in names or () if name not in known]
    if unknown:
        sys.exit(f"Unknown: {', '.join(unknown)}. Known: {', '.join(known)}")
    return {name: known[name] for name in names or known}


if __name__ == "__main__":
    main()
