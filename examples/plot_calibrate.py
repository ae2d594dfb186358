"""
===============================
A survey, weighted to a census
===============================

Old people and rich ones answer a survey more often than others. The census knows how
many there are by region and age, and the tax office what they earn in all.
:func:`~sklearn_pnl.control.calibrate` finds the weights that meet all of these and
are nearest to the design weights, in the sense of KL. What cannot be met is refused,
by name.
"""

# %%
# A survey in which some answer more often
# ----------------------------------------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_pnl.control import CalibrationError, calibrate, column_total

rng = np.random.default_rng(0)
n = 40_000
people = pd.DataFrame({
    "region": rng.choice(["coast", "hills", "town"], n, p=[0.2, 0.3, 0.5]),
    "age": rng.choice(["18-34", "35-64", "65+"], n, p=[0.3, 0.45, 0.25]),
})  # fmt: skip
level = people["age"].map({"18-34": 7.6, "35-64": 8.1, "65+": 7.8})
people["income"] = np.exp(level + rng.normal(0, 0.5, n)).round()
people["internet"] = rng.random(n) < people["age"].map(
    {"18-34": 0.98, "35-64": 0.9, "65+": 0.6}
)
answers = people["age"].map({"18-34": 0.01, "35-64": 0.02, "65+": 0.05})
answers *= 1 + 0.6 * (people["income"] > 3000)
survey = people[rng.random(n) < answers].reset_index(drop=True)
print(f"{len(survey)} of {n} people answered")

# %%
# What is published, and the weights
# ----------------------------------
# Counts are exact; the sum of incomes is given 1%.
census = [
    {
        "region": people["region"].value_counts(),
        ("region", "age"): people.groupby(["region", "age"]).size(),
    },
    column_total("income", people["income"].sum(), rtol=0.01),
]
design = np.full(len(survey), n / len(survey))
weights, report = calibrate(
    survey, census, design_weights=design, bounds=(0.1, 5), return_report=True
)
print(report)

# %%
# What was not asked for is nearer to the truth
# ---------------------------------------------
# The share of people with internet at home is in no total. The weights are a
# ``sample_weight`` for any estimator.
for name, some in {"design weights": design, "calibrated": weights}.items():
    share = np.average(survey["internet"], weights=some)
    print(f"internet, {name}: {share:.3f}")
print(f"internet, all people: {people['internet'].mean():.3f}")

# %%
# Totals that no weights have
# ---------------------------
try:
    calibrate(
        survey, [*census, column_total("income", 900, mean=True)],
        design_weights=design, bounds=(0.1, 5),
    )  # fmt: skip
except CalibrationError as error:
    print(error)

# %%
# The picture
# -----------
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for age, rows in survey.groupby("age"):
    axes[0].scatter(rows["income"], report.ratios[rows.index], s=6, label=age)
axes[0].set(xscale="log", xlabel="income", ylabel="weight over design weight")
axes[0].legend(title="age", frameon=False)
table = report.to_frame()
names = [name.removeprefix("the count of ").replace("'", "") for name in table.index]
wanted = (table["lower"] + table["upper"]) / 2
for column, marker in (("before", "o"), ("after", "x")):
    axes[1].plot(table[column] / wanted, names, marker, label=column)
axes[1].axvline(1, color="0.7", zorder=0)
axes[1].set_xlabel("weighted total, over what is published")
axes[1].tick_params(axis="y", labelsize=7)
axes[1].legend(frameon=False)
plt.show()
