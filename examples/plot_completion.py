"""
====================================
Impute the missing cells of a tensor
====================================

Counters record the cars on ten streets by day and hour, and some counts are missing. A
log-linear model of order 2 describes the interactions between streets, days and hours
in pairs. Fitting the model to the observed counts is a convex problem, and its solution
predicts the missing counts. This example compares :class:`~sklearn_pnl.ManyBodyImputer`
with imputers for tables, and with a non-negative CP decomposition if ``tensorly`` is
installed.
"""

# %%
# Counts with missing cells
# -------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from sklearn_pnl import ManyBodyImputer

try:
    import tensorly
    from tensorly.decomposition import non_negative_parafac_hals
except ImportError:
    tensorly = None

rng = np.random.default_rng(0)
day, hour = np.arange(28), np.arange(24)
rushes = np.exp(-((hour - rng.normal([[8], [17]], 0.5, size=(10, 2, 1))) ** 2) / 6)
at_work = np.where(day % 7 < 5, 1.0, 0.3)[:, None]
rates = 0.3 + np.einsum("dk,skh->sdh", at_work, rushes)
rates *= rng.gamma(3.0, 40.0, size=(10, 1, 1)) * (1.2 - 0.2 * np.cos(day / 4))[:, None]
cars = rng.poisson(rates).astype(float)


# %%
# Imputation by several methods
# -----------------------------
# For the imputers of tables, a day of a street is a row with 24 columns.
def many_body(given):
    imputer = ManyBodyImputer(order=2, ordered_modes=[2])
    return imputer.fit_transform(given[None])[0]


def by_rows(imputer):
    def fill(given):
        return imputer.fit_transform(given.reshape(-1, 24)).reshape(given.shape)

    return fill


def decomposition(given, rank=4):
    missing, found = np.isnan(given), "svd"
    filled = np.where(missing, np.nanmean(given), given)
    for _ in range(20):
        found = non_negative_parafac_hals(filled, rank, n_iter_max=10, init=found)
        filled = np.where(missing, tensorly.cp_to_tensor(found), given)
    return filled


WAYS = {
    "many-body": many_body,
    "KNNImputer": by_rows(KNNImputer(keep_empty_features=True)),
    "IterativeImputer": by_rows(IterativeImputer(min_value=0, max_iter=30, tol=0.1)),
}
if tensorly is not None:
    WAYS["non-negative CP"] = decomposition

# %%
# Error and share of missing cells
# --------------------------------
# The counts are random. The last line is the error of a prediction by the true rates.
SHARES = [0.1, 0.3, 0.5, 0.7, 0.8]
errors = {name: [] for name in [*WAYS, "the true rates"]}
for share in SHARES:
    missing = rng.random(cars.shape) < share
    given = np.where(missing, np.nan, cars)
    for name in errors:
        filled = rates if name not in WAYS else WAYS[name](given)
        misses = (filled - cars)[missing]
        errors[name].append(np.linalg.norm(misses) / np.linalg.norm(cars[missing]))
print(f"{'missing':>18}", *(f"{share:6.0%}" for share in SHARES))
for name, found in errors.items():
    print(f"{name:>18}", *(f"{error:6.3f}" for error in found))

# %%
# The pictures
# ------------
# The pictures show a street with most cells missing.
filled = many_body(given)
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
shown = {"80% missing": given[0], "filled": filled[0], "counts": cars[0]}
for axis, (title, counts) in zip(axes, shown.items(), strict=False):
    axis.imshow(counts, cmap="Blues", vmin=0, vmax=cars[0].max(), aspect="auto")
    axis.set(title=title, xlabel="hour")
axes[0].set_ylabel("day")
for name, found in errors.items():
    axes[3].plot(SHARES, found, "k:" if name not in WAYS else "o-", label=name)
axes[3].set(xlabel="share missing", ylabel="relative error", ylim=(0, None))
axes[3].legend(fontsize="small")
plt.show()
