"""
===============================================
Select a log-linear model for a table of counts
===============================================

The table counts the 2,201 people on the Titanic by class, sex, age and survival. A
log-linear model contains some of the interactions between the four modes.
:class:`~sklearn_pnl.LogLinearModel` fits a model and reports how well it fits.
"""

# %%
# The counts
# ----------
# The crew contains no children, so that a margin of class and age is empty.
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pnl import LogLinearModel

CLASSES, NAMES = ["1st", "2nd", "3rd", "crew"], ["class", "sex", "age", "survived"]
men = [[[0, 5], [118, 57]], [[0, 11], [154, 14]], [[35, 13], [387, 75]],
       [[0, 0], [670, 192]]]  # fmt: skip
women = [[[0, 1], [4, 140]], [[0, 13], [13, 80]], [[17, 14], [89, 76]],
         [[0, 0], [3, 20]]]  # fmt: skip
counts = np.stack([men, women], axis=1)  # class, sex, age (child, adult), survived

# %%
# Independence, and the deviance of each interaction
# --------------------------------------------------
# The deviance table adds sets of modes one by one, and shows how much each improves the
# fit.
independence = LogLinearModel(order=1).fit([counts])
print(independence.statistics_)
print(independence.deviance_tests())

# %%
# Three models
# ------------
# In the first model survival is independent of the other modes. The second model has
# all pairs. In the third model survival depends on class and sex together, and on age.
# The third model has the smallest BIC. If some cells cannot be filled, the degrees of
# freedom are also reported without these cells, here without the children of the crew.
models = {
    "survival apart": [(0, 1, 2), (3,)],
    "pairs": 2,
    "class x sex x survived": [(0, 1, 2), (0, 1, 3), (2, 3)],
}
fitted = {name: LogLinearModel(order).fit([counts]) for name, order in models.items()}
for name, model in fitted.items():
    found = model.statistics_
    print(f"{name:24} G² {found.deviance:6.1f}, BIC {found.bic:.0f}")
print(fitted["class x sex x survived"].statistics_)

# %%
# Residuals
# ---------
# All boys of the first two classes survived. Girls of the third class survived less
# often than the model predicts.
cells = fitted["class x sex x survived"].to_frame("cell")
print(cells.loc[cells["residual"].abs().nlargest(3).index].round(1))

# %%
# Comparison of the models
# ------------------------
# Shares of survivors by class, for men and women: observed, and predicted by each
# model.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for sex, (axis, title) in enumerate(zip(axes, ["men", "women"], strict=True)):
    seen = counts[:, sex].sum(axis=1)
    axis.bar(CLASSES, seen[:, 1] / seen.sum(axis=1), color="0.85", label="counted")
    for (name, model), mark in zip(fitted.items(), "sD*", strict=True):
        expected = model.expected_[:, sex].sum(axis=1)
        share = expected[:, 1] / expected.sum(axis=1)
        axis.plot(CLASSES, share, mark, ms=9, label=name)
    axis.set(title=title, ylim=(0, 1))
axes[0].set_ylabel("share of survivors")
axes[0].legend(loc="upper right")
plt.show()
