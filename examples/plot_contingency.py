"""
=====================================================
A contingency table, from independence to a model
=====================================================

Who survived the Titanic? 2,201 people are counted by class, sex, age and survival. A
log-linear model keeps some interactions between these four modes;
:class:`~sklearn_pnl.LogLinearModel` fits it, and says which it still lacks.
"""

# %%
# The counts
# ----------
# No children belong to the crew: an empty margin of class and age.
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pnl import LogLinearModel

CLASSES, NAMES = ["1st", "2nd", "3rd", "crew"], ["class", "sex", "age", "survived"]
men = [[[0, 5], [118, 57]], [[0, 11], [154, 14]], [[35, 13], [387, 75]],
       [[0, 0], [670, 192]]]  # fmt: skip
women = [[[0, 1], [4, 140]], [[0, 13], [13, 80]], [[17, 14], [89, 76]],
         [[0, 0], [3, 20]]]  # fmt: skip
counts = np.stack([men, women], axis=1)  # class, sex, age (child, adult), survived


def named(term):
    return " x ".join(NAMES[mode] for mode in term)


# %%
# Independence
# ------------
independence = LogLinearModel(order=1).fit([counts])
print(independence.statistics_)
print("\nWhat it lacks, by score tests:")
tests = independence.score_tests()
for term, value, df in zip(tests.terms, tests.values, tests.dof, strict=True):
    print(f"{named(term):16} {value:6.1f} on {df}")

# %%
# The search by BIC
# -----------------
# Terms are added by their score, if a fit confirms them, and dropped when others
# explain them. Degrees of freedom are given twice, the second time without the children
# of the crew.
chosen = LogLinearModel(order="bic").fit([counts])
print("kept:", ", ".join(map(named, chosen.order_)))
print(chosen.statistics_)

# %%
# The class decides how much being a woman helps
# ----------------------------------------------
# Survival enters with class and sex together, and with age for all alike. What the
# model misses is seen in the residuals of its cells: boys of the first two classes were
# all saved, girls of the third less often than it says. AIC would add the interaction
# of class, age and survival.
cells = chosen.to_frame("cell")
print(cells.loc[cells["residual"].abs().nlargest(3).index].round(1))

# %%
# Model by model
# --------------
# Shares of survivors by class, for men and women: counted, under independence of
# survival from all else, with pairs alone, and as chosen.
models = {
    "survival apart": LogLinearModel([(0, 1, 2), (3,)]).fit([counts]),
    "pairs": LogLinearModel(2).fit([counts]),
    "chosen": chosen,
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for sex, (axis, title) in enumerate(zip(axes, ["men", "women"], strict=True)):
    seen = counts[:, sex].sum(axis=1)
    axis.bar(CLASSES, seen[:, 1] / seen.sum(axis=1), color="0.85", label="counted")
    for (name, model), mark in zip(models.items(), "sD*", strict=True):
        expected = model.expected_[:, sex].sum(axis=1)
        share = expected[:, 1] / expected.sum(axis=1)
        g2 = model.statistics_.deviance
        axis.plot(CLASSES, share, mark, ms=9, label=f"{name} (G² {g2:.0f})")
    axis.set(title=title, ylim=(0, 1))
axes[0].set_ylabel("share of survivors")
axes[0].legend(loc="upper right")
plt.show()
