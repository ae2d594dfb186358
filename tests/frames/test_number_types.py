"""Times and durations: resolution, time zones and comparisons."""

import numpy as np
import pytest
from _containers import equal, in_container, read, there_and_back

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.frames.number_types import step_of_time

pd = pytest.importorskip("pandas")

CONTAINERS = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize(
    "ticks, unit, step",
    [
        ([0, 86_400, 3 * 86_400], "s", 86_400),
        ([60, 60 + 3600, 60 + 7200], "s", 3600),
        ([0, 60_000, 90_000], "ms", 1000),
        ([5, 10, 15], "us", 1),
        ([7, 7 + 10**6], "ns", 10**6),
        ([-(2**62), 2**62], "s", 1),
        ([3], "ns", 86_400 * 10**9),
        ([], "ns", 86_400 * 10**9),
    ],
)
def test_resolution_is_the_longest_unit_that_divides_all_times(ticks, unit, step):
    assert step_of_time(np.array(ticks, np.int64), unit) == step


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Etc/GMT+5", "UTC"])
def test_local_dates_stay_dates_without_daylight_saving(zone, container):
    local = pd.date_range("2021-01-05", periods=400, freq="D", tz=zone)
    X = in_container(pd.DataFrame({"d": local}), container)
    table = read(X)
    assert equal(there_and_back(table), X)
    assert table.numbers()[:, 0].tolist() == list(range(400))
    new = table.like(np.arange(-20.0, 500)[:, None])
    new = new if container == "pandas" else new.to_pandas()
    requested = pd.date_range("2020-12-16", periods=520, freq="D", tz=zone)
    assert (new["d"].to_numpy() == requested.to_numpy()).all()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo"])
def test_local_dates_with_daylight_saving_are_read_in_utc(zone, container):
    days = pd.date_range("2015-01-02", periods=300, freq="D")
    local = days.tz_localize(zone, nonexistent="shift_forward", ambiguous=[True] * 300)
    X = in_container(pd.DataFrame({"d": local}), container)
    table = read(X)
    assert equal(there_and_back(table), X)
    assert table.steps[0] == 1
    assert table.numbers()[24, 0] == 24 * 24


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_before_the_first_time_are_negative(unit, container):
    days = pd.date_range("1900-01-03", periods=60, freq="D").as_unit(unit)
    took = pd.to_timedelta(np.arange(60) - 5, unit="h").as_unit(unit)
    X = pd.DataFrame({"t": days, "took": took, "v": np.arange(60.0)})
    table = read(in_container(X, container))
    before = X.assign(t=X["t"] - pd.Timedelta("5D"), took=X["took"] - took[8])
    numbers = table.read(in_container(before, container))
    assert numbers[:, 0].tolist() == [float(k - 5) for k in range(60)]
    assert (numbers[:, 1] - table.numbers()[:, 1]).tolist() == [-3.0] * 60
    back = table.like(np.tile([-5.0, -3.0, 0.0], (2, 1)))
    back = back if container == "pandas" else back.to_pandas()
    assert (back["t"] == days[0] - pd.Timedelta("5D")).all()


def test_times_have_a_common_origin_and_durations_start_at_zero():
    start = pd.date_range("2020-01-01", periods=20, freq="D")
    X = pd.DataFrame({"end": start + pd.Timedelta("9D"), "start": start})
    X["took"] = X["end"] - X["start"]
    numbers = read(X).numbers()
    assert (numbers[:, 0] - numbers[:, 1] == numbers[:, 2]).all()
    assert numbers.min() == 0


def test_other_values_than_times_are_rejected():
    days = pd.date_range("2020-01-01", periods=20, freq="D")
    table = read(pd.DataFrame({"t": days.as_unit("ns")}))
    far = pd.DataFrame({"t": pd.date_range("5020-01-01", periods=2, unit="s")})
    with pytest.raises(ValueError, match="Column 't'"):
        table.read(far)
    for other in (np.arange(20), days - days[0], ["a"] * 20):
        with pytest.raises(ValueError, match="Column 't'"):
            table.read(pd.DataFrame({"t": other}))


@pytest.mark.parametrize("one", ["s", "ms", "ns"])
@pytest.mark.parametrize("other", ["s", "us", "ns"])
def test_times_in_other_units_are_read(one, other):
    days = pd.date_range("2020-01-01", periods=20, freq="D")
    X = pd.DataFrame({"t": days.as_unit(one), "took": (days - days[9]).as_unit(one)})
    table = read(X)
    later = pd.Timedelta("1s")
    Y = pd.DataFrame({"t": days.as_unit(other), "took": X["took"].dt.as_unit(other)})
    apart = table.read(Y + later) - table.numbers()
    np.testing.assert_allclose(apart, 1 / 86_400, rtol=1e-9)


# --- times of different units and zeros -------------------------------------------

START = pd.Timestamp("2024-01-05")


def new_rows(X, container="pandas", n=1000, **settings):
    augmenter = PNLAugmenter(**settings).fit(in_container(X, container))
    new = augmenter.sample(n, random_state=0)
    return augmenter, new if container == "pandas" else new.to_pandas()


