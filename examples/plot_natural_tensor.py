"""
========================
Read a table as a tensor
========================

The breast cancer table has 30 columns: the mean, the error and the worst value of 10
measurements. The columns form a 3 x 10 tensor, which ``TensorPoset((3, 10))`` describes
for the flat columns. Order 1 preserves the sums over each statistic and over each
measurement.

The interaction energy shows how well the tensor describes the rows. The energy of a
row, its divergence from the uniform distribution, is the sum of the energies of all
orders. With the natural tensor, order 1 has most of the energy. With shuffled columns,
order 1 has much less.
"""

# %%
# Columns as a tensor
# -------------------
import matplotlib.pyplot as plt
import numpy as np
from imblearn.pipeline import make_pipeline
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from sklearn_pnl import Codes, ManyBodyProjector, PNLSampler
from sklearn_pnl.geometry import TensorPoset, energy_decomposition

data = load_breast_cancer()
print(data.feature_names.reshape(3, 10)[:, :3])
X = data.data / data.data.mean(axis=0)
natural = TensorPoset((3, 10))

# %%
# Energy by order
# ---------------
columns = {
    "as they are": np.arange(30),
    "shuffled": np.random.default_rng(0).permutation(30),
}
figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
for axis, (name, order) in zip(axes, columns.items(), strict=True):
    measures = X[:, order].reshape(-1, *natural.shape) + 1e-3
    p = measures / measures.sum(axis=(1, 2), keepdims=True)
    energies = energy_decomposition(p, natural)
    share = energies.sum(axis=0) / energies.sum()
    axis.boxplot(energies, showfliers=False)
    axis.set_title(f"columns {name}: {share[0]:.0%} in order 1")
    axis.set(xlabel="order of the interactions", ylabel="energy of a row (nats)")
    axis.label_outer()
    print(
        f"columns {name:12} energy in order 1: {share[0]:.1%}, order 2: {share[1]:.1%}"
    )
plt.show()

# %%
# The same poset in a sampler
# ---------------------------
# The training data contain 30 malignant and 357 benign tumours.
rare = np.flatnonzero(data.target == 0)[:30]
rows = np.concatenate([np.flatnonzero(data.target == 1), rare])
X_rare, y_rare = data.data[rows], (data.target[rows] == 0).astype(int)
projector = ManyBodyProjector(1, poset=natural, offset=1e-3, with_mass=True)
methods = {
    "3 x 10": Codes(projector, embedding=MaxAbsScaler()),
    "prime factors": Codes(1, offset=1e-3, embedding=MaxAbsScaler()),
    "no structure": "lines",
}
for name, method in methods.items():
    sampler = PNLSampler(method=method, random_state=0)
    pipeline = make_pipeline(
        sampler, StandardScaler(), LogisticRegression(max_iter=1000)
    )
    scores = cross_val_score(pipeline, X_rare, y_rare, scoring="average_precision")
    print(f"sampler on {name:14} average precision {scores.mean():.3f}")

# %%
# The scores do not differ. The structure describes which part of a row order 1
# preserves, and does not improve a linear model. The default of the sampler uses no
# structure.
