"""
==========================================
Features with a known hierarchy
==========================================

The chemistry of the wine data is a hierarchy: flavanoids and nonflavanoid phenols are
kinds of phenols, proanthocyanins are flavanoids, the alcalinity of ash belongs to
ash, and hue and OD280/OD315 are read off the colour. Written as a poset, a child above
its parent, the coordinates have a meaning: theta of a child is the log of its ratio to
its parent.

Freeing the coordinates of the group heads alone gives a sampler that varies how much
there is of each group, and takes the proportions inside a group from the neighbours.
The picture shows how far the proportions of new rows are from those: not at all, while
a tensor made from the prime factors of 13 features, or SMOTE, mixes them.
"""

# %%
# The hierarchy, in names
# -----------------------
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.datasets import load_wine
from sklearn.preprocessing import MaxAbsScaler

from sklearn_pnl import PNLSampler
from sklearn_pnl.geometry import tree_poset

wine = load_wine()
names = wine.feature_names
parent_of = {
    "flavanoids": "total_phenols",
    "nonflavanoid_phenols": "total_phenols",
    "proanthocyanins": "flavanoids",
    "alcalinity_of_ash": "ash",
    "hue": "color_intensity",
    "od280/od315_of_diluted_wines": "color_intensity",
}

# %%
# The model, in three lines
# -------------------------
# Seven features have no parent, so a bottom is added below them: element 0. A feature
# is then the element after it, and the base is the list of the group heads.
parents = [names.index(parent_of[name]) if name in parent_of else -1 for name in names]
poset = tree_poset(parents, add_bottom=True)
heads = [1 + x for x, parent in enumerate(parents) if parent == -1]

settings = {
    "embedding": MaxAbsScaler(),
    "augment": "kde",
    "offset": 1e-6,
    # Reflecting a value at the end of a range would change its proportion.
    "margin": None,
    "sampling_strategy": {2: 148},
    "random_state": 0,
}
samplers = {
    "hierarchy, heads free": PNLSampler(poset=poset, base=heads, **settings),
    "tensor of prime factors": PNLSampler(reshaper="prime", **settings),
    "SMOTE": SMOTE(sampling_strategy={2: 148}, random_state=0),
}

# %%
# What the choice preserved
# -------------------------
# Proportions of each new row against those of the nearest mean of rows of its class:
# for PNL the mean of its parents, for SMOTE the best of the means of five neighbours.
X, y = wine.data, wine.target
children = [x for x, parent in enumerate(parents) if parent != -1]


def log_ratios(rows):
    """Log ratio of each child to its parent, a column each."""
    return np.log(rows[:, children] / rows[:, [parents[x] for x in children]])


def mean_of_parents(sampler, new):
    """The mean of distributions that a new row was decoded from."""
    if hasattr(sampler, "parent_indices_"):
        rows = X[sampler.parent_indices_] / X[y == 2].max(axis=0)
    else:
        scale = X[y == 2].max(axis=0)
        members = X[y == 2] / scale
        gap = ((new[:, None] / scale - members) ** 2).sum(axis=2)
        rows = members[np.argsort(gap, axis=1)[:, :5]]
    shares = rows / rows.sum(axis=2, keepdims=True)
    return shares.mean(axis=1) * X[y == 2].max(axis=0)


deviations = {}
for name, sampler in samplers.items():
    new = sampler.fit_resample(X, y)[0][len(X) :]
    gap = log_ratios(new) - log_ratios(mean_of_parents(sampler, new))
    deviations[name] = gap = np.abs(gap).ravel()
    print(
        f"{name:26} {len(new)} new rows; |log ratio - neighbours' log ratio|: "
        f"median {np.median(gap):.1e}, largest {gap.max():.1e}"
    )

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.boxplot(list(deviations.values()), orientation="horizontal", whis=(0, 100))
axes.set_yticks([1, 2, 3], list(deviations))
axes.set_xlabel("change of a log ratio inside a group")
picture = Path("feature_hierarchy.png").resolve()
figure.savefig(picture, dpi=150)
print(f"picture saved: {picture}")
