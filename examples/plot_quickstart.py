"""
==========================================
Over-sample a rare digit in a Pipeline
==========================================

Only 30 images of the digit 8 are left among 406 images of the others. A
:class:`~sklearn_pnl.PNLSampler` in the Pipeline makes new ones inside every training
fold. It stands beside no resampling, random over-sampling with noise, and SMOTE. Each
is tuned alike: ``GridSearchCV`` chooses one of four settings inside of each training
fold, and the scores are those on the rows left out. What is searched is what makes
sense for images: whether a code keeps the whole image, or interactions of low order.

The picture shows what the sampler does to the rare class: rows, their projections on
the base, new rows, and the training row closest to each new one.
"""

# %%
# An imbalanced problem from real data
# ------------------------------------
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import Pipeline
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances_argmin
from sklearn.model_selection import (
    GridSearchCV,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pnl import Codes, PNLSampler, PrimeFactorReshaper

RARE, N_RARE = 8, 30
SCORES = {
    "average precision": "average_precision",
    "balanced accuracy": "balanced_accuracy",
    "recall of the rare class": "recall",
}

digits = load_digits()
rng = np.random.default_rng(0)
rare = rng.choice(np.flatnonzero(digits.target == RARE), N_RARE, replace=False)
rows = np.concatenate([np.flatnonzero(digits.target != RARE)[::4], rare])
X, y = digits.data[rows], (digits.target[rows] == RARE).astype(int)
print(f"{len(y)} images of 8 x 8 pixels, {y.sum()} of the rare class")

# %%
# Four Pipelines, a search each
# -----------------------------
# Pixels are non-negative already, so they need no embedding; the reshaper is told
# that 64 values are an image of 8 x 8, and makes it a tensor of shape (2, 2, 2, 2, 2,
# 2).
method = Codes(reshaper=PrimeFactorReshaper((8, 8)), embedding=None)
pnl = PNLSampler(method=method, random_state=0)
rivals = {
    "no resampling": ("passthrough", {"classifier__n_neighbors": [1, 3, 5, 9]}),
    "random, with noise": (
        RandomOverSampler(random_state=0),
        {"sampler__shrinkage": [0.0, 0.1, 0.3, 0.5]},
    ),
    "SMOTE": (SMOTE(random_state=0), {"sampler__k_neighbors": [2, 3, 5, 8]}),
    "PNL": (pnl, {"sampler__method__order": [None, 2], "sampler__k_neighbors": [3, 8]}),
}


def tuned(sampler, grid):
    steps = [("sampler", sampler), ("classifier", KNeighborsClassifier())]
    within = StratifiedKFold(3, shuffle=True, random_state=1)
    return GridSearchCV(Pipeline(steps), grid, scoring="average_precision", cv=within)


# %%
# Scores
# ------
# With six rare images in a fold chance is large: the standard error over folds is in
# brackets.
folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
print("".join(f"{name:>26}" for name in ["2 x 5 folds, k-NN", *SCORES]))
for name, rival in rivals.items():
    found = cross_validate(tuned(*rival), X, y, scoring=SCORES, cv=folds)
    scores = [found[f"test_{score}"] for score in SCORES]
    told = [f"{s.mean():.3f} ({s.std() / len(s) ** 0.5:.3f})" for s in scores]
    print("".join(f"{text:>26}" for text in [name, *told]))

# %%
# What the new rows look like
# ---------------------------
search = tuned(*rivals["PNL"]).fit(X, y)
print(search.best_params_)
sampler = search.best_estimator_.named_steps["sampler"]
new = sampler.fit_resample(X, y)[0][len(X) :][:8]
shown = {
    "training rows": X[sampler.parent_indices_[:8, 0]],
    "new rows": new,
    "closest\ntraining rows": X[pairwise_distances_argmin(new, X)],
}
figure, axes = plt.subplots(len(shown), 8, figsize=(8, 3.4), layout="constrained")
figure.suptitle(f"New images of the digit {RARE} from {N_RARE} training images")
for line, (name, rows) in zip(axes, shown.items(), strict=True):
    for axis, row in zip(line, rows, strict=True):
        axis.imshow(row.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
picture = Path("quickstart.png").resolve()
figure.savefig(picture, dpi=150)
print(f"\npicture saved: {picture}")
plt.show()
