"""Compare the default with reduced bases and the settings of the paper.

``python -m benchmarks.imbalance.manifolds --seeds 0 1``
"""

import argparse

from imblearn.over_sampling import SMOTE

from sklearn_pnl import Codes, PNLSampler

from ..baselines import Baseline, seeded
from ..significance import Tested, corrected
from ..tables import markdown, read_csv, write_csv
from . import report
from .problems import load_tables
from .run import chosen
from .scores import DIRECTIONS
from .shares import run

NAME = "manifolds"
SCORES = [metric for metric in DIRECTIONS if metric != "Brier"]
MANIFOLDS = ("fiber", "theta", "eta", "mixture")
METHODS = {
    **{f"order=1, {name}": Codes(order=1, local_manifold=name) for name in MANIFOLDS},
    "paper": "paper",
    "equation 2": Codes.paper(local_manifold="theta"),
}
BASELINES = {
    "none": Baseline(),
    "SMOTE": Baseline(seeded(SMOTE)),
    "PNL": Baseline(seeded(PNLSampler)),
    **{
        name: Baseline(seeded(PNLSampler, method=each))
        for name, each in METHODS.items()
    },
}


def table():
    """Return the mean scores, with p of the difference to the default, by sampler."""
    rows = read_csv(f"imbalance-{NAME}")
    found = report.scores(rows)
    lines = []
    for sampler in dict.fromkeys(key[0] for key in found):
        line = {"mean of four learners": report.marked(sampler, rows)}
        for metric in SCORES:
            values = found[sampler, report.OVERALL, metric]
            gains = values - found["PNL", report.OVERALL, metric]
            line[metric] = f"{values.mean():.3f}"
            if sampler != "PNL":
                text = f"{line[metric]} ({{}})"
                line[metric] = Tested(text, gains)
        lines.append(line)
    return corrected(lines)


def tables():
    """Return the table as Markdown, by the name that pages mark it with."""
    return {NAME: markdown(table())}


def figures():
    """Return figures by the names that pages mark them with."""
    rows = read_csv(f"imbalance-{NAME}")
    # A seed tests each row once, in two folds.
    return {
        f"{NAME}_seeds": str(min(int(row["folds"]) for row in rows) // 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--samplers", nargs="+", help="default: all")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    baselines = chosen(options.samplers, BASELINES)
    # Two of the four folds of a seed use each row once as a test row.
    rows = run(load_tables("held-out"), baselines, options.seeds, 2, options.n_jobs)
    write_csv(report.summarise(rows), f"imbalance-{NAME}")
    report.report(NAME, reference="none")
    print(markdown(table()))


if __name__ == "__main__":
    main()
