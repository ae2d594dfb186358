"""
==========================================
Over-sample a rare digit in a Pipeline
==========================================

Only 30 images of the digit 8 are left among 1,623 images of the others. A
:class:`~sklearn_pnl.PNLSampler` in the Pipeline makes new ones inside every training
fold; ``GridSearchCV`` chooses the order of the interactions that a code keeps and the
number of rows that a new one is decoded from. The scores stand beside those without
resampling and with SMOTE.

The picture shows what the sampler does to the rare class: rows, their projections on
the base, new rows, and the training row closest to each new one.
"""

# %%
# An imbalanced problem from real data
# ------------------------------------
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from imblearn.over_sampling import SMOTE
from imblearn.pipeline import Pipeline
from sklearn.datasets import load_digits
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import (
    GridSearchCV,
    RepeatedStratifiedKFold,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from sklearn_pnl import ManyBodyProjector, PNLSampler, PrimeFactorReshaper

RARE, N_RARE = 8, 30
SCORES = {
    "balanced accuracy": "balanced_accuracy",
    "average precision": "average_precision",
    "recall of the rare class": make_scorer(recall_score),
}

digits = load_digits()
rng = np.random.default_rng(0)
rare = rng.choice(np.flatnonzero(digits.target == RARE), N_RARE, replace=False)
rows = np.concatenate([np.flatnonzero(digits.target != RARE), rare])
X, y = digits.data[rows], (digits.target[rows] == RARE).astype(int)
print(f"{len(y)} images of 8 x 8 pixels, {y.sum()} of the rare class")

# %%
# Three Pipelines, one search
# ---------------------------
# Pixels are non-negative already, so they need no embedding; the reshaper is told
# that 64 values are an image of 8 x 8, and makes it a tensor of shape (2, 2, 2, 2, 2,
# 2).
sampler = PNLSampler(
    reshaper=PrimeFactorReshaper((8, 8)), embedding=None, random_state=0
)
pipeline = Pipeline([("sampler", sampler), ("classifier", KNeighborsClassifier())])
grid = {"sampler__order": [1, 2, 3], "sampler__k_neighbors": [1, 5]}
folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
search = GridSearchCV(
    pipeline,
    grid,
    scoring=SCORES,
    refit="average precision",
    cv=folds,
    error_score="raise",
)
search.fit(X, y)
best = {
    name.removeprefix("sampler__"): value for name, value in search.best_params_.items()
}

# %%
# Scores
# ------
# The best of a grid is a little optimistic; the spread over the grid is shown too.
table = {}
for name, step in {
    "no resampling": "passthrough",
    "SMOTE": SMOTE(random_state=0),
}.items():
    rival = Pipeline([("sampler", step), ("classifier", KNeighborsClassifier())])
    found = cross_validate(rival, X, y, scoring=SCORES, cv=folds, error_score="raise")
    table[name] = [found[f"test_{score}"].mean() for score in SCORES]
results = search.cv_results_
for name, pick in {
    f"PNL, best of 6: {best}": lambda means: means[search.best_index_],
    "PNL, worst of 6": np.min,
}.items():
    table[name] = [pick(results[f"mean_test_{score}"]) for score in SCORES]

print(
    f"\n{'5-fold, twice, 5 nearest neighbours':52}"
    + "".join(f"{s:>26}" for s in SCORES)
)
for name, values in table.items():
    print(f"{name:52}" + "".join(f"{value:26.3f}" for value in values))

# %%
# What the new rows look like
# ---------------------------
sampler = search.best_estimator_.named_steps["sampler"]
X_new, y_new = sampler.fit_resample(X, y)
new, parents = X_new[len(X) :][:8], sampler.parent_indices_[:8, 0]
shown = X[parents]
projector = ManyBodyProjector(
    order=best["order"], offset=sampler.offset, with_mass=True
)
tensors = PrimeFactorReshaper((8, 8)).fit_transform(shown)
projected = projector.inverse_transform(projector.fit_transform(tensors))
closest = NearestNeighbors(n_neighbors=1).fit(X[y == 1]).kneighbors(new)[1][:, 0]

panels = {
    "rows": shown,
    f"projections on B\n(order {best['order']})": projected,
    "new rows": new,
    "closest\ntraining rows": X[y == 1][closest],
}
figure, axes = plt.subplots(4, 8, figsize=(8, 4.4), layout="constrained")
for line, (title, images) in zip(axes, panels.items(), strict=True):
    for axis, image in zip(line, images, strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(title, rotation=0, ha="right", va="center")
figure.suptitle(f"New images of the digit {RARE} from {N_RARE} training images")
picture = Path("quickstart.png").resolve()
figure.savefig(picture, dpi=150)
print(f"\npicture saved: {picture}")
plt.show()
