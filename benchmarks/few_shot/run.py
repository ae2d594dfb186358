"""Run what the cache lacks, then print the table.

python -m benchmarks.few_shot.run --n-jobs 2
"""

import argparse
import sys

from joblib import Parallel, delayed

from ..tables import markdown, write_csv
from .problems import PROBLEMS
from .report import SCORES, summarise, table
from .trials import run_trial

SHOTS = [5, 10, 20, 50]
DRAWS = 20


def main():
    options = _options()
    if options.quick:
        options.shots, options.draws = [5, 20], 3
    jobs = [
        (name, shots, seed)
        for name in options.problems
        for shots in options.shots
        for seed in range(options.draws)
    ]
    records = _run(jobs, options.n_jobs)
    rows = summarise(records)
    print(markdown(table(rows, options.score)))
    _tell_warnings(records)
    # A part of the whole must not take the place of it.
    whole = set(options.problems) == set(PROBLEMS) and set(options.shots) >= set(SHOTS)
    name = "few-shot" if whole and options.draws >= DRAWS else options.csv
    if name:
        print(f"\nwritten to {write_csv(rows, name).name}")


def _run(jobs, n_jobs):
    """Records of all jobs, in their order; what is done is told on stderr."""
    records = []
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(run_trial)(*job) for job in jobs
    )
    for (name, shots, seed), result in zip(jobs, results, strict=True):
        records += result
        print(f"\r{name} {shots} shots, draw {seed}  ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return records


def _tell_warnings(records):
    messages = {}
    for record in records:
        for message in record["warnings"]:
            messages.setdefault((record["sampler"], message), []).append(record)
    for (sampler, message), where in messages.items():
        print(f"\n{sampler} warned in {len(where)} draws: {message}")


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
