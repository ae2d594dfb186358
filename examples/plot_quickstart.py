"""
==================================================
Over-sample rare rows in front of trees
==================================================

Of 569 tumours, described by 30 measurements, all 357 benign ones are kept and 30 of the
malignant ones, drawn anew by each of five seeds. A :class:`~sklearn_pnl.PNLSampler` in
the Pipeline makes new rows of the rare class inside every training fold. It stands
beside no resampling, random copies with noise, and SMOTE; all at their defaults, but
for the size of the noise.

On public tables new rows pay with boosting most, and then with forests; with logistic
regression they rank worse than none. Probabilities behind them are those of a table
with as many rare rows as common ones; of forests they have a larger Brier score.

The picture shows what the sampler does to the rare class.
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
    """All benign tumours and some malignant ones; 1 for these."""
    rng = np.random.default_rng(seed)
    rare = rng.choice(np.flatnonzero(is_malignant), N_RARE, replace=False)
    rows = np.concatenate([np.flatnonzero(~is_malignant), rare])
    return table.data[rows], is_malignant[rows].astype(int)


X, y = imbalanced(seed=0)
print(f"{len(y)} rows of {X.shape[1]} columns, {y.sum()} of the rare class")

# %%
# Four ways, two learners
# -----------------------
# Scores are means over two folds; behind them, in brackets, is the standard error
# over the seeds.
RIVALS = {
    "no resampling": lambda seed: "passthrough",
    "copies with noise": lambda seed: RandomOverSampler(
        shrinkage=0.3, random_state=seed
    ),
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


def scores(learner, rival, seed):
    """Means over the folds of one seed."""
    model = make_pipeline(rival(seed), learner(random_state=seed))
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    found = cross_validate(model, *imbalanced(seed), scoring=SCORES, cv=folds)
    return [abs(found[f"test_{name}"].mean()) for name in SCORES]


for learner, kind in LEARNERS.items():
    print("".join(f"{name:>19}" for name in [learner, *SCORES]))
    for name, rival in RIVALS.items():
        found = np.array([scores(kind, rival, seed) for seed in SEEDS])
        errors = found.std(axis=0, ddof=1) / len(SEEDS) ** 0.5
        pairs = zip(found.mean(axis=0), errors, strict=True)
        told = [f"{mean:.3f} ({error:.3f})" for mean, error in pairs]
        print("".join(f"{text:>19}" for text in [name, *told]))

# %%
# What the new rows look like
# ---------------------------
# They lie between rows near each other, with noise in the shape of their neighbourhood.
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
