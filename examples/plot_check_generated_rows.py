"""
=================
Evaluate new rows
=================

New rows can be disguised copies of training rows, lie where no real rows are, or lose
the dependence between features. :func:`~sklearn_pnl.compare_samples` checks each of
these faults. This example evaluates five ways to double the number of malignant tumours
in the breast cancer data.

Half of the tumours are held out. They define the baseline, which is the usual distance
between a real row and the training rows, and how well a classifier separates two
samples of real rows.
"""

# %%
# New rows
# --------
# Three samplers are evaluated, and two samplers that are wrong on purpose. The first
# wrong sampler samples every feature independently. The second wrong sampler has
# collapsed to a single row.
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
# The distance to the training rows reveals copies, and the correlations reveal shuffled
# features. The new rows of SMOTE and PNL lie nearer to the training rows than held-out
# rows do. Therefore an attack by the nearest distance identifies training rows, and a
# classifier separates new rows from held-out rows. Both AUCs would be 0.5 for rows that
# do not differ from held-out rows. A threshold allows a negligible difference from the
# baseline, or the sampling error if it is larger. No criterion is a statement about
# privacy.
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
# Left: if the first curve lies to the left of the second, new rows repeat training
# rows. Middle: the features with the largest differences. Right: correlations that are
# larger (red) or smaller (blue) than in the training rows.
for name in ("PNLSampler", "one by one"):
    figure = SampleComparisonDisplay(comparisons[name]).plot().figure_
    figure.suptitle(f"{name}: {comparisons[name].verdict}")
plt.show()
