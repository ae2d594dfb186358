"""Run samplers and learners on imbalanced tables, then report.

``python -m benchmarks.imbalance.run --tables small --n-jobs 2``
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.tables import write_csv

from ..harness import evaluate
from . import report
from .check import check
from .learners import LEARNERS
from .problems import load_tables, table_set
from .samplers import RIVALS, SLOW_RIVALS, smote_variants
from .scores import of_model

FOLDER = Path(__file__).parent / "cache"


def main():
    options = _options()
    protocol = {"repeats": options.repeats, "folds": options.folds}
    tables = [replace(table, **protocol) for table in load_tables(options.tables)]
    known = RIVALS | SLOW_RIVALS
    if options.samplers is not None:
        known |= smote_variants()
    rivals = _chosen(options.samplers, known, RIVALS)
    learners = _chosen(options.learners, LEARNERS, LEARNERS)
    if options.check:
        agreed = check(tables, rivals, learners)
        print(f"{agreed} scores are those of the same steps in an imblearn Pipeline")
        return
    rows = evaluate(
        tables, rivals, learners, of_model, folder=FOLDER, n_jobs=options.n_jobs
    )
    name = table_set(options.tables)
    write_csv(report.summarise(rows), f"imbalance-{name}")
    report.report(name)


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tables",
        default="small",
        help="small, development, held-out, all, fresh, or names of KEEL's tables with "
        "commas",
    )
    parser.add_argument("--samplers", help="names with commas; default: all but slow")
    parser.add_argument("--learners", help="names with commas; default: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with imblearn Pipelines and write nothing; takes twice as long",
    )
    return parser.parse_args()


def _chosen(names, known, default):
    if names is None:
        return default
    names = names.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"Unknown: {', '.join(unknown)}. Known: {', '.join(known)}")
    return {name: known[name] for name in names}


if __name__ == "__main__":
    main()
