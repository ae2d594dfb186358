"""
==========================================
Check generated rows before using them
==========================================

New rows can be copies of training rows in disguise, lie where no row lies, or lose what
ties the features together. :func:`~sklearn_pnl.compare_samples` looks for each of these
and says what it found, here for five ways to double the malignant tumours of the breast
cancer data.

Half of the tumours are held out. They say what is usual: how far a row that the sampler
never saw lies from the training rows, and whether a classifier can tell new rows from
real ones.
"""

# %%
# New rows
# --------
# Three samplers, and two that are wrong on purpose: one draws every feature by itself,
# the other has collapsed to a single row.
import matplotlib.pyplot as plt
import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from sklearn_pnl import PNLSampler, compare_samples
from sklearn_pnl.compare import SampleComparisonDisplay

MALIGNANT = 0
data = load_breast_cancer(as_frame=True)
X, X_test, y, y_test = train_test_split(
    data.data, data.target, test_size=0.5, stratify=data.target, random_state=0
)
train, test = X[y == MALIGNANT], X_test[y_test == MALIGNANT]

wanted = {MALIGNANT: 2 * len(train)}
samplers = {
    "RandomOverSampler": RandomOverSampler(sampling_strategy=wanted, random_state=0),
    "SMOTE": SMOTE(sampling_strategy=wanted, random_state=0),
    "PNLSampler": PNLSampler(sampling_strategy=wanted, random_state=0),
}
new = {
    name: sampler.fit_resample(X, y)[0].iloc[len(X) :]
    for name, sampler in samplers.items()
}
rng = np.random.default_rng(0)
new["one by one"] = train.apply(lambda column: rng.permutation(column))
new["collapsed"] = train.iloc[np.zeros(len(train), int)]

# %%
# The verdicts
# ------------
# Copies are found by their distance from the training rows, shuffled features by their
# correlations. Rows of SMOTE and of PNL lie nearer to the rows that they were made from
# than held-out rows do: an attack by nearest distance tells who was trained on, and a
# classifier tells them from held-out rows; 0.5 would be chance for either. Each
# threshold is the larger of a difference too small to matter and of what real rows
# show. None of this is a statement of privacy.
comparisons = {
    name: compare_samples(train, rows, X_test=test, random_state=0)
    for name, rows in new.items()
}
for name, found in comparisons.items():
    print(f"{name:20}{found.verdict}")
columns = ["status", "value", "baseline", "threshold"]
print(f"\n{comparisons['SMOTE'].to_frame()[columns].round(3)}")

# %%
# All numbers
# -----------
print(comparisons["PNLSampler"])

# %%
# The pictures
# ------------
# Left: the further the first curve lies to the left of the second, the more the new
# rows repeat the training rows. Middle: the features that differ most. Right: red
# correlations have grown, blue ones have shrunk.
for name in ("PNLSampler", "one by one"):
    figure = SampleComparisonDisplay(comparisons[name]).plot().figure_
    figure.suptitle(f"{name}: {comparisons[name].verdict}")
plt.show()
