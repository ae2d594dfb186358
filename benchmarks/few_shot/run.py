"""Run the problems that the cache lacks, then print the table.


python -m benchmarks.few_shot.run --n-jobs 2
"""

import argparse
from pathlib import Path

from ..harness import evaluate
from ..tables import markdown, write_csv
from .learners import LEARNERS
from .problems import PROBLEMS, FewRows
from .report import SCORES, summarise, table
from .samplers import baselines
from .scores import score

FOLDER = Path(__file__).parent / "cache"
SHOTS = [5, 10, 20, 50]
DRAWS = 20


def main():
    options = _options()
    if options.quick:
        options.shots, options.draws = [5, 20], 3
    chosen = [
        FewRows(name, shots, options.draws)
        for name in options.problems
        for shots in options.shots
    ]
    records = evaluate(
        chosen, baselines, LEARNERS, score, folder=FOLDER, n_jobs=options.n_jobs
    )
    rows = summarise(records)
    print(markdown(table(rows, options.score)))
    # A part of the whole must not take the place of it.
    whole = set(options.problems) == set(PROBLEMS) and set(options.shots) >= set(SHOTS)
    name = "few-shot" if whole and options.draws >= DRAWS else options.csv
    if name:
        print(f"\nwritten to {write_csv(rows, name).name}")


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS)
    )
    parser.add_argument("--shots", nargs="+", type=int, default=SHOTS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--score", choices=list(SCORES), default="accuracy")
    parser.add_argument("--csv", help="where a part of the whole is written, too")
    parser.add_argument("--quick", action="store_true", help="3 draws of 5 and 20")
    return parser.parse_args()


if __name__ == "__main__":
    main()
