"""
==========================================
Generate households with published margins
==========================================

A survey contains 600 households with region, tenure, persons, income and rent. A census
publishes the numbers of households by region and tenure, the numbers of people and
children, the mean income and the sum of the rents. The 2,000 new households of this
example satisfy the sum of the rents within 1%, and the other figures exactly.
Each new household also satisfies the relations between the columns: adults and children
add up to persons, and income is rent plus the remaining amount.
"""

# %%
# A survey
# --------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import column_total

rng = np.random.default_rng(0)
n = 600
region = rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2])
adults, children = rng.integers(1, 4, n), rng.poisson(0.7, n)
income = rng.lognormal(7.6, 0.45, n) * adults**0.7 * (1 + 0.3 * (region == "north"))
rent = income * rng.beta(4, 10, n)
survey = pd.DataFrame(
    {
        "region": region,
        "tenure": np.where(rng.uniform(size=n) < 0.4, "owner", "tenant"),
        "adults": adults,
        "children": children,
        "persons": adults + children,
        "income": income,
        "rent": rent,
        "left": income - rent,
    }
)

# %%
# A census
# --------
# The totals are counts by region, counts by region and tenure, the numbers of people
# and children, the mean income and the sum of the rents. The sum of the rents has a
# tolerance of 1%.
census = [
    {"region": {"north": 700, "south": 800, "west": 500}},
    {("region", "tenure"): {("north", "owner"): 250, ("south", "owner"): 450}},
    {"persons": 5_100, "children": 1_300},
    column_total("income", 3_600, mean=True),
    column_total("rent", 2_000 * 3_600 * 0.3, rtol=0.01),
]
augmenter = PNLAugmenter().fit(survey)
households, report = augmenter.sample(
    2_000, random_state=0, totals=census, return_report=True
)
print(report)

# %%
# Relations and totals of the new households
# ------------------------------------------
gap = households["persons"] - households["adults"] - households["children"]
print(f"persons that do not add up: {(gap != 0).sum()}")
print(households.groupby(["region", "tenure"]).size().unstack())

# %%
# The pictures
# ------------
# Left: incomes. Base rows are chosen with weights that satisfy the census. Therefore
# the new households resemble richer households, and are not stretched copies. Right:
# the distance by which the projection onto the totals moved the new households.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
bins = np.linspace(0, survey["income"].quantile(0.99), 30)
for rows, label in ((survey, "survey"), (households, "new households")):
    axes[0].hist(rows["income"], bins, density=True, histtype="step", label=label)
axes[0].axvline(3_600, color="gray", linestyle=":", label="mean of the census")
axes[0].set(xlabel="income", title="incomes")
axes[0].legend()
axes[1].barh(report.features, report.rms_displacement)
axes[1].set(xlabel="share of the range of a column", title="moved, root mean square")
plt.show()
