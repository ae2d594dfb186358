"""Totals of new rows, requested from the estimators."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import ColumnConstraint, adjust, column_total

NUMBERS = ["wage", "rent", "net", "adults", "kids", "persons", "price"]
WHOLE = ["adults", "kids", "persons"]
N = 60


def table(seed, n=120):
    """Make households with additive amounts and persons, cents and categories."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["n", "s", "w"], n, p=rng.dirichlet([5, 3, 2]))
    adults, kids = rng.integers(1, 4, n), rng.poisson(0.8, n)
    wage = rng.lognormal(7.5, 0.5, n) * adults
    rent = wage * rng.uniform(0.1, 0.4, n)
    return pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["f", "m"], n),
            "wage": wage,
            "rent": rent,
            "net": wage - rent,
            "adults": adults,
            "kids": kids,
            "persons": adults + kids,
            "price": np.round(rng.gamma(3, 10, n), 2),
        }
    )


def fitted(seed):
    X = table(seed)
    return X, PNLAugmenter(categorical_features="auto").fit(X)


def planted(rng, X):
    """Return totals of a weighted sample of training rows, and the requests."""
    z = (X["wage"] - X["wage"].mean()) / X["wage"].std()
    weights = np.exp(rng.normal(scale=0.3) * z)
    rows = X.sample(
        N, replace=True, random_state=int(rng.integers(99)), weights=weights
    )
    sums = {
        str(name): rows[name].sum()
        for name in rng.choice(NUMBERS, rng.integers(1, 4), replace=False)
    }
    counts = {"region": rows["region"].value_counts().to_dict()}
    if rng.random() < 0.5:
        counts = {("region", "sex"): rows[["region", "sex"]].value_counts().to_dict()}
    return sums, counts


@pytest.mark.parametrize("seed", range(8))
def test_feasible_totals_are_satisfied_and_relations_preserved(seed):
    (X, augmenter), rng = fitted(seed), np.random.default_rng([seed, 5])
    sums, counts = planted(rng, X)
    rows = augmenter.sample(N, random_state=seed, totals=[sums, counts])
    assert len(rows) == N and (rows.dtypes == X.dtypes).all()
    for name, total in sums.items():
        room = 0 if name in WHOLE else 1e-9 * rows[name].abs().sum()
        assert abs(rows[name].sum() - total) <= room
    ((key, wanted),) = counts.items()
    keys = list(key) if isinstance(key, tuple) else [key]
    found = rows[keys].value_counts().to_dict()
    assert {k if len(keys) > 1 else k[0]: v for k, v in found.items()} == wanted
    gap = (rows["wage"] - rows["rent"] - rows["net"]).abs().max()
    assert gap <= 1e-9 * np.ptp(X["wage"])
    assert (rows["persons"] == rows["adults"] + rows["kids"]).all()


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ({"wage": 1e9}, "'wage' .* 1000000000, .* 60 rows"),
        ({"wage": 2e5, "rent": 5e4, "net": 1e5}, r"'net' .* 150000\."),
        ({"region": {"n": 40, "s": 40}}, "'region' .* 80, .* 60 "),
        ({"region": {"east": 3}}, "region='east'"),
        ({"sex": {"f": 30.5}}, "the count of sex='f'"),
        ({"persons": 120.5}, "'persons' .* 120 and 121"),
    ],
)
def test_infeasible_totals_are_rejected_by_name(totals, message):
    _, augmenter = fitted(0)
    with pytest.raises(ValueError, match=message):
        augmenter.sample(N, random_state=0, totals=totals)


@pytest.mark.parametrize("wanted, nearest", [(37, [35, 40]), (203, [60])])
def test_values_that_a_message_recommends_are_feasible(wanted, nearest):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(40), rng.choice([1.0, 6.0], 40)])
    augmenter = PNLAugmenter().fit(X)
    values = " and ".join(map(str, nearest))
    with pytest.raises(ValueError, match=f"sum of x1 .* 10 new rows (are|is) {values}"):
        augmenter.sample(10, random_state=0, totals={1: wanted})
    for value in nearest:
        rows = augmenter.sample(10, random_state=0, totals={1: value})
        assert rows[:, 1].sum() == value


