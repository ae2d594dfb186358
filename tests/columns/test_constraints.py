"""Linear constraints: descriptions, validation and conversion."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _sets import linear
from numpy.testing import assert_array_equal
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array

from sklearn_pnl.columns.constraints import read_constraints
from sklearn_pnl.columns.relations import resolve_equalities
from sklearn_pnl.control import ColumnConstraint, LinearConstraints, adjust
from sklearn_pnl.frames import TableReader, read_table


def table_of(X):
    return read_table(TableReader(), X)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(6, 3)), columns=list("abc"))
    return X.assign(place=list("nsnsns"), count=np.arange(6))


@pytest.mark.parametrize(
    ("a", "lower", "upper", "words"),
    [
        ([1, 1, -1], 0, 0, "c = a + b"),
        ([2, -1, 0], -32, -32, "b = 2 a + 32"),
        ([1, 1, 1], 100, 100, "a + b + c = 100"),
        ([1, 0, 0], 5, 5, "a = 5"),
        ([1, -2, 0], 0, np.inf, "0 <= a - 2 b"),
        ([0, 1, 0.5], 1, 2, "1 <= b + 0.5 c <= 2"),
    ],
)
def test_descriptions_of_constraints(a, lower, upper, words):
    system = linear(a, lower, upper)
    assert system.descriptions == (words,)
    assert words in repr(system)


def test_empty_sums_have_a_name():
    assert linear([0, 0, 0], 4, 4).names == ["a sum of no features"]


def test_long_sums_are_shortened():
    names = tuple(f"x{j}" for j in range(40))
    system = linear(np.ones(40), 0, 1, names)
    assert "..." in system.descriptions[0]
    assert "(40 features)" in system.descriptions[0]


def test_residuals_have_signs_and_missing_cells_have_none():
    system = linear([[1, 1, 0], [0, 0, 1]], [0, 1], [0, 2])
    rows = np.array([[1, -1, 3.0], [1, 1, 0.5], [np.nan, 1, 1.5]])
    residual = system.residual(rows)
    assert_array_equal(residual, [[0, -1], [-2, 0.5], [np.nan, 0]])
    assert_array_equal(system.violation(rows), [2, 1])


def test_violations_are_those_of_the_numbers_of_a_frame():
    X = pd.DataFrame({"a": [1, 2, 3], "place": list("nsn"), "b": [2.0, 4, 7]})
    given = LinearConstraints([[2, 0, -1]], [0], [0], ("a", "place", "b"))
    assert_array_equal(given.violation(X), [0.5])
    with pytest.raises(ValueError, match="Constraint 0 .* 3 columns"):
        given.violation(np.ones((2, 2)))


def test_inconsistent_shapes_of_constraints_are_rejected():
    for k, d in ((2, 2), (1, 3)):
        with pytest.raises(ValueError, match=r"feature_names.* \(1, 2\)"):
            LinearConstraints(np.ones((1, 2)), np.zeros(k), np.zeros(k), range(d))


def test_constraints_can_be_selected_and_stacked():
    first = linear([[1, 1, 0]], 0, 0)
    each = linear([[0, 0, 1]], np.arange(4.0)[:, None], np.full((4, 1), np.inf))
    both = first.stack(each)
    assert len(both) == 2
    assert_array_equal(both.is_equality, [True, False])
    assert_array_equal(both.take_rows([2, 3]).lower, [[0, 2], [0, 3]])
    assert_array_equal(both.select([1]).upper, np.full((4, 1), np.inf))


def test_constraints_have_the_given_names(frame):
    system = linear([[1, 1, 0], [0, 0, 1]], [0, 1], [0, 2])
    named = replace(system, labels=("balance", "share"))
    assert named.descriptions == ("balance = 0", "1 <= share <= 2")
    assert named.stack(system).names == ["balance", "share", "a + b", "c"]
    assert named.select([1]).names == ["share"]
    a = np.array([[1.0, 0, 0, 0, 0]])
    far = LinearConstraints(a, *np.full((2, 1), 1e9), tuple("abcde"), labels=("far",))
    assert read_constraints(far, table_of(frame), 6).names == ["far"]


def test_constraints_of_all_types_are_combined(frame):
    given = [
        ColumnConstraint({"a": 1, "c": -2}, lower=np.arange(6.0)),
        LinearConstraint(csr_array([[0, 1.0, 0, 0, 2.0]]), 1, 3),
        ColumnConstraint("count", equal=4),
    ]
    system = read_constraints(given, table_of(frame), 6)
    # Categories are no numbers, so that the system contains only the other columns.
    assert system.feature_names == ("a", "b", "c", "count")
    expected = [[1, 0, -2, 0], [0, 1, 0, 2], [0, 0, 0, 1]]
    assert_array_equal(system.coefficients, expected)
    assert_array_equal(system.lower, [[k, 1, 4] for k in range(6)])
    assert_array_equal(system.upper, [[np.inf, 3, 4]] * 6)
    cells = np.random.default_rng(0).normal(size=(5, 2, 3))
    system = read_constraints(ColumnConstraint((1, 2), upper=0), table_of(cells))
    assert_array_equal(np.flatnonzero(system.coefficients), [5])


def test_integers_beyond_float64_are_rejected_in_constraints_and_totals():
    X = pd.DataFrame({"id": 2**60 + np.arange(40), "x": np.arange(40.0)})
    for requested in (
        {"constraints": ColumnConstraint("id", lower=2**60 + 3)},
        {"constraints": ColumnConstraint({"id": 1, "x": -1}, lower=0)},
        {"totals": {"id": 40.0 * 2**60}},
    ):
        with pytest.raises(ValueError, match="'id'"):
            adjust(X, **requested)


@pytest.mark.parametrize("make", [pd.Timestamp, lambda n: [pd.Timestamp(n)] * 5])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_bounds_of_times_have_nanosecond_resolution(make, zone):
    times = pd.Series(pd.to_datetime(np.arange(5) * 501)).dt.tz_localize(zone)
    X = pd.DataFrame({"t": times, "x": np.arange(5.0)})
    ends = pd.Series(make(1002)).dt.tz_localize(zone)
    ends = ends[0] if len(ends) == 1 else ends.tolist()
    system = read_constraints(ColumnConstraint("t", equal=ends), table_of(X))
    assert_array_equal(system.lower, np.full_like(system.lower, 1002))


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_bounds_can_be_dates_and_durations(zone):
    start = pd.date_range("2024-01-01", periods=5, tz=zone)
    X = pd.DataFrame(
        {"start": start, "end": start + pd.to_timedelta([9, 3, 4, 5, 6], "D")}
    )
    table = table_of(X)
    numbers = table.numbers()
    requested = [
        ColumnConstraint("start", lower=start[2]),
        ColumnConstraint({"end": 1, "start": -1}, upper=pd.Timedelta("4D")),
        ColumnConstraint({"end": 1, "start": -1}, lower=0),
        ColumnConstraint("end", equal=X["end"]),
        ColumnConstraint("start", upper=start[1].to_pydatetime()),
    ]
    met = read_constraints(requested, table, 5).residual(numbers) == 0
    lengths = (X["end"] - X["start"]) <= pd.Timedelta("4D")
    assert_array_equal(met[:, 0], start >= start[2])
    assert_array_equal(met[:, 1], lengths)
    assert met[:, 2:4].all()
    assert_array_equal(met[:, 4], start <= start[1])
    with pytest.raises(ValueError):
        read_constraints(
            ColumnConstraint({"end": 1, "start": 1}, lower=start[0]), table
        )


@pytest.mark.parametrize("zone", [None, "America/New_York"])
@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_dates_with_and_without_time_zone_cannot_be_compared(zone, container):
    start = pd.date_range("2024-01-01", periods=5, tz=zone)
    table = table_of(container({"start": start, "x": np.arange(5.0)}))
    other = start.tz_localize("UTC" if zone is None else None)
    wrong = [other[1], other[1].to_pydatetime(), pd.Series(other)]
    wrong += [] if zone is None else [np.datetime64("2024-01-02")]
    for value in wrong:
        with pytest.raises(ValueError, match="'start'"):
            read_constraints(ColumnConstraint("start", equal=value), table)
    read_constraints(ColumnConstraint("start", equal=start), table)


@pytest.mark.parametrize("word", ["2024-01-02", "female"])
def test_strings_as_bounds_are_rejected_with_a_remedy(word):
    with pytest.raises(ValueError, match=r"pandas.Timestamp.* by totals={column"):
        ColumnConstraint("start", lower=word)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (ColumnConstraint("z", lower=0), "'z'"),
        (ColumnConstraint("place", lower=0), "'place'"),
        (ColumnConstraint("a", lower=[1, 2.0]), "Constraint 0 .* 2 .* 6 rows"),
        (ColumnConstraint("a", lower=2, upper=1), r"Constraint 0 .*lower=\[2"),
        (
            ColumnConstraint("a", lower=pd.Timestamp("2024")),
            "times .*'a'",
        ),
        (
            LinearConstraint([[1, 1]], 0, 1),
            "Constraint 0 .* 2 columns",
        ),
        ("a < 3", "Constraint 0 .*'a < 3'"),
    ],
)
def test_invalid_constraints_are_rejected(frame, constraint, message):
    with pytest.raises(ValueError, match=message):
        read_constraints(constraint, table_of(frame), 6)


@pytest.mark.parametrize(
    ("args", "ends"),
    [
        (({},), {"lower": 0}),
        (("a",), {}),
        (("a",), {"equal": 1, "lower": 0}),
        (("a",), {"lower": np.nan}),
        (("a",), {"lower": "low"}),
        (("a",), {"lower": [[1.0, 2.0]]}),
    ],
)
def test_ambiguous_column_constraints_are_rejected(args, ends):
    with pytest.raises(ValueError):
        ColumnConstraint(*args, **ends)


def test_given_equalities_are_checked_on_the_rows():
    parts = np.random.default_rng(0).gamma(2.0, size=(30, 2))
    table = table_of(np.column_stack([parts, parts.sum(axis=1)]))
    found = resolve_equalities("auto", table)
    assert found.descriptions == ("x2 = x0 + x1",)
    again = resolve_equalities(found, table)
    assert again.descriptions == found.descriptions
    assert len(resolve_equalities(None, table)) == 0
    with pytest.raises(ValueError, match="'x1 = x0'"):
        resolve_equalities(ColumnConstraint({0: 1, 1: -1}, equal=0), table)
    with pytest.raises(ValueError):
        resolve_equalities(ColumnConstraint(0, lower=0), table)


def test_scalar_bounds_apply_to_all_constraints():
    a = np.eye(2)
    scalar = LinearConstraints(a, 1.0, np.inf, ("a", "b"))
    vector = LinearConstraints(a, np.ones(2), np.full(2, np.inf), ("a", "b"))
    assert_array_equal(scalar.lower, vector.lower)
    assert scalar.descriptions == vector.descriptions == ("1 <= a", "1 <= b")
