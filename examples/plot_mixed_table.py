"""
==================================================
Over-sample a data frame with categories and dates
==================================================

The data frame contains numbers, integers, a Boolean column, two categorical columns and
two dates, first in pandas and then in polars. :class:`~sklearn_pnl.PNLSampler` accepts
the data frame before any encoding, in a pipeline whose parameters ``GridSearchCV``
selects. New rows have the same types. A new row takes all its categories from one
parent, and satisfies the linear equalities that all rows satisfy.

The picture shows the customers who leave, and the new rows.
"""

# %%
# A generated table
# -----------------
# One customer in ten leaves. Each city belongs to a country. The end of a contract is
# its start plus its duration.
import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTENC
from imblearn.pipeline import make_pipeline
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline as make_encoder
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from sklearn_pnl import PNLSampler

rng = np.random.default_rng(0)
n = 600
city = rng.integers(6, size=n)
days = rng.integers(1, 4, n) * 365
X = pd.DataFrame(
    {
        "balance": rng.gamma(2.0, 1000.0, n).round(2),
        "products": rng.integers(1, 6, n),
        "online": rng.random(n) < 0.6,
        "city": np.array(["Oslo", "Bergen", "Lima", "Cusco", "Pune", "Agra"])[city],
        "country": pd.Categorical(np.array(["NO", "PE", "IN"])[city // 2]),
        "start": pd.Timestamp("2021-01-01")
        + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
        "days": days,
    }
)
X["end"] = X["start"] + pd.to_timedelta(X["days"], unit="D")
risk = 1.2 * X["online"] - 0.6 * X["products"] + 1.5 * (X["country"] == "PE")
risk -= X["balance"] / 2000 + days / 1000
y = (risk + rng.logistic(size=n) > 0.4).map({True: "leaves", False: "stays"})
print(X.dtypes, "\n", y.value_counts(), sep="")

# %%
# New rows
# --------
sampler = PNLSampler(random_state=0)
X_more, y_more = sampler.fit_resample(X, y)
new = X_more.iloc[n:]
print(new.head(3).T)
print(sampler.equalities_)


def pairs(frame):
    """Return the pairs of cities and countries."""
    return list(zip(frame["city"], frame["country"], strict=True))


known = set(pairs(X))
print("types kept:", (X_more.dtypes == X.dtypes).all())
print("cities in their countries:", set(pairs(new)) <= known)
print(
    "end = start + days:",
    ((new["end"] - new["start"]).dt.days == new["days"]).all(),
)

# %%
# SMOTE-NC chooses each category independently, by a vote of the neighbours. It does not
# accept dates, so that the dates are left out.
numbers = X.drop(columns=["start", "end"]).astype({"city": "category"})
smote = SMOTENC(categorical_features="auto", random_state=0)
voted = smote.fit_resample(numbers, y)[0].iloc[n:]
apart = [pair not in known for pair in pairs(voted)]
print(f"SMOTE-NC: {np.mean(apart):.0%} of new rows with a city in another country")


# %%
# A grid search
# -------------
# The encoder is a step after the sampler, which accepts the unencoded table.
def since_2021(times):
    """Return dates as numbers of days."""
    return (times - pd.Timestamp("2021-01-01")) / pd.Timedelta(days=1)


encoder = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["city", "country"]),
    (make_encoder(FunctionTransformer(since_2021), StandardScaler()), ["start", "end"]),
    remainder=StandardScaler(),
)
pipeline = make_pipeline(sampler, encoder, LogisticRegression())
grid = {"pnlsampler__k_neighbors": [3, 5], "pnlsampler__sampling_strategy": [0.5, 1.0]}
search = GridSearchCV(pipeline, grid, scoring="balanced_accuracy", cv=5).fit(X, y)
alone = make_pipeline(encoder, LogisticRegression())
before = GridSearchCV(alone, {}, scoring="balanced_accuracy", cv=5).fit(X, y)
print(f"balanced accuracy {before.best_score_:.3f} without new rows,")
print(f"{search.best_score_:.3f} with new rows: {search.best_params_}")

# %%
# The same in polars
# ------------------
try:
    import polars as pl
except ImportError:
    print("polars is not installed")
else:
    table = pl.DataFrame({name: X[name].to_numpy() for name in X if name != "country"})
    table = table.with_columns(
        country=pl.Series(X["country"].astype(str)).cast(pl.Enum(["IN", "NO", "PE"]))
    )
    more, _ = sampler.fit_resample(table, y.to_numpy())
    print(more.tail(3))
    print("types kept:", more.schema == table.schema)

# %%
# Missing values
# --------------
# A missing category is treated as a category. Missing numbers and dates are accepted as
# well: a new row has the missing cells of its base row, from which it starts.
holes = X.copy()
holes.loc[rng.random(len(X)) < 0.2, "balance"] = np.nan
more, _ = sampler.fit_resample(holes, y)
print(
    "missing:", holes["balance"].isna().mean(), more[len(X) :]["balance"].isna().mean()
)

# %%
# The minority class before and after
# -----------------------------------
figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
leaving = X[y == "leaves"]
for panel, rows, title in zip(axes, (leaving, new), ("rows", "new rows"), strict=True):
    for country, group in rows.groupby("country", observed=True):
        panel.scatter(group["start"], group["balance"], s=9, label=country)
    panel.set(title=f"customers who leave: {title}", xlabel="start of the contract")
    panel.xaxis.set_major_locator(mdates.YearLocator())
    panel.xaxis.set_major_formatter(mdates.DateFormatter("%Y"))
axes[0].set_ylabel("balance")
axes[0].legend(title="country")
plt.show()