def test_means_intervals_and_arrays_of_sums_are_satisfied():
    X = np.random.default_rng(0).gamma(2.0, size=(80, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    augmenter, wanted = PNLAugmenter().fit(X), 55 * X.mean(axis=0)
    rows = augmenter.sample(50, random_state=0, totals=wanted)
    np.testing.assert_allclose(rows.sum(axis=0), wanted, rtol=1e-9)
    totals = [
        column_total(0, 1.1 * X[:, 0].mean(), mean=True),
        column_total(1, lower=40 * X[:, 1].mean(), upper=45 * X[:, 1].mean()),
    ]
    rows = augmenter.sample(50, random_state=0, totals=totals)
    assert rows[:, 0].mean() == pytest.approx(totals[0].lower, rel=1e-9)
    assert totals[1].lower <= rows[:, 1].sum() * (1 + 1e-9)
    assert rows[:, 1].sum() <= totals[1].upper * (1 + 1e-9)


def test_means_are_computed_over_observed_cells():
    X = table(0).drop(columns=["net", "persons"])
    gaps = np.random.default_rng(0).random((len(X), 2)) < 0.2
    X[["wage", "rent"]] = X[["wage", "rent"]].mask(gaps)
    mean = column_total("wage", 3000, mean=True), column_total("price", 31, mean=True)
    asked = [*mean, {"rent": 50_000}]
    rows, report = PNLAugmenter().fit(X).sample(N, 0, totals=asked, return_report=True)
    assert rows["wage"].isna().any()
    found = rows["wage"].mean(), rows["price"].mean(), rows["rent"].sum()
    np.testing.assert_allclose(found, [3000, 31, 50_000], rtol=1e-8)
    np.testing.assert_allclose(report.achieved[:3], found, rtol=1e-12)


def test_one_seed_gives_the_same_rows():
    X, augmenter = fitted(1)
    totals = {"wage": N * X["wage"].mean(), "sex": {"f": 30, "m": 30}, "kids": 50}
    rows = augmenter.sample(N, random_state=3, totals=totals)
    again = augmenter.set_params(n_jobs=2).sample(N, random_state=3, totals=totals)
    pd.testing.assert_frame_equal(rows, again)


# --- constraints with counts, and on integers -------------------------------------


def members(n=100):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (n, 2)), columns=["member", "spouse"])
    X["income"], X["group"] = rng.gamma(2, 10, n), np.where(X.member == 1, "m", "n")
    return X


@pytest.mark.parametrize("counted", [{"member": 10}, {"group": {"m": 10}}])
@pytest.mark.parametrize("more", [{}, {"income": 500.0}])
def test_constraints_that_contradict_counts_are_rejected(counted, more):
    augmenter = PNLAugmenter().fit(members())
    asked, totals = ColumnConstraint("member", equal=1), counted | more
    with pytest.raises(ValueError, match="10, .* 25"):
        augmenter.sample(25, 0, constraints=asked, totals=totals)
    # A constraint that the counted rows satisfy does not contradict the counts.
    asked = ColumnConstraint("income", lower=5)
    rows = augmenter.sample(25, 0, constraints=asked, totals=totals)
    assert rows["member"].sum() == 10
    assert ((rows["group"] == "m") == (rows["member"] == 1)).all()


def test_base_rows_are_near_the_values_of_each_row_next_to_counts():
    rng = np.random.default_rng(0)
    kind = rng.choice(["light", "heavy"], 400)
    weight = np.where(kind == "heavy", 5000.0, 3500.0) + rng.normal(0, 300, 400)
    length = weight / 20 + rng.normal(0, 5, 400)
    X = pd.DataFrame({"kind": kind, "weight": weight, "length": length})
    augmenter = PNLAugmenter().fit(X)
    values = np.repeat([3500.0, 5000.0], [300, 300])
    for n_heavy in (300, 200):
        new = augmenter.sample(
            600, 0, constraints=ColumnConstraint("weight", equal=values),
            totals={"kind": {"heavy": n_heavy}},
        )  # fmt: skip
        is_heavy = (new["kind"] == "heavy").to_numpy()
        assert is_heavy.sum() == n_heavy
        assert is_heavy[300:].sum() > 0.95 * n_heavy
        assert_allclose(new["weight"], values)


@pytest.mark.parametrize("asked", [{"a": 1, "b": 1}, {"n_flags": 1}, {"price": 1}])
def test_totals_of_binary_columns_are_satisfied_by_feasible_base_rows(asked):
    rng = np.random.default_rng(9)
    k = rng.integers(0, 3, 500)
    flags = np.eye(3, dtype=int)[k]
    flags[:7] = [[1, 1, 0]] * 4 + [[0, 0, 0]] * 3
    X = pd.DataFrame(flags, columns=list("abc")).assign(x=rng.normal(k * 3, 1))
    X["city"] = np.array([*"abc"])[k]
    X["price"] = 1.99 * X["a"] + 0.49 * X["b"] + 3.0 * X["c"]
    one = ColumnConstraint({"a": 1, "b": 1, "c": 1}, equal=1)
    X["n_flags"] = X["a"] + X["b"] + X["c"]
    total = {"a": 1, "b": 1}
    value = {"a": 250, "n_flags": 300, "price": 1.99 * 150 + 0.49 * 100 + 150}
    total = column_total(asked, value[next(iter(asked))])
    augmenter, counts = PNLAugmenter().fit(X), {"a": 150, "c": 50}
    new = augmenter.sample(300, 0, constraints=one, totals=[total, counts])
    assert (new[[*"abc"]].sum(axis=1) == 1).all()
    assert new["a"].sum() == 150 and new["c"].sum() == 50
    found = sum(a * new[name] for name, a in asked.items())
    assert found.sum() == pytest.approx(total.lower)