def days(counts):
    return pd.to_timedelta(counts, "D")


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("value_support", ["auto", None])
def test_durations_of_different_units_are_compared(container, value_support):
    rng = np.random.default_rng(0)
    booked = rng.integers(1, 30, 300)
    worked = (86_400 * booked * rng.uniform(0.7, 1, 300)).astype(int)
    worked = pd.to_timedelta(worked, "s").as_unit("s")
    X = pd.DataFrame({"booked": days(booked).as_unit("ns"), "worked": worked})
    augmenter, new = new_rows(X, container, value_support=value_support)
    assert augmenter.inequalities_ == [("worked", "booked")]
    assert (new["worked"] <= new["booked"]).all()
    assert (new["booked"] % pd.Timedelta("1D") == pd.Timedelta(0)).all()
    X = in_container(X, container)
    assert equal(there_and_back(read(X)), X)


@pytest.mark.parametrize("shift", ["0h", "12h", "-5h"])
def test_dates_are_compared_next_to_a_column_of_times(shift):
    rng = np.random.default_rng(0)
    start = START + days(rng.integers(0, 300, 300))
    end = start + days(1 + rng.integers(0, 20, 300)) + pd.Timedelta(shift)
    made = pd.Timestamp("2024-01-01 08:15:30")
    made = made + pd.to_timedelta(rng.integers(0, 10**7, 300), "s")
    X = pd.DataFrame({"start": start, "end": end, "made": made})
    augmenter, new = new_rows(X)
    assert augmenter.inequalities_ == [("start", "end")]
    assert (new["start"] <= new["end"]).all()
    for name in ("start", "end"):
        assert (new[name].dt.normalize() == new[name] - X[name].dt.hour[0] * HOUR).all()


HOUR = pd.Timedelta("1h")


def test_times_are_compared_only_within_a_time_zone():
    rng = np.random.default_rng(0)
    start = START + days(rng.integers(0, 300, 300))
    end = start + pd.to_timedelta(rng.integers(0, 2000, 300), "min")
    berlin = start.tz_localize("Europe/Berlin")
    tokyo = end.tz_localize("Europe/Berlin", ambiguous=True, nonexistent=HOUR)
    tokyo = tokyo.tz_convert("Asia/Tokyo")
    tokyo = tokyo.where(tokyo >= berlin, berlin.tz_convert("Asia/Tokyo"))
    X = pd.DataFrame({"start": berlin, "end": tokyo, "plain": start + days(400)})
    augmenter, new = new_rows(X)
    assert augmenter.inequalities_ == [("start", "end")]
    assert (new["start"] <= new["end"]).all()


def test_times_durations_and_numbers_are_not_ordered():
    rng = np.random.default_rng(0)
    k = rng.integers(0, 100, 300)
    X = pd.DataFrame(
        {
            "number": k + rng.uniform(size=300),
            "point": pd.Timestamp(0) + days(k + rng.integers(0, 5, 300)),
            "length": days(k + rng.integers(5, 10, 300)),
        }
    )
    assert new_rows(X, n=10)[0].inequalities_ == []


def test_columns_keep_their_unit_if_a_common_unit_would_round():
    rng = np.random.default_rng(0)
    fine = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 10**15, 50))
    wide = pd.Timestamp("1800-01-01") + days(rng.integers(0, 10**5, 50))
    X = pd.DataFrame({"fine": fine, "wide": wide, "seconds": wide.as_unit("s")})
    table = read(X)
    assert equal(there_and_back(table), X)
    assert table.scales[0] != table.scales[1] == table.scales[2]


def test_integers_beyond_float64_are_compared_exactly():
    rng = np.random.default_rng(0)
    first = 2**60 + rng.integers(0, 10**6, 300)
    X = pd.DataFrame({"first": first, "last": first + rng.integers(1, 10**4, 300)})
    augmenter, new = new_rows(X)
    assert augmenter.inequalities_ == [("first", "last")]
    assert (new["first"] <= new["last"]).all()


@pytest.mark.parametrize("of_start, of_took", [(1, 60), (60, 1), (1440, 60), (15, 45)])
def test_end_times_are_start_plus_duration_in_any_unit(of_start, of_took):
    rng = np.random.default_rng(0)
    start = START + pd.to_timedelta(of_start * rng.integers(0, 3000, 300), "min")
    took = pd.to_timedelta(of_took * rng.integers(1, 40, 300), "min")
    X = pd.DataFrame({"start": start, "end": start + took, "took": took})
    augmenter, new = new_rows(X, n=300)
    assert "end = start + took" in str(augmenter.equalities_)
    assert (new["end"] - new["start"] == new["took"]).all()
    assert (new["took"] % (of_took * pd.Timedelta("1min")) == pd.Timedelta(0)).all()
    assert len(new.merge(X)) < 30
    # Printed values can be passed as constraints.
    given = PNLAugmenter(equalities=augmenter.equalities_).fit(X)
    assert str(given.equalities_) == str(augmenter.equalities_)


def test_constraints_on_times_of_different_units_hold():
    rng = np.random.default_rng(0)
    booked = days(rng.integers(1, 30, 300))
    worked = pd.to_timedelta(rng.integers(1, 10**6, 300), "s")
    X = pd.DataFrame({"booked": booked, "worked": worked})
    least = ColumnConstraint({"booked": 1, "worked": -1}, lower=pd.Timedelta("1D"))
    new = PNLAugmenter().fit(X).sample(300, constraints=least, random_state=0)
    assert (new["booked"] - new["worked"] >= pd.Timedelta("1D")).all()
