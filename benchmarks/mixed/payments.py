"""Compare ways to balance a made frame of card payments, followed by boosting.

``python -m benchmarks.mixed.payments``: numbers, categories, a date, counts, cents, and
a tenth of the cells missing; one row in a hundred is a fraud.
"""

import argparse

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTENC
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    roc_auc_score,
)
from sklearn.preprocessing import OrdinalEncoder

from sklearn_pnl import PNLSampler

from ..tables import grouped, markdown, write_csv

SIZES = 5_000, 10_000
NUMBERS = ["amount", "balance", "visits", "items", "fee", "day"]
WORDS = ["shop", "country"]


def payments(seed, n):
    """Make a frame, and a mask of the frauds: one row in a hundred."""
    rng = np.random.default_rng(seed)
    fraud = np.zeros(n, int)
    fraud[rng.choice(n, n // 100, replace=False)] = 1
    wealth = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "amount": np.round(np.exp(3 + wealth / 2 + rng.normal(size=n) + fraud), 2),
            "balance": np.round(np.exp(6 + wealth + rng.normal(size=n) / 2), 2),
            "visits": rng.poisson(np.where(fraud, 1.0, 4.0)).astype(float),
            "items": 1.0 + rng.poisson(np.where(fraud, 0.5, 1.5)),
            "fee": np.where(rng.random(n) < 0.7 - 0.4 * fraud, 0, rng.gamma(2, size=n)),
            "shop": rng.choice(list("abcdef"), n),
            "country": np.where(
                rng.random(n) < 0.2 + 0.3 * fraud, "abroad", rng.choice(["x", "y"], n)
            ),
            "day": pd.Timestamp("2026-01-01")
            + pd.to_timedelta(rng.integers(0, 365, n), "D"),
        }
    )
    night = rng.random(n) < 0.1 + 0.5 * fraud
    X.loc[night, "items"] = 1.0
    for name in X.columns:
        X.loc[rng.random(n) < 0.1, name] = None
    return X, fraud


def as_numbers(X):
    """Convert dates to days, and missing categories to a string."""
    X = X.copy()
    X["day"] = (X["day"] - pd.Timestamp("2026-01-01")).dt.days.astype(float)
    X[WORDS] = X[WORDS].astype(object).where(X[WORDS].notna(), "none")
    return X


def imputed(X):
    """Replace missing numbers by medians."""
    X = as_numbers(X)
    X[NUMBERS] = SimpleImputer(strategy="median").fit_transform(X[NUMBERS])
    return X


def smotenc(seed):
    return SMOTENC(categorical_features=WORDS, random_state=seed)


def pnl(seed, **params):
    return PNLSampler(categorical_features="auto", random_state=seed, **params)


def pnl_without_atoms(seed):
    """Mix values that many rows share, and do not round."""
    return pnl(seed, value_support=None)


# A sampler and the step before it; `as_numbers` comes last if no earlier step converts.
WAYS = {
    "no new rows": (None, None),
    "no new rows, imputed": (None, imputed),
    "SMOTE-NC, imputed": (smotenc, imputed),
    "PNLSampler": (pnl, None),
    "PNLSampler, imputed": (pnl, imputed),
    "PNLSampler, value_support=None": (pnl_without_atoms, None),
}


def score(seed, way, n):
    """Score boosting after one of the ways, fitted on n rows and scored on 20,000."""
    train, y_train = payments(seed, n)
    test, y_test = payments(seed + 1_000, 20_000)
    make, before = WAYS[way]
    rows, labels = train if before is None else before(train), y_train
    if make is not None:
        rows, labels = make(seed).fit_resample(rows, labels)
    if before is None:
        before, rows = as_numbers, as_numbers(rows)
    test = before(test)
    coder = OrdinalEncoder().fit(pd.concat([rows[WORDS], test[WORDS]]))
    tables = [
        np.column_stack([part[NUMBERS].to_numpy(float), coder.transform(part[WORDS])])
        for part in (rows, test)
    ]
    model = HistGradientBoostingClassifier(categorical_features=[6, 7], random_state=0)
    chance = model.fit(tables[0], labels).predict_proba(tables[1])[:, 1]
    # Without sampling the threshold is moved to the prevalence.
    threshold = 0.5 if make is not None else y_train.mean()
    return {
        "average precision": average_precision_score(y_test, chance),
        "ROC AUC": roc_auc_score(y_test, chance),
        "balanced accuracy": balanced_accuracy_score(y_test, chance > threshold),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    rows = [
        {"rows": n, "way": way, "seed": seed, **score(seed, way, n)}
        for n in SIZES
        for seed in range(options.seeds)
        for way in WAYS
    ]
    write_csv(rows, "payments")
    means = [
        {"rows": n, "way": way}
        | {
            name: float(np.mean([row[name] for row in own]))
            for name in ("average precision", "ROC AUC", "balanced accuracy")
        }
        for (n, way), own in grouped(rows, "rows", "way").items()
    ]
    print(markdown(means))


if __name__ == "__main__":
    main()
