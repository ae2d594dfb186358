"""Times: steps, clocks of zones, and times before the first one."""

import numpy as np
import pytest
from _containers import equal, in_container, read, there_and_back

from sklearn_pnl.frames.values import step_of_time

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
def test_step_is_the_longest_unit_that_is_kept(ticks, unit, step):
    assert step_of_time(np.array(ticks, np.int64), unit) == step


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Etc/GMT+5", "UTC"])
def test_local_dates_stay_dates_where_clocks_do_not_change(zone, container):
    local = pd.date_range("2021-01-05", periods=400, freq="D", tz=zone)
    X = in_container(pd.DataFrame({"d": local}), container)
    table = read(X)
    assert equal(there_and_back(table), X)
    assert table.numbers()[:, 0].tolist() == list(range(400))
    new = table.like(np.arange(-20.0, 500)[:, None])
    new = new if container == "pandas" else new.to_pandas()
    asked = pd.date_range("2020-12-16", periods=520, freq="D", tz=zone)
    assert (new["d"].to_numpy() == asked.to_numpy()).all()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo"])
def test_local_dates_of_changing_clocks_are_read_in_utc(zone, container):
    days = pd.date_range("2015-01-02", periods=300, freq="D")
    local = days.tz_localize(zone, nonexistent="shift_forward", ambiguous=[True] * 300)
    X = in_container(pd.DataFrame({"d": local}), container)
    table = read(X)
    assert equal(there_and_back(table), X)
    assert table.steps[0] == 1
    assert table.numbers()[24, 0] == 24 * 24


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_before_the_first_are_negative(unit, container):
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


def test_points_count_from_one_start_and_lengths_from_zero():
    start = pd.date_range("2020-01-01", periods=20, freq="D")
    X = pd.DataFrame({"end": start + pd.Timedelta("9D"), "start": start})
    X["took"] = X["end"] - X["start"]
    numbers = read(X).numbers()
    assert (numbers[:, 0] - numbers[:, 1] == numbers[:, 2]).all()
    assert numbers.min() == 0


def test_what_is_no_such_time_is_refused():
    days = pd.date_range("2020-01-01", periods=20, freq="D")
    table = read(pd.DataFrame({"t": days.as_unit("ns")}))
    far = pd.DataFrame({"t": pd.date_range("5020-01-01", periods=2, unit="s")})
    with pytest.raises(ValueError):
        table.read(far)
    for other in (np.arange(20), days - days[0], ["a"] * 20):
        with pytest.raises(ValueError, match="Column 't'.*holds no points in time"):
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
