"""
===========================
Weight a survey to a census
===========================

In a survey, old people and people with a high income respond more often than others.
The census publishes the number of people by region and age, and the tax office
publishes the sum of all incomes. :func:`~sklearn_pnl.control.calibrate` finds the
weights that satisfy all totals and are nearest to the design weights, in the KL
divergence. A total that is infeasible by itself raises an error that names
the total and its feasible range.
"""

# %%
# A survey with unequal response
# ------------------------------
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
# Published totals and weights
# ----------------------------
# Counts are satisfied exactly. The sum of incomes has a tolerance of 1%.
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
# An estimate that is not among the totals
# ----------------------------------------
# The share of people with internet at home is not among the totals. With the weights,
# its estimate is nearer to the truth. Any estimator accepts the weights as
# ``sample_weight``.
for name, some in {"design weights": design, "calibrated": weights}.items():
    share = np.average(survey["internet"], weights=some)
    print(f"internet, {name}: {share:.3f}")
print(f"internet, all people: {people['internet'].mean():.3f}")

# %%
# Infeasible totals
# -----------------
try:
    calibrate(
        survey, [*census, column_total("income", 900, mean=True)],
        design_weights=design, bounds=(0.1, 5),
    )  # fmt: skip
except CalibrationError as error:
    print(error)

# %%
# Incomes and weights
# -------------------
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for age, rows in survey.groupby("age"):
    axes[0].scatter(rows["income"], report.ratios[rows.index], s=6, label=age)
axes[0].set(xscale="log", xlabel="income", ylabel="weight / design weight")
axes[0].legend(title="age", frameon=False)
table = report.to_frame()
names = [name.removeprefix("the count of ").replace("'", "") for name in table.index]
wanted = (table["lower"] + table["upper"]) / 2
for column, marker in (("before", "o"), ("after", "x")):
    axes[1].plot(table[column] / wanted, names, marker, label=column)
axes[1].axvline(1, color="0.7", zorder=0)
axes[1].set_xlabel("weighted total / published total")
axes[1].tick_params(axis="y", labelsize=7)
axes[1].legend(frameon=False)
plt.show()
