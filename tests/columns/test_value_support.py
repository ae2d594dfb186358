"""Resolution of columns: detection, new rows and requests."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sklearn_pnl import Codes, Lines, PNLAugmenter, PNLSampler
from sklearn_pnl.columns.repair import STEPS, round_values
from sklearn_pnl.columns.value_support import (
    FEW_ROWS,
    find_atoms,
    find_value_support,
)
from sklearn_pnl.control import ColumnConstraint, adjust, column_total
from sklearn_pnl.frames import TableReader, read_table

pd = pytest.importorskip("pandas")


def random(seed=0):
    return np.random.default_rng(seed)


def minutes(counts):
    return pd.to_timedelta(counts, "min")


FIRST = pd.Timestamp("2026-01-05")
COLUMNS = {
    "thousands": (lambda k: 1000 * k, "multiples of 1000"),
    "offset": (lambda k: 7 + 10 * k, "multiples of 10, from 7"),
    "halves": (lambda k: 0.5 * k, "multiples of 0.5"),
    "nickels": (lambda k: 0.02 + 0.05 * k, "multiples of 0.05, from 0.02"),
    "signed": (lambda k: 25 * (k - 30), "multiples of 25"),
    "far": (lambda k: 2**60 + 10 * k, "multiples of 10, from 1152921504606846976"),
    "duration": (lambda k: minutes(15 * k), "multiples of 15 minutes"),
    "clock": (lambda k: FIRST + minutes(10 * k), "multiples of 10 minutes"),
    "mondays": (lambda k: FIRST + minutes(10080 * k), "multiples of 7 days, from"),
    "local": (
        lambda k: (FIRST + minutes(10080 * k)).tz_localize("Asia/Tokyo"),
        "multiples of 7 days, from 2026-01-04 15:00",
    ),
    "noon": (
        lambda k: FIRST + minutes(720 + 1440 * k),
        "multiples of 1 day, from 2026-01-05 12:00",
    ),
}


def places(values, made):
    """Return each value as a multiple of the resolution by which it was made."""
    ends = [pd.Series(made(np.array([k]))).iloc[0] for k in (0, 1)]
    return np.array([float((v - ends[0]) / (ends[1] - ends[0])) for v in values])


@pytest.mark.parametrize("method", [Lines(), Codes()], ids=str)
@pytest.mark.parametrize("extrapolation", [0.1, 0.5, None])
def test_extrapolation_widens_the_bounds_of_rounded_columns(method, extrapolation):
    steps, first = np.array([0.01, 0.5, 1000]), np.array([0, 0.3, 0])
    X = first + steps * random().integers(1, [5000, 40, 40], size=(200, 3))
    augmenter = PNLAugmenter(method, extrapolation=extrapolation, equalities=None)
    new = augmenter.fit(X).sample(2000, random_state=0)
    beyond = np.maximum((new - X.max(axis=0)).max(0), (X.min(axis=0) - new).max(0))
    assert (beyond > 0).all()
    if extrapolation is not None:
        assert (beyond <= (extrapolation + 1e-12) * np.ptp(X, axis=0)).all()
    places = (new - first) / steps
    assert np.abs(places - np.rint(places)).max() < 1e-6


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("is_sorted", [False, True])
def test_new_rows_have_the_resolution_of_their_columns(name, is_sorted):
    made, words = COLUMNS[name]
    rng = random()
    counts = np.r_[0, rng.integers(0, 60, 299)]
    frame = pd.DataFrame({name: made(counts), "free": rng.normal(size=300)})
    frame = frame.sort_values(name, ignore_index=True) if is_sorted else frame
    augmenter = PNLAugmenter().fit(frame)
    assert f"{name}: {words}" in str(augmenter.value_support_)
    at = places(augmenter.sample(200, random_state=0)[name], made)
    assert np.abs(at - np.rint(at)).max() < 1e-9
    assert len(np.unique(np.rint(at))) > 20


@pytest.mark.parametrize("method", ["lines", "codes"])
def test_samplers_preserve_the_resolution_if_value_support_is_auto(method):
    rng = random()
    X = np.column_stack([1000 * rng.integers(5, 90, 200), rng.integers(0, 90, 200)])
    y = (np.arange(200) < 40).astype(int)
    for value_support, expected in ((None, False), ("auto", True)):
        sampler = PNLSampler(method=method, value_support=value_support, random_state=0)
        new = sampler.fit_resample(X, y)[0][200:]
        assert (new[:, 0] % 1000 == 0).all() == expected


def test_resolutions_explained_by_chance_are_ignored():
    rng = random()
    few = np.array([2, 4, 8, 14])
    X = pd.DataFrame(
        {
            "few": rng.choice(few, 200),
            "binary": 1000 * rng.integers(0, 2, 200),
            "exceptions": np.r_[1000 * rng.integers(0, 50, 197), 1, 7, 123],
            "whole": rng.integers(0, 1000, 200),
        }
    )
    support = PNLAugmenter().fit(X).value_support_
    assert_array_equal(support.widths, 1)


def test_rare_exceptions_in_sorted_columns_are_found():
    values = np.r_[np.repeat(10 * np.arange(1, 2000), 10), 19_993]
    for column in (values, values[::-1]):
        X = np.column_stack([column, random().normal(size=len(values))])
        assert PNLAugmenter().fit(X).value_support_.widths[0] == 1


@pytest.mark.parametrize("seed", range(6))
def test_atoms_off_the_resolution_are_preserved(seed):
    rng = np.random.default_rng(seed)
    price = np.where(rng.random(400) < 0.3, 0, 500 + 1000 * rng.integers(1, 50, 400))
    X = pd.DataFrame({"price": price, "free": rng.normal(size=400)})
    augmenter = PNLAugmenter().fit(X)
    assert "multiples of 1000, from 1500; often 0" in str(augmenter.value_support_)
    for request in ({}, {"totals": {"price": 9_000_000}}):
        new = augmenter.sample(500, random_state=2, **request)["price"]
        # An odd number of prices cannot sum to the total in steps of 1,000. The total
        # has priority, and the prices keep the steps of integers.
        if not request or (new > 0).sum() % 2 == 0:
            assert ((new == 0) | (new % 1000 == 500)).all()
        assert new.sum() == 9_000_000 or not request
        assert new.dtype == price.dtype
        assert 0.2 < (new == 0).mean() < 0.4


def test_missing_cells_do_not_change_the_resolution():
    rng = random()
    values = np.where(rng.random(300) < 0.5, np.nan, 5.0 * rng.integers(0, 60, 300))
    values[:100] = np.nan
    X = np.column_stack([values, rng.normal(size=300)])
    augmenter = PNLAugmenter().fit(X)
    new = augmenter.sample(300, random_state=0)[:, 0]
    assert augmenter.value_support_.widths[0] == 5
    assert (new[~np.isnan(new)] % 5 == 0).all() and np.isnan(new).any()


# --- relations --------------------------------------------------------------------


@pytest.fixture
def pay():
    rng = random()
    salary, bonus = 1000 * rng.integers(20, 90, 400), 500 * rng.integers(1, 30, 400)
    columns = {"salary": salary, "bonus": bonus, "total": salary + bonus}
    return pd.DataFrame({**columns, "age": rng.integers(20, 60, 400)})


def test_totals_of_parts_are_exact_on_their_resolutions(pay):
    new = PNLAugmenter().fit(pay).sample(500, random_state=0)
    assert (new["total"] == new["salary"] + new["bonus"]).all()
    for name, size in (("salary", 1000), ("bonus", 500), ("total", 500)):
        assert (new[name] % size == 0).all()
    assert len(new.merge(pay)) < 50


def test_the_column_with_the_finest_resolution_is_the_pivot():
    rng = random()
    coarse, fine = 60 * rng.integers(0, 3000, 300), rng.integers(1, 40, 300)
    for order in ([0, 1, 2], [2, 1, 0]):
        columns = np.column_stack([coarse, coarse + fine, fine])[:, order]
        X = np.column_stack([columns, rng.integers(0, 9, 300)])
        new = PNLAugmenter().fit(X).sample(300, random_state=0)
        start, _, took = new[:, order].T
        assert (new[:, 1] == start + took).all() and (start % 60 == 0).all()
        # Few rows are copies of rows that rounding would break.
        assert len({*map(tuple, new)} - {*map(tuple, X)}) > 250


def test_equalities_take_precedence_over_resolutions():
    rng = random()
    k = rng.integers(0, 100, 400)
    a, b = 4 * k, 6 * (k % 5 + 5 * rng.integers(0, 20, 400))
    X = pd.DataFrame({"a": a, "b": b, "sum": a + b, "free": rng.normal(size=400)})
    augmenter = PNLAugmenter().fit(X)
    new = augmenter.sample(500, random_state=0)
    assert (new["sum"] == new["a"] + new["b"]).all()
    # In the given rows, the sum of multiples of 4 and 6 is a multiple of 10.
    assert augmenter.value_support_.widths.tolist() == [1, 6, 10, 1]
    assert (new["b"] % 6 == 0).all() and (new["sum"] % 10 == 0).all()
    assert len(new.merge(X)) < 100


def test_orders_hold_for_two_resolutions():
    rng = random()
    low = 10 * rng.integers(0, 50, 400)
    X = np.column_stack([low, 7 * ((low + 6) // 7 + rng.integers(0, 3, 400))])
    augmenter = PNLAugmenter().fit(X)
    new = augmenter.sample(1000, random_state=0)
    assert augmenter.inequalities_ and (new[:, 0] <= new[:, 1]).all()
    assert (new[:, 0] % 10 == 0).all() and (new[:, 1] % 7 == 0).all()


# --- requests ---------------------------------------------------------------------


def test_requests_compatible_with_the_resolution_preserve_it(pay):
    augmenter = PNLAugmenter().fit(pay)
    lower = ColumnConstraint("salary", lower=49_500)
    new = augmenter.sample(300, constraints=lower, random_state=0)
    assert (new["salary"] % 1000 == 0).all() and new["salary"].min() == 50_000
    totals = [column_total("total", 18_000_500)]
    new = augmenter.sample(300, totals=totals, random_state=0)
    assert new["total"].sum() == 18_000_500
    assert (new["salary"] % 1000 == 0).all() and (new["bonus"] % 500 == 0).all()
    assert (new["total"] == new["salary"] + new["bonus"]).all()


def test_incompatible_requests_are_satisfied_without_the_resolution(pay):
    augmenter = PNLAugmenter().fit(pay)
    equal = ColumnConstraint("salary", equal=49_501)
    new = augmenter.sample(300, constraints=equal, random_state=0)
    assert (new["salary"] == 49_501).all()
    assert (new["total"] == new["salary"] + new["bonus"]).all()
    totals = [column_total("total", 18_000_001)]
    new = augmenter.sample(300, totals=totals, random_state=0)
    assert new["total"].sum() == 18_000_001
    assert (new["total"] == new["salary"] + new["bonus"]).all()
    moved = adjust(pay, totals={"total": 24_000_001})
    assert moved["total"].sum() == 24_000_001
    assert (moved["total"] == moved["salary"] + moved["bonus"]).all()


def test_sums_of_values_with_an_offset_are_satisfied():
    rng = random()
    X = np.column_stack([0.02 + 0.05 * rng.integers(0, 90, 300), rng.normal(size=300)])
    augmenter = PNLAugmenter().fit(X)
    total = 200 * 0.02 + 0.05 * 8000
    new = augmenter.sample(200, totals=[column_total(0, total)], random_state=0)[:, 0]
    assert new.sum() == pytest.approx(total, abs=1e-9)
    at = (new - 0.02) / 0.05
    assert np.abs(at - np.rint(at)).max() < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_coarse_and_fine_columns_in_one_constraint_keep_their_resolution(seed):
    # Rounding the hours moves the wage by up to 50 cents.
    rng = np.random.default_rng(seed)
    hours = rng.integers(1, 60, 400) * 1.0
    wage = rng.gamma(2, 20, 400).round(2)
    X = pd.DataFrame({"hours": hours, "wage": wage})
    values = (hours + wage)[rng.integers(0, 400, 600)]
    required = ColumnConstraint({"hours": 1, "wage": 1}, equal=values)
    rows = PNLAugmenter().fit(X).sample(600, random_state=seed, constraints=required)
    assert_allclose(rows["hours"] + rows["wage"], values, rtol=1e-12)
    # Near the bounds of a column, the other column cannot take up the rest.
    inside = rows["wage"].between(wage.min() + 1, wage.max() - 1)
    inside &= rows["hours"].between(2, 58)
    assert inside.mean() > 0.8
    assert_allclose(rows["hours"][inside] % 1, 0, atol=0)
    assert_allclose(rows["wage"][inside], rows["wage"][inside].round(2), atol=1e-12)


def test_values_off_the_resolution_are_named_in_a_warning(monkeypatch):
    rng = random()
    X = np.column_stack([rng.normal(size=200), 15 * rng.integers(0, 60, 200)])
    augmenter = PNLAugmenter().fit(X)
    augmenter.sample(100, random_state=0)
    steps = tuple(step for step in STEPS if step is not round_values)
    monkeypatch.setattr("sklearn_pnl.methods.sampling.STEPS", steps)
    with pytest.warns(ConvergenceWarning, match="violate the resolution of x1 by up"):
        augmenter.sample(100, random_state=0)


@pytest.mark.parametrize("seed", range(6))
def test_sums_without_a_missing_part_keep_the_resolution(seed):
    # Without a, the total is the subtotal, in tens, plus c.
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 60, (300, 3)), columns=list("abc")).astype(float)
    X[["a", "b"]] *= 10
    X["subtotal"] = X["a"] + X["b"]
    X["total"] = X["subtotal"] + X["c"]
    X["a"] = X["a"].mask(rng.random(300) < 0.3)
    new = PNLAugmenter().fit(X).sample(400, random_state=seed)
    assert (new["subtotal"] % 10 == 0).all()
    assert (new["total"] == new["subtotal"] + new["c"]).all()
    assert new["subtotal"].nunique() > 20


# --- months, quarters and years -----------------------------------------------------


CALENDARS = {
    "MS": "multiples of 1 month, from 2015-01-01",
    "ME": "multiples of 1 month, from 2015-01-31",
    "QS": "multiples of 3 months, from 2015-01-01",
    "QE": "multiples of 3 months, from 2015-03-31",
    "YS": "multiples of 1 year, from 2015-01-01",
    "YE": "multiples of 1 year, from 2015-12-31",
}


def dated(dates, seed=0, n=400):
    """Make a table with random dates of a calendar that uses all its dates."""
    rng = random(seed)
    which = np.r_[np.arange(len(dates)), rng.integers(0, len(dates), n - len(dates))]
    rng.shuffle(which)
    return pd.DataFrame({"date": dates[which], "sold": rng.gamma(2, 100, n)})


@pytest.mark.parametrize("freq", CALENDARS)
@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("seed", [0, 1])
def test_new_dates_are_in_the_calendar_of_the_data(freq, unit, seed):
    dates = pd.date_range("2015-01-01", "2024-12-31", freq=freq).as_unit(unit)
    frame = dated(dates, seed)
    augmenter = PNLAugmenter().fit(frame)
    assert f"date: {CALENDARS[freq]}" in str(augmenter.value_support_)
    new = augmenter.sample(500, random_state=seed)["date"]
    assert new.isin(dates).all() and new.dtype == frame["date"].dtype
    assert new.nunique() > 0.9 * len(dates)
    # Rounding to the nearest date of the calendar moves no date on average.
    raw = PNLAugmenter(value_support=None).fit(frame).sample(500, random_state=seed)
    assert abs((new - raw["date"]).mean()) < pd.Timedelta(0.1 * np.diff(dates)[0])


@pytest.mark.parametrize("method", ["lines", "codes"])
@pytest.mark.parametrize("day", [15, 28])
def test_samplers_preserve_a_day_and_time_of_the_month(method, day):
    dates = pd.date_range("2018-01-01", periods=60, freq="MS")
    dates += pd.Timedelta(days=day - 1, hours=9)
    X = dated(dates)
    y = np.arange(len(X)) % 5 == 0
    sampler = PNLSampler(method=method, value_support="auto", random_state=0)
    new = sampler.fit_resample(X, y)[0].iloc[len(X) :]
    assert new["date"].isin(dates).all()


def test_leap_days_are_every_four_years():
    dates = pd.to_datetime([f"{year}-02-29" for year in range(1904, 2097, 4)])
    augmenter = PNLAugmenter().fit(dated(dates))
    assert "multiples of 4 years, from 1904-02-29" in str(augmenter.value_support_)
    assert augmenter.sample(300, random_state=0)["date"].isin(dates).all()


def test_one_date_off_the_calendar_leaves_days():
    frame = dated(pd.date_range("2015-01-01", periods=60, freq="MS"), n=2000)
    frame.loc[1999, "date"] = pd.Timestamp("2016-02-02")
    augmenter = PNLAugmenter().fit(frame)
    assert not augmenter.value_support_.calendars
    days = augmenter.sample(200, random_state=0)["date"].dt.day
    assert days.nunique() > 5


def test_days_of_the_month_explained_by_chance_are_ignored():
    three = pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"])
    assert not PNLAugmenter().fit(dated(three)).value_support_.calendars
    four = pd.date_range("2020-01-01", periods=4, freq="MS")
    assert PNLAugmenter().fit(dated(four)).value_support_.calendars
    # Every fourth Sunday is on different days of the month.
    weeks = pd.date_range("2020-01-05", periods=20, freq="28D")
    augmenter = PNLAugmenter().fit(dated(weeks))
    assert "multiples of 28 days" in str(augmenter.value_support_)


def test_missing_cells_and_placeholders_leave_the_calendar():
    dates = pd.date_range("2015-01-01", periods=60, freq="MS")
    frame = dated(dates)
    frame.loc[::7, "date"] = pd.NaT
    placeholder = pd.Timestamp("1999-12-31")
    frame.loc[1::5, "date"] = placeholder
    new = PNLAugmenter().fit(frame).sample(400, random_state=0)["date"]
    assert (new.isin(dates) | new.isna() | (new == placeholder)).all()
    assert (new == placeholder).any() and new.isna().any()


def test_a_duration_between_two_months_is_computed_from_them():
    rng = random()
    starts = pd.date_range("2015-01-01", periods=80, freq="MS")
    first = rng.integers(0, 60, 400)
    start, end = starts[first], starts[first + rng.integers(0, 12, 400)]
    columns = {"start": start, "end": end, "took": end - start}
    for order in (["start", "end", "took"], ["took", "end", "start"]):
        frame = pd.DataFrame({name: columns[name] for name in order})
        frame["paid"] = rng.normal(size=400)
        new = PNLAugmenter(Lines(0.8)).fit(frame).sample(300, random_state=0)
        assert (new["took"] == new["end"] - new["start"]).all()
        assert (new["took"] >= pd.Timedelta(0)).all()
        assert (new["start"].dt.day == 1).all() and (new["end"].dt.day == 1).all()
        assert len(new.merge(frame[order])) < 250


def test_months_and_days_of_an_equality():
    """Test a delivery date that follows from the month and days: it has no calendar."""
    rng = random()
    months = pd.date_range("2015-01-01", periods=80, freq="MS")
    start = months[rng.integers(0, 80, 400)]
    days = pd.to_timedelta(7 * rng.integers(0, 30, 400), "D")
    frame = pd.DataFrame({"start": start, "due": start + days, "days": days})
    frame["paid"] = rng.normal(size=400)
    new = PNLAugmenter().fit(frame).sample(300, random_state=0)
    assert (new["due"] == new["start"] + new["days"]).all()
    assert (new["start"].dt.day == 1).all()
    assert (new["days"].dt.days % 7 == 0).all()


def test_requests_for_months_and_for_other_days():
    dates = pd.date_range("2015-01-01", periods=60, freq="MS")
    augmenter = PNLAugmenter().fit(dated(dates))
    later = ColumnConstraint("date", lower=pd.Timestamp("2018-03-15"))
    new = augmenter.sample(200, constraints=later, random_state=0)["date"]
    assert new.min() >= pd.Timestamp("2018-04-01") and new.isin(dates).all()
    day = pd.Timestamp("2018-03-15")
    equal = ColumnConstraint("date", equal=day)
    new = augmenter.sample(20, constraints=equal, random_state=0)["date"]
    assert (new == day).all()


def test_months_of_polars_and_of_a_fixed_offset():
    pl = pytest.importorskip("polars")
    dates = pd.date_range("2015-01-01", periods=60, freq="MS")
    frame = dated(dates)
    new = PNLAugmenter().fit(pl.from_pandas(frame)).sample(200, random_state=0)
    assert (new["date"].dt.day() == 1).all()
    local = frame.assign(date=frame["date"].dt.tz_localize("+09:00"))
    new = PNLAugmenter().fit(local).sample(200, random_state=0)["date"]
    assert (new.dt.day == 1).all() and (new.dt.hour == 0).all()


# --- resolutions and atoms --------------------------------------------------------


def support_of(**columns):
    X = pd.DataFrame(columns)
    table = read_table(TableReader(), X, missing=True)
    return find_value_support(table.numbers(), table)


def test_resolution_of_decimals_and_integers_is_found():
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, 100.0, 200)
    support = support_of(
        free=x, cents=x.round(2), tenths=x.round(1), rooms=x.round(), n=x.astype(int),
        single=x.round(2).astype(np.float32), fine=x.round(5), large=1e13 + x.round(4),
    )  # fmt: skip
    steps = [0, 0.01, 0.1, 1, 1, 0.01, 0, 0]
    assert_array_equal(support.steps, steps)
    assert "cents: multiples of 0.01" in str(support)
    assert "rooms: integers" in str(support)


def test_frequent_values_are_atoms():
    rng = np.random.default_rng(1)
    x = rng.gamma(2.0, size=400)
    zero = np.where(rng.random(400) < 0.4, 0.0, x)
    capped = np.minimum(x, 3.0)
    gaps = np.where(rng.random(400) < 0.25, np.nan, x)
    dice = rng.integers(1, 7, 400).astype(float)
    X = np.column_stack([x, zero, capped, gaps, dice])
    atoms = find_atoms(X, np.arange(5))
    assert {j: values.tolist() for j, values in atoms.items()} == {1: [0.0], 2: [3.0]}


def slow_atoms(x):
    values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    if len(values) < 5:
        return []
    least = max(5, 0.03 * counts.sum(), 4 * np.sort(counts)[-4])
    return sorted(values[counts >= least], key=lambda value: value != 0)


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_sample_of_rows_loses_no_atom(seed, is_sorted):
    rng = np.random.default_rng(seed)
    n = 6 * FEW_ROWS
    x = rng.gamma(2.0, size=(n, 8))
    x[:, 0][rng.random(n) < 0.04] = 2.0
    x[:, 1][rng.random(n) < 0.2] = 1.5
    x[:, 1][rng.random(n) < 0.1] = 0
    x[:, 2] = rng.poisson(3, n)
    x[:, 3] = np.where(rng.random(n) < 0.5, 0, rng.poisson(200, n))
    # Nearly all cells are missing, so that few rows of a sample have a value.
    x[:, 4] = np.where(rng.random(n) < 0.2, 7.0, x[:, 4])
    x[:, 4][rng.random(n) < 0.99] = np.nan
    x[:, 5] = rng.choice([1.0, 2, 3, 4], n, p=[0.9, 0.05, 0.03, 0.02])
    x[:, 6] = rng.integers(0, 90, n)
    x = np.sort(x, axis=0) if is_sorted else x
    found = find_atoms(x, np.arange(8))
    expected = {j: slow_atoms(column) for j, column in enumerate(x.T)}
    expected = {j: values for j, values in expected.items() if values}
    assert {j: values.tolist() for j, values in found.items()} == expected
    assert {0, 1, 3, 4} <= set(found)
