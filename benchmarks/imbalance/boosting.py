"""Compare over-sampling at the same ratios, for six kinds of gradient boosting.

``python -m benchmarks.imbalance.boosting --tables held-out --seeds 0 1 2 3``
"""

import argparse
import sys
import warnings
from dataclasses import replace

from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import has_fit_parameter

from sklearn_pnl import PNLSampler

from ..baselines import Baseline
from ..harness import evaluate
from . import report
from .learners import LEARNERS
from .problems import load_tables
from .run import FOLDER, chosen
from .scores import of_model
from .shares import SHARES, with_share

try:
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier
except ImportError:
    sys.exit('Install the packages with: pip install -e ".[boosting]"')

# LightGBM names the columns of an array in `fit`, and scikit-learn warns in `predict`.
warnings.filterwarnings("ignore", message="X does not have valid feature names")


class Weighted(ClassifierMixin, BaseEstimator):
    """Fit a classifier with weights that give each class the same total weight."""

    def __init__(self, learner):
        self.learner = learner

    def fit(self, X, y):
        weights = compute_sample_weight("balanced", y)
        self.learner_ = clone(self.learner).fit(X, y, sample_weight=weights)
        self.classes_ = self.learner_.classes_
        return self

    def predict(self, X):
        return self.learner_.predict(X)

    def predict_proba(self, X):
        return self.learner_.predict_proba(X)


def weighted(learner, seed):
    """Return the learner with class weights, or None if it has no sample weights."""
    return Weighted(learner) if has_fit_parameter(learner, "sample_weight") else None


BOOSTING = {
    "HistGradientBoosting": lambda seed: HistGradientBoostingClassifier(
        random_state=seed
    ),
    "HistGradientBoosting, leaves of 5": lambda seed: HistGradientBoostingClassifier(
        min_samples_leaf=5, random_state=seed
    ),
    "GradientBoosting": lambda seed: GradientBoostingClassifier(random_state=seed),
    "XGBoost": lambda seed: XGBClassifier(random_state=seed, n_jobs=1),
    "LightGBM, leaves of 5": lambda seed: LGBMClassifier(
        min_child_samples=5, random_state=seed, n_jobs=1, verbose=-1
    ),
    # As many trees as the defaults of the other classifiers.
    "CatBoost": lambda seed: CatBoostClassifier(
        iterations=100,
        random_state=seed,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
    ),
}
OTHERS = {name: LEARNERS[name] for name in ("logistic", "5-NN", "forest")}
KINDS = {"copies": RandomOverSampler, "SMOTE": SMOTE, "PNL": PNLSampler}
BASELINES = {
    "none": Baseline(),
    "class weights": Baseline(adapt=weighted, share=1 / 2),
    **{
        f"{name} {share}": with_share(kind, SHARES[share])
        for name, kind in KINDS.items()
        for share in ("1/3", "1")
    },
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="held-out", choices=("held-out", "wide"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--samplers", nargs="+", help="default: all")
    parser.add_argument("--known", action="store_true", help="report the cache only")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    tables, rows = load_tables(options.tables), []
    # `shares` computes the scores of the remaining learners on the held-out tables.
    learners = BOOSTING | (OTHERS if options.tables == "wide" else {})
    for seed in options.seeds:
        rows += evaluate(
            # Two of the four folds of a seed use each row once as a test row.
            [replace(table, draws=(seed,), folds=2) for table in tables],
            chosen(options.samplers, BASELINES),
            learners,
            of_model,
            folder=FOLDER,
            n_jobs=options.n_jobs,
            known=options.known,
        )
    name = f"boosting-{options.tables}"
    report.write(rows, name)
    report.report(name, reference="none")


if __name__ == "__main__":
    main()
