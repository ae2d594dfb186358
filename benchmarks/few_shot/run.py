"""Run the problems that the cache lacks, then print the table.


python -m benchmarks.few_shot.run --n-jobs 2
"""

import argparse
from pathlib import Path

from ..harness import evaluate
from ..tables import markdown, updated, write_csv
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
        chosen,
        lambda problem: _part(options.samplers, baselines(problem)),
        _part(options.learners, LEARNERS),
        score,
        folder=FOLDER,
        n_jobs=options.n_jobs,
    )
    rows = summarise(records)
    print(markdown(table(rows, options.score)))
    if options.csv and (options.samplers or options.learners):
        # Results of other samplers and learners stay.
        rows = updated(rows, options.csv, "problem", "shots", "learner", "sampler")
    # A part of the whole must not take the place of it.
    whole = set(options.problems) == set(PROBLEMS) and set(options.shots) >= set(SHOTS)
    whole &= options.draws >= DRAWS and not (options.samplers or options.learners)
    name = "few-shot" if whole else options.csv
    if name:
        print(f"\nwritten to {write_csv(rows, name).name}")


def _part(names, known):
    """Return the named entries that exist, or all of them."""
    return {name: known[name] for name in names or known if name in known}


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS)
    )
    parser.add_argument("--shots", nargs="+", type=int, default=SHOTS)
    parser.add_argument("--samplers", nargs="+", help="default: all")
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS))
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--score", choices=list(SCORES), default="accuracy")
    parser.add_argument("--csv", help="where a part of the whole is written, too")
    parser.add_argument("--quick", action="store_true", help="3 draws of 5 and 20")
    return parser.parse_args()


if __name__ == "__main__":
    main()
