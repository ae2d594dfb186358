"""
==========================================
Over-sample a minority class in a pipeline
==========================================

The data contain all 357 benign tumours of the breast cancer data and 30 malignant
tumours, which each of five seeds draws anew. :class:`~sklearn_pnl.PNLSampler` is a step
of a pipeline and adds rows of the minority class to each training fold. The example
compares ``PNLSampler`` with no over-sampling, with noisy copies, and with SMOTE, at
their default parameters (except for the size of the noise).

On public tables, the ranking by gradient boosting and nearest neighbours gains from new
rows, and the ranking by logistic regression becomes worse. After over-sampling,
probabilities are those of balanced classes. :doc:`/when_to_oversample` shows the
results.

The picture shows the new rows of the minority class.
"""

# %%
# An imbalanced table
# -------------------
import matplotlib.pyplot as plt
import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_validate

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
# is shown in brackets.
SAMPLERS = {
    "no resampling": lambda seed: "passthrough",
    "noisy copies": lambda seed: RandomOverSampler(shrinkage=0.3, random_state=seed),
    "SMOTE": lambda seed: SMOTE(random_state=seed),
    "PNLSampler": lambda seed: PNLSampler(random_state=seed),
}
LEARNERS = {
    "boosting": GradientBoostingClassifier,
    "forest": RandomForestClassifier,
}
SCORES = {
    "average precision": "average_precision",
    "balanced accuracy": "balanced_accuracy",
    "recall": "recall",
    "Brier score": "neg_brier_score",
}


def scores(learner, sampler, seed):
    """Return the mean scores over the folds of one seed."""
    model = make_pipeline(sampler(seed), learner(random_state=seed))
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    found = cross_validate(model, *imbalanced(seed), scoring=SCORES, cv=folds)
    return [abs(found[f"test_{name}"].mean()) for name in SCORES]


for learner, kind in LEARNERS.items():
    print("".join(f"{name:>19}" for name in [learner, *SCORES]))
    for name, sampler in SAMPLERS.items():
        found = np.array([scores(kind, sampler, seed) for seed in SEEDS])
        errors = found.std(axis=0, ddof=1) / len(SEEDS) ** 0.5
        pairs = zip(found.mean(axis=0), errors, strict=True)
        told = [f"{mean:.3f} ({error:.3f})" for mean, error in pairs]
        print("".join(f"{text:>19}" for text in [name, *told]))

# %%
# The new rows
# ------------
# New rows lie between neighbouring rows, with noise in the shape of the neighbourhood.
new = PNLSampler(random_state=0).fit_resample(X, y)[0][len(X) :]
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
plt.show()
