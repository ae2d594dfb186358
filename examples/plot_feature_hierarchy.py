"""
=============================
Model a hierarchy of features
=============================

The chemical features of the wine data form a hierarchy. Flavanoids and nonflavanoid
phenols are phenols, proanthocyanins are flavanoids, the alcalinity of ash belongs to
ash, and hue and OD280/OD315 depend on the colour. If the hierarchy is written as a
poset, with each child above its parent, the theta of a child is the log ratio of the
child to its parent.

If only the coordinates of the group heads are free, the sampler varies the amount of
each group and takes the proportions inside a group from the neighbours. The picture
shows how much the proportions of new rows differ from those of the neighbours. With the
hierarchy they do not differ. SMOTE, or a tensor of shape (7, 2), from 13 features and
one padded cell, mixes them.
"""

# %%
# The hierarchy
# -------------
import matplotlib.pyplot as plt
import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.datasets import load_wine
from sklearn.preprocessing import MaxAbsScaler

from sklearn_pnl import Codes, ManyBodyProjector, PNLSampler
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
# The model
# ---------
# Seven features have no parent. A bottom, element 0, is added below the features, so
# that feature i is element i + 1. The base is the list of the group heads.
parents = [names.index(parent_of[name]) if name in parent_of else -1 for name in names]
poset = tree_poset(parents, add_bottom=True)
heads = [1 + x for x, parent in enumerate(parents) if parent == -1]

settings = {
    "k_neighbors": 1,
    # A value that is reflected at a bound would have another proportion.
    "extrapolation": None,
    "sampling_strategy": {2: 148},
    "random_state": 0,
}
codes = {"draws": "kde", "embedding": MaxAbsScaler()}
hierarchy = ManyBodyProjector(poset=poset, base=heads, offset=1e-6, with_mass=True)
samplers = {
    "hierarchy, heads free": PNLSampler(method=Codes(hierarchy, **codes), **settings),
    "tensor of prime factors": PNLSampler(
        method=Codes(1, offset=1e-6, **codes), **settings
    ),
    "SMOTE": SMOTE(sampling_strategy={2: 148}, random_state=0),
}

# %%
# Proportions inside the groups
# -----------------------------
# For each new row, the distance of the log ratios inside the groups to those of the
# nearest training row of the class.
X, y = wine.data, wine.target
children = [x for x, parent in enumerate(parents) if parent != -1]


def log_ratios(rows):
    """Return the log ratio of each child to its parent, one column per child."""
    return np.log(rows[:, children] / rows[:, [parents[x] for x in children]])


deviations = {}
for name, sampler in samplers.items():
    new = sampler.fit_resample(X, y)[0][len(X) :]
    gap = np.abs(log_ratios(new)[:, None] - log_ratios(X[y == 2])).max(axis=2)
    deviations[name] = gap = gap.min(axis=1)
    print(
        f"{name:26} {len(new)} new rows; largest |log ratio - nearest row's log ratio|:"
        f" median {np.median(gap):.1e}, largest {gap.max():.1e}"
    )

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.boxplot(list(deviations.values()), orientation="horizontal", whis=(0, 100))
axes.set_yticks([1, 2, 3], list(deviations))
axes.set(
    title="Proportions inside the groups: new rows against the nearest",
    xlabel="largest change of a log ratio (box: quartiles, whiskers: all)",
)
plt.show()
