"""
==========================================
Check generated rows before using them
==========================================

New rows can be copies of training rows in disguise, lie where no row lies, or lose what
ties the features together. :func:`~sklearn_pnl.compare_samples` counts each of these,
here for three samplers that double the malignant tumours of the breast cancer data.

Half of the tumours are held out. They say what is usual: how far a row that the sampler
never saw lies from the training rows, and whether a classifier can tell new rows from
real ones.
"""

# %%
# New rows of three samplers
# --------------------------
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from sklearn_pnl import PNLSampler, SampleComparisonDisplay, compare_samples

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

# %%
# The numbers
# -----------
# Copies are at distance 0. Rows of SMOTE lie between two training rows, and so nearer
# to them than rows usually are; those of PNL less so, at the price of correlations
# that change more. A classifier tells all of them from held-out rows; 0.5 would be
# chance.
comparisons = {}
for name, sampler in samplers.items():
    new = sampler.fit_resample(X, y)[0].iloc[len(X) :]
    found = compare_samples(train, new, X_test=test, random_state=0)
    comparisons[name] = found
    print(f"\n{name}\n{found}")

measures = {
    "distance ratio": "distance_ratio",
    "near-copies": "near_copy_share",
    "exact copies": "exact_copy_share",
    "AUC": "auc",
    "correlations": "mean_correlation_difference",
}
print(f"\n{'':20}" + "".join(f"{title:>16}" for title in measures))
for name, found in comparisons.items():
    values = "".join(f"{getattr(found, field):16.3f}" for field in measures.values())
    print(f"{name:20}{values}")

# %%
# The picture
# -----------
# The further the first curve lies to the left of the second, the more the new rows
# repeat the training rows.
display = SampleComparisonDisplay(comparisons["PNLSampler"]).plot()
picture = Path("check_generated_rows.png").resolve()
display.figure_.savefig(picture, dpi=150)
print(f"\npicture saved: {picture}")