@pytest.mark.parametrize("asked", [{"equal": 3.5}, {"lower": 3.2, "upper": 3.8}])
@pytest.mark.parametrize("column", ["adults", "sex"])
def test_constraints_without_an_integer_are_rejected(asked, column):
    X = table(0).assign(sex=lambda X: 3 + (X["sex"] == "f"))
    asked = ColumnConstraint(column, **asked)
    augmenter = PNLAugmenter(equalities=None).fit(X.assign(adults=X["adults"] * 2))
    with pytest.raises(ValueError, match=f"{column} .* 3 and 4:"):
        augmenter.sample(5, 0, constraints=asked)


def test_contradictory_constraints_on_cents_are_rejected():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.gamma(2, [8000, 800], (60, 2)).round(2), columns=["a", "b"])
    X["total"] = (X["a"] + X["b"]).round(2)
    asked = [
        ColumnConstraint("total", equal=X["total"][:4]),
        ColumnConstraint({"a": 1, "total": 1}, equal=20_000),
    ]
    with pytest.raises(ValueError, match="total = a . b and total = "):
        PNLAugmenter().fit(X).sample(4, 0, constraints=asked)


@pytest.mark.parametrize("column", ["took", "day"])
def test_sums_of_times_are_rejected(column):
    hours = pd.to_timedelta(np.arange(60) % 9, unit="h")
    X = pd.DataFrame({"took": hours, "day": pd.Timestamp("2024") + hours, "x": 1.5})
    with pytest.raises(ValueError, match=f"sum of '{column}'"):
        PNLAugmenter().fit(X).sample(9, 0, totals={column: 45})
    with pytest.raises(ValueError, match=f"sum of '{column}'"):
        adjust(X, totals={column: 45})


@pytest.mark.parametrize("seed", range(4))
def test_totals_preserve_orders_and_resolutions_of_other_columns(seed):
    rng = np.random.default_rng(seed)
    count = rng.poisson(3, 40).astype(float)
    amount = count + rng.gamma(1.0, size=40)
    parts = rng.integers(1, 500, (40, 2)) / 100
    X = np.column_stack([count, amount, parts, parts.sum(axis=1).round(2)])
    totals = {1: 1.03 * X[:30, 1].sum(), 2: round(X[:30, 2].sum(), 2)}
    rows = PNLAugmenter().fit(X).sample(30, random_state=seed, totals=totals)
    assert_allclose(rows[:, [1, 2]].sum(axis=0), [*totals.values()], rtol=1e-9)
    assert (rows[:, 0] == np.rint(rows[:, 0])).all()
    assert (rows[:, 0] <= rows[:, 1]).all()
    assert_allclose(rows[:, 2:], rows[:, 2:].round(2), rtol=1e-12)
    assert_allclose(rows[:, 2] + rows[:, 3], rows[:, 4], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_orders_with_missing_cells_do_not_affect_totals_of_integers(seed):
    rng = np.random.default_rng(seed)
    first = rng.poisson(20, 80)
    second = (first + rng.poisson(5, 80)).astype(float)
    second[rng.random(80) < 0.3] = np.nan
    X = pd.DataFrame({"first": first, "second": second})
    total = int(1.05 * 40 * first.mean())
    rows = PNLAugmenter().fit(X).sample(40, seed, totals={"first": total})
    assert rows["first"].sum() == total
    assert not (rows["first"] > rows["second"]).any()
    assert rows["first"].min() >= first.min()


def test_report_contains_the_effective_number_of_parents():
    X, augmenter = fitted(0)
    asked = ColumnConstraint("wage", lower=float(X["wage"].nlargest(12).min()))
    given = {"constraints": asked, "return_report": True, "return_parents": True}
    _, parents, report = augmenter.sample(2000, 0, **given)
    counts = np.unique(parents[:, 0], return_counts=True)[1]
    assert report.effective_parents == pytest.approx(2000**2 / (counts**2).sum())
    assert report.effective_parents < len(X) / 2


@pytest.mark.parametrize("seed", range(4))
def test_totals_of_columns_that_depend_on_integers_are_satisfied_in_any_order(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"height": rng.integers(400, 530, 100)})
    X["centred"] = X["height"] - 462.44168
    X["ounces"] = rng.integers(80, 160, 100)
    X["grams"] = (28.35 * X["ounces"]).round(2)
    X["score"] = (0.4 * rng.integers(50, 100, 100) + 0.6 * X["ounces"]).round(1)
    planted = X.sample(60, replace=True, random_state=seed)
    names = list(rng.permutation(["centred", "grams", "score"]))
    totals = {str(name): planted[name].sum() for name in names}
    rows = PNLAugmenter().fit(X).sample(60, seed, totals=totals)
    assert_allclose(rows[names].sum(), planted[names].sum(), rtol=1e-9)
    assert_allclose(rows["height"] - rows["centred"], 462.44168, rtol=1e-9)
    assert_allclose(rows["grams"], 28.35 * rows["ounces"], rtol=1e-9)
    assert_allclose(rows["score"], rows["score"].round(1), rtol=1e-12)
