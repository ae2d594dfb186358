"""Tables with missing cells: the sampler as they are, and others behind imputers.

``python -m benchmarks.imbalance.holes``: the thirty tables that the noise was confirmed
on, with a tenth and three tenths of their cells missing by chance, in training and in
test rows. SMOTE takes no missing cell, so that an imputer goes before it, and before
its learner; of the learners forests and boosting take them as they are, the others
behind medians.
"""

from dataclasses import dataclass, replace
from functools import partial

import joblib
import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from scipy.stats import wilcoxon
from sklearn.impute import KNNImputer, SimpleImputer

from benchmarks.tables import grouped, report
from sklearn_pnl import PNLSampler

from ..harness import evaluate
from ..rivals import Rival
from . import learners
from .problems import Table
from .run import FOLDER
from .scores import of_model
from .spread_tables import load_tables

RATES = 0.1, 0.3
SCORES = ("average precision", "ROC AUC", "balanced accuracy")
medians = partial(SimpleImputer, strategy="median", keep_empty_features=True)
near_rows = partial(KNNImputer, keep_empty_features=True)
# Each makes what goes before the learner, from a seed.
STEPS = {
    "none": lambda seed: [],
    "median, none": lambda seed: [medians()],
    "median, SMOTE": lambda seed: [medians(), SMOTE(random_state=seed)],
    "near rows, none": lambda seed: [near_rows()],
    "near rows, SMOTE": lambda seed: [near_rows(), SMOTE(random_state=seed)],
    "median, PNL": lambda seed: [medians(), PNLSampler(random_state=seed)],
    "near rows, PNL": lambda seed: [near_rows(), PNLSampler(random_state=seed)],
    "PNL": lambda seed: [PNLSampler(random_state=seed)],
}


@dataclass(frozen=True)
class TableWithHoles(Table):
    """A table of which a share of the cells is missing."""

    rate: float = 0.1

    @property
    def head(self):
        return {**super().head, "rate": self.rate}

    @property
    def key(self):
        return joblib.hash((super().key, self.rate))

    def split(self, seed):
        """A fold with holes, others in each."""
        whole, rng = super().split(seed), np.random.default_rng(seed)
        parts = (
            np.where(rng.random(X.shape) < self.rate, np.nan, X)
            for X in (whole.X, whole.X_test)
        )
        return replace(whole, **dict(zip(("X", "X_test"), parts, strict=True)))


def _behind(make):
    """A learner behind some steps."""
    return Rival(adapt=lambda learner, seed: make_pipeline(*make(seed), learner))


def _for_holes(name):
    make = learners.LEARNERS[name]
    if name in ("forest", "boosting"):
        return make
    return lambda seed: make_pipeline(medians(), make(seed))


def main():
    rivals = {name: _behind(make) for name, make in STEPS.items()}
    others = {name: _for_holes(name) for name in learners.LEARNERS}
    known = load_tables("confirmation", repeats=1)
    tables = [
        TableWithHoles(t.name, t.family, t.X, t.y, t.repeats, t.folds, rate)
        for rate in RATES
        for t in known
    ]
    found = evaluate(tables, rivals, others, of_model, folder=FOLDER, n_jobs=2)
    report(
        [
            {"missing": rate, "learner": learner, "before it": name}
            | _means(found, rate, name, of)
            for rate in RATES
            for learner, of in [("all", tuple(others)), ("boosting", ("boosting",))]
            for name in STEPS
        ],
        "imbalance-holes",
    )


def _means(found, rate, name, of):
    """Means of some learners, and what chance makes of their gains on SMOTE's."""
    known = [row for row in found if row["rate"] == rate and row["learner"] in of]
    own = [row for row in known if row["sampler"] == name]
    rival = [row for row in known if row["sampler"] == "median, SMOTE"]
    means = {}
    for score in SCORES:
        means[score] = float(np.mean([row[score] for row in own]))
        gain = _by_family(own, score) - _by_family(rival, score)
        means[f"p, {score}"] = float(wilcoxon(gain).pvalue) if gain.any() else 1.0
    return means


def _by_family(rows, score):
    """Means over tables, folds and learners."""
    families = grouped(rows, "family").values()
    return np.array([np.mean([row[score] for row in own]) for own in families])


if __name__ == "__main__":
    main()
