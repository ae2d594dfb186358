"""Columns that keep their marks: values of new rows, and a table as of card payments.

``python -m benchmarks.mixed.marks``: first whether new rows have whole numbers, cents,
half steps, shares of zeros and of caps as the data have, raw and after two scalers, and
how many copy a training row; then boosting on a made frame of payments with
categories, dates, counts, cents and a tenth of the cells missing, one row in a hundred
a fraud, behind several ways to balance it.
"""

import sys

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
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler

from sklearn_pnl import PNLSampler

from ..tables import write_csv

SEEDS = range(10)
# Rows of payments, one in a hundred of them a fraud.
SIZES = 5_000, 10_000
SCALERS = {"raw": None, "standard": StandardScaler, "minmax": MinMaxScaler}
NUMBERS = ["amount", "balance", "visits", "items", "fee", "day"]
WORDS = ["shop", "country"]


# --- values ----------------------------------------------------------------------


def amounts(rng, n):
    """Whole numbers, cents, half steps, many zeros, a cap."""
    size = rng.normal(size=n)
    columns = {
        "whole": rng.poisson(np.exp(2 + size / 2)),
        "cents": np.round(np.exp(3 + 0.8 * size + 0.5 * rng.normal(size=n)), 2),
        "halves": np.round(2 * rng.gamma(3.0, size=n)) / 2,
        "zeros": np.where(rng.random(n) < 0.6, 0, rng.gamma(2.0, size=n)),
        "cap": np.minimum(rng.gamma(2.0, size=n) * np.exp(size / 4), 4.0),
    }
    return np.column_stack(list(columns.values())).astype(float)


def marks_of(seed, scaler):
    """What new rows of a class of 200 in 2,000 show, in the units that were made."""
    rng = np.random.default_rng(seed)
    X, y = amounts(rng, 2_000), np.arange(2_000) < 200
    scaler = scaler and scaler().fit(X)
    given = X if scaler is None else scaler.transform(X)
    new = PNLSampler(random_state=seed).fit_resample(given, y)[0][2_000:]
    new = new if scaler is None else scaler.inverse_transform(new)
    own, fresh = X[y], amounts(rng, len(new))
    off = [np.abs(new[:, j] * k - np.rint(new[:, j] * k)).max() / k / np.ptp(X[:, j])
           for j, k in ((0, 1), (1, 100), (2, 2))]  # fmt: skip
    shares = [np.abs(rows[:, 3]) < 1e-9 for rows in (new, own)]
    caps = [np.abs(rows[:, 4] - 4) < 1e-9 for rows in (new, own)]
    within = [
        abs(a.mean() - b.mean()) <= 2 * np.sqrt(b.mean() * (1 - b.mean()) / len(b))
        for a, b in (shares, caps)
    ]
    return {
        "off the grid": max(off),
        "zeros, new": shares[0].mean(),
        "zeros, class": shares[1].mean(),
        "caps, new": caps[0].mean(),
        "caps, class": caps[1].mean(),
        "spikes within two errors": np.mean(within),
        "copies": _copied(new, own),
        "copies, fresh rows": _copied(fresh, own),
    }


def _copied(rows, known):
    known = {row.tobytes() for row in np.round(known, 9) + 0.0}
    return np.mean([row.tobytes() in known for row in np.round(rows, 9) + 0.0])


# --- payments --------------------------------------------------------------------


def payments(seed, n):
    """A frame, and which of its rows are frauds: one in a hundred."""
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
    """The same with dates as days, and words for missing categories."""
    X = X.copy()
    X["day"] = (X["day"] - pd.Timestamp("2026-01-01")).dt.days.astype(float)
    X[WORDS] = X[WORDS].astype(object).where(X[WORDS].notna(), "none")
    return X


def none(X, y, seed):
    """As they are."""
    return as_numbers(X), y


def none_imputed(X, y, seed):
    """Behind ``SimpleImputer``."""
    return imputed(X), y


def smotenc(X, y, seed):
    """SMOTE-NC, which takes neither dates nor holes."""
    X = imputed(X)
    sampler = SMOTENC(categorical_features=WORDS, random_state=seed)
    return sampler.fit_resample(X, y)


def pnl(X, y, seed):
    """As the frame is."""
    sampler = PNLSampler(categorical_features="auto", random_state=seed)
    X, y = sampler.fit_resample(X, y)
    return as_numbers(X), y


def imputed(X):
    """Medians for what is missing."""
    X = as_numbers(X)
    X[NUMBERS] = SimpleImputer(strategy="median").fit_transform(X[NUMBERS])
    return X


def pnl_imputed(X, y, seed):
    """Behind ``SimpleImputer``."""
    sampler = PNLSampler(categorical_features="auto", random_state=seed)
    return sampler.fit_resample(imputed(X), y)


def pnl_then_imputed(X, y, seed):
    """As the frame is; what the learner sees has no holes all the same."""
    X, y = PNLSampler(random_state=seed).fit_resample(X, y)
    return imputed(X), y


def pnl_off(X, y, seed):
    """Without marks."""
    sampler = PNLSampler(categorical_features="auto", marks=None, random_state=seed)
    X, y = sampler.fit_resample(X, y)
    return as_numbers(X), y


WAYS = {
    "no new rows": none,
    "no new rows, imputed": none_imputed,
    "SMOTE-NC, imputed": smotenc,
    "PNLSampler": pnl,
    "PNLSampler, imputed": pnl_imputed,
    "PNLSampler, then imputed": pnl_then_imputed,
    "PNLSampler, marks=None": pnl_off,
}


def score(seed, way, n):
    """Boosting behind one of the ways, on n rows; many others are asked."""
    train, y_train = payments(seed, n)
    test, y_test = payments(seed + 1_000, 20_000)
    more, labels = WAYS[way](train, y_train, seed)
    test = imputed(test) if "imputed" in way else as_numbers(test)
    coder = OrdinalEncoder().fit(pd.concat([more[WORDS], test[WORDS]]))
    tables = [
        np.column_stack([part[NUMBERS].to_numpy(float), coder.transform(part[WORDS])])
        for part in (more, test)
    ]
    model = HistGradientBoostingClassifier(categorical_features=[6, 7], random_state=0)
    chance = model.fit(tables[0], labels).predict_proba(tables[1])[:, 1]
    threshold = y_train.mean() if way.startswith("no new rows") else 0.5
    return {
        "average precision": average_precision_score(y_test, chance),
        "ROC AUC": roc_auc_score(y_test, chance),
        "balanced accuracy": balanced_accuracy_score(y_test, chance > threshold),
    }


def main(seeds=SEEDS):
    """Measure, write, print."""
    rows = []
    for name, scaler in SCALERS.items():
        for seed in seeds:
            rows.append({"units": name, "seed": seed, **marks_of(seed, scaler)})
    write_csv(rows, "marks-values")
    print(pd.DataFrame(rows).drop(columns="seed").groupby("units").mean().T.to_string())
    rows = [
        {"rows": n, "way": way, "seed": seed, **score(seed, way, n)}
        for n in SIZES
        for seed in seeds
        for way in WAYS
    ]
    write_csv(rows, "marks-payments")
    means = pd.DataFrame(rows).drop(columns="seed").groupby(["rows", "way"]).mean()
    print(means.to_string())


if __name__ == "__main__":
    main(range(int(sys.argv[1])) if sys.argv[1:] else SEEDS)
