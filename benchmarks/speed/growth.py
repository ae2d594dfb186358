"""How a whole job grows with rows, columns, order and neighbours: for larger plans."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sklearn_pnl import MixupDraws, PNLAugmenter

from . import problems
from .script import main
from .timing import interleaved, peak

MIB = 2**20
STAGES = ("fit s", "search s", "draw and decode s", "peak MiB")


@dataclass(frozen=True)
class Job:
    """``n`` training rows and as many new ones.

    ``order`` None is the default for a table of ``n_columns``; else rows are tensors
    with as many cells, in modes of 4.
    """

    n: int = 20_000
    n_columns: int = 50
    order: int | None = None
    k: int = 5
    n_candidates: int | None = 2**14

    def rows(self):
        if self.order is None:
            return problems.imbalanced_table(self.n, self.n_columns)[0]
        n_modes = round(np.log(self.n_columns) / np.log(4))
        return problems.synthetic_tensors(self.n, (4,) * n_modes)

    def augmenter(self):
        draws = MixupDraws(n_candidates=self.n_candidates)
        return PNLAugmenter(self.order, k_neighbors=self.k, draws=draws)

    def run(self, X):
        augmenter = self.augmenter().fit(X)
        new = augmenter.sample(self.n, random_state=0)
        return augmenter, new


def measure(job):
    """Seconds of the stages, and MiB beyond the input."""
    X = job.rows()
    augmenter = job.augmenter().fit(X)
    # With next to nothing to look among: the difference of two longer times is noise.
    blind = replace(job, n_candidates=4 * job.k).augmenter().fit(X)
    taken = interleaved(
        {
            "fit s": lambda: job.augmenter().fit(X),
            "search s": partial(search, augmenter, job),
            "draw and decode s": lambda: blind.sample(job.n, random_state=0),
        },
        repeats=0,
    )
    return taken | {"peak MiB": peak(job.rows, job.run).beyond_input}


def search(augmenter, job):
    """What ``sample`` searches for: partners of the rows that it draws."""
    rng = np.random.RandomState(0)
    drawn = np.unique(rng.randint(job.n, size=job.n))
    among = None
    if job.n_candidates is not None and job.n_candidates < job.n:
        among = rng.choice(job.n, job.n_candidates, replace=False)
    training = augmenter._source.training
    return training.nearest(augmenter.codes_[drawn], job.k + 1, among)


def vary(fixed, name, values):
    """Rows for each value of one size, and one row of exponents."""
    rows = []
    for value in values:
        job = replace(fixed, **{name: value})
        rows.append(_sizes(job, name) | {"at": "size"} | measure(job))
    sizes = np.log([row[name] for row in rows[len(rows) // 2 - 1 :]])
    fitted = {
        stage: _slope(sizes, [row[stage] for row in rows[len(rows) // 2 - 1 :]])
        for stage in STAGES
    }
    return [*rows, _sizes(fixed, name) | {name: None, "at": "exponent"} | fitted]


def _sizes(job, name):
    sizes = {"n": job.n, "n_columns": job.n_columns, "order": job.order, "k": job.k}
    return {"varied": name, **sizes, "n_candidates": job.n_candidates}


def _slope(sizes, values):
    return float(np.polyfit(sizes, np.log(np.maximum(values, 1e-3)), 1)[0])


def run(quick):
    table, tensors = Job(), Job(n=1_000, n_columns=1024, order=1)
    # From there on rows are looked up among some; then among all, as far as it goes.
    n = [2_000, 4_000, 8_000] if quick else [40_000, 80_000, 160_000, 320_000]
    rows = vary(table, "n", n)
    every = replace(table, n_candidates=None)
    rows += vary(every, "n", [size // 4 for size in n[:-1]])
    columns = [10, 20, 40] if quick else [25, 50, 100, 200]
    rows += vary(table, "n_columns", columns)
    rows += vary(tensors, "order", [1, 2] if quick else [1, 2, 3])
    rows += vary(table, "k", [1, 4, 16, 64])
    return rows


if __name__ == "__main__":
    main(__doc__, run, "growth")
