"""
================================
Add rows to a regression problem
================================

:class:`~sklearn_pnl.PNLRegressionSampler` adds rows whose targets are the weighted
means of the targets of their parents. In a pipeline of imbalanced-learn, the rows are
added to each training fold. The example uses the 442 patients of the diabetes data and
repeated cross-validation to compare the sampler with no new rows, and with noisy copies
(the noise is a tenth of the standard deviation of each feature).

The picture shows the targets of the new rows, with the default and with
``row_weights="rarity"``.
"""

# %%
# Comparison with four regressors
# -------------------------------
# ``FunctionSampler`` of imbalanced-learn adds the noisy copies.
import matplotlib.pyplot as plt
import numpy as np
from imblearn import FunctionSampler
from imblearn.pipeline import make_pipeline
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, RepeatedKFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from sklearn_pnl import PNLRegressionSampler

X, y = load_diabetes(return_X_y=True)


def with_noise(X, y):
    """Return the rows and a noisy copy of each row."""
    rng = np.random.default_rng(0)
    noisy = X + 0.1 * X.std(axis=0) * rng.normal(size=X.shape)
    return np.vstack([X, noisy]), np.concatenate([y, y])


samplers = {
    "no new rows": None,
    "noisy copies": FunctionSampler(func=with_noise, validate=False),
    "PNL": PNLRegressionSampler(random_state=0),
}
learners = {
    "ridge": RidgeCV(np.logspace(-3, 2, 10)),
    "nearest neighbours": KNeighborsRegressor(10),
    "support vectors": SVR(C=100),
    "tree": DecisionTreeRegressor(min_samples_leaf=5, random_state=0),
}
folds = RepeatedKFold(n_splits=5, n_repeats=5, random_state=0)
print(f"{'R2, mean and deviation':24}", *(f"{name:>20}" for name in samplers))
for learner, model in learners.items():
    cells = []
    for sampler in samplers.values():
        whole = model if sampler is None else make_pipeline(sampler, model)
        scores = cross_val_score(whole, X, y, cv=folds)
        cells.append(f"{scores.mean():12.3f} +- {scores.std():.3f}")
    print(f"{learner:24}", *(f"{cell:>20}" for cell in cells))

# %%
# Ridge regression does not gain, because a new row is a weighted mean of two rows and
# of their targets, which adds no information for a linear model.
# Nearest neighbours and support vectors become worse, because a new row is nearer to
# its parents than rows are to each other. The tree also becomes worse, and loses most
# with noisy copies.

# %%
# Search for the number of rows
# -----------------------------
# A grid search chooses the number of new rows and the weights of the base rows.
pipeline = make_pipeline(PNLRegressionSampler(random_state=0), learners["tree"])
grid = {
    "pnlregressionsampler__n_samples": [0.5, 2.0],
    "pnlregressionsampler__row_weights": ["uniform", "rarity"],
}
search = GridSearchCV(pipeline, grid, cv=5).fit(X, y)
print(f"best of the search: {search.best_params_}, R2 {search.best_score_:.3f}")

# %%
# Targets of the new rows
# -----------------------
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
bins = np.linspace(y.min(), y.max(), 25)
axes.hist(y, bins, density=True, color="0.8", label="measured")
for weights in ("uniform", "rarity"):
    sampler = PNLRegressionSampler(n_samples=5.0, row_weights=weights, random_state=0)
    new = sampler.fit_resample(X, y)[1][len(y) :]
    axes.hist(
        new, bins, density=True, histtype="step", label=f"row_weights={weights!r}"
    )
axes.set(
    title="Targets of 442 patients and of new rows",
    xlabel="disease progression",
    ylabel="density",
)
axes.legend()
plt.show()
