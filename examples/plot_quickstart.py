"""
==========================================
Over-sample a minority class in a pipeline
==========================================

The data contain all 357 benign tumours of the breast cancer data and 30 malignant
tumours, which each of five seeds draws anew. :class:`~sklearn_pnl.PNLSampler` is a step
of a pipeline and adds rows of the minority class to the training folds, until there is
one row of the minority class for three rows of the majority class.

The example compares two classifiers without new rows, with rows of SMOTE and with rows
of the package. :doc:`/when_to_oversample` has the results on many tables.

The picture shows the new rows of the minority class. Without a display, the picture is
written to a file.
"""

# %%
# An imbalanced table
# -------------------
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import make_pipeline
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from sklearn_pnl import PNLSampler

N_RARE, SEEDS = 30, range(5)
table = load_breast_cancer()
is_malignant = table.target == 0


def imbalanced(seed):
    """Return all benign tumours and some malignant tumours, with label 1."""
    rng = np.random.default_rng(seed)
    rare = rng.choice(np.flatnonzero(is_malignant), N_RARE, replace=False)
    rows = np.concatenate([np.flatnonzero(~is_malignant), rare])
    return table.data[rows], is_malignant[rows].astype(int)


X, y = imbalanced(seed=0)
print(f"{len(y)} rows of {X.shape[1]} columns, {y.sum()} of the minority class")

# %%
# Comparison with two classifiers
# -------------------------------
# Each score is a mean over two folds and five seeds. The standard error over the seeds
# is shown in brackets. Differences of about one standard error can be due to chance.
LEARNERS = {
    "random forest": (RandomForestClassifier(),),
    "5 neighbours": (StandardScaler(), KNeighborsClassifier()),
}
SCORES = {"average precision": "average_precision", "AUC": "roc_auc"}


def models(steps):
    """Return the three models of a classifier by name."""
    return {
        "no new rows": make_pipeline(*steps),
        "SMOTE": make_pipeline(SMOTE(sampling_strategy=1 / 3), *steps),
        "PNLSampler": make_pipeline(PNLSampler(sampling_strategy=1 / 3), *steps),
    }


def scores(model, seed):
    """Return the mean scores over the folds of one seed."""
    seeded = {
        name: seed for name in model.get_params() if name.endswith("random_state")
    }
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    found = cross_validate(
        model.set_params(**seeded), *imbalanced(seed), scoring=SCORES, cv=folds
    )
    return [found[f"test_{name}"].mean() for name in SCORES]


for learner, steps in LEARNERS.items():
    print("".join(f"{name:>21}" for name in [learner, *SCORES]))
    for name, model in models(steps).items():
        found = np.array([scores(model, seed) for seed in SEEDS])
        errors = found.std(axis=0, ddof=1) / len(SEEDS) ** 0.5
        pairs = zip(found.mean(axis=0), errors, strict=True)
        cells = [f"{mean:.3f} ({error:.3f})" for mean, error in pairs]
        print("".join(f"{text:>21}" for text in [name, *cells]))

# %%
# New rows improve nearest neighbours. The differences between both samplers are smaller
# than a standard error. What only this package does is to satisfy relations between
# columns, types, constraints and totals, see the next examples.

# %%
# The new rows
# ------------
# New rows lie between neighbouring rows, with noise in the shape of the neighbourhood.
sampler = PNLSampler(sampling_strategy=1 / 3, random_state=0)
new = sampler.fit_resample(X, y)[0][len(X) :]
columns = [list(table.feature_names).index(f"worst {name}") for name in
           ("concave points", "texture")]  # fmt: skip
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for rows, label, colour, size in (
    (X[y == 0], "benign", "lightgrey", 12),
    (new, "new rows", "tab:orange", 12),
    (X[y == 1], f"malignant, {N_RARE} rows", "tab:blue", 30),
):
    axis.scatter(*rows[:, columns].T, s=size, c=colour, label=label)
axis.set(**dict(zip(("xlabel", "ylabel"), table.feature_names[columns], strict=True)))
axis.legend()
# The gallery of the site shows the figure itself.
if plt.get_backend().lower() == "agg" and "sphinx_gallery" not in sys.modules:
    path = Path(tempfile.mkdtemp(), "new_rows.png")
    figure.savefig(path)
    print(f"Picture: {path}")
else:
    plt.show()
