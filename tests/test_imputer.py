"""ManyBodyImputer: missing cells of tensors and tables."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from sklearn_pnl import ManyBodyImputer
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.geometry import TensorPoset, complete, order_mask, tree_poset


def hidden(rng, X, share=0.2):
    """Replace cells by NaN, such that each row keeps an observed cell."""
    missing = rng.random(X.shape) < share
    missing.reshape(len(X), -1)[:, 0] = False
    return np.where(missing, np.nan, X)


def with_total(rng, n=150, d=4):
    parts = rng.gamma(2.0, size=(n, d)) * np.geomspace(1, 1000, d)
    return np.column_stack([parts, parts.sum(axis=1)])


def tensors(rng, n=5, shape=(4, 5, 3)):
    return rng.gamma(2.0, size=(n, *shape))


@pytest.mark.parametrize("order", [1, 2, [(0, 1), (2,)]])
def test_tensors_are_filled_with_the_cells_of_their_model(order):
    rng = np.random.default_rng(0)
    X = hidden(rng, tensors(rng))
    imputer = ManyBodyImputer(order, alpha=0.01, tol=1e-9)
    filled = imputer.fit_transform(X)
    poset = TensorPoset((4, 5, 3))
    found = complete(X, poset, order_mask(poset, order), ridge=0.01)
    missing = np.isnan(X)
    assert_allclose(filled[missing], found.measure[missing], rtol=1e-6)
    assert_array_equal(filled[~missing], X[~missing])
    assert imputer.n_iter_ == found.n_iter.max()
    assert_array_equal(imputer.transform(X), filled)


def test_default_order_depends_on_the_shape():
    X = np.random.default_rng(0).gamma(2.0, size=(30, 4, 3, 2))
    assert ManyBodyImputer().fit(X).order_ == 2
    assert ManyBodyImputer().fit(X[..., 0]).order_ == 1
    table = ManyBodyImputer().fit(X[:, :, 0, 0])
    assert table.order_ is None
    assert table.poset_ is None
    given = ManyBodyImputer(poset=TensorPoset((2, 2))).fit(X[:, :, 0, 0])
    assert given.order_ == 1


def test_an_added_bottom_leaves_its_cell_missing():
    """Test that a bottom without a feature is not observed."""
    rng = np.random.default_rng(1)
    poset = tree_poset([-1, 0, 0, -1, 3, 3], add_bottom=True)
    poset = getattr(poset, "poset", poset)
    n = poset.n_elements - poset.added_bottom
    X = hidden(rng, rng.gamma(2.0, size=(6, n)))
    filled = ManyBodyImputer(1, poset=poset, alpha=0.1).fit_transform(X)
    assert np.all(filled > 0)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_ordered_modes_are_filled_from_neighbouring_levels():
    rng, time = np.random.default_rng(3), np.linspace(0, 3, 40)
    exact = np.exp(np.sin(time))[None, :, None] * rng.gamma(5.0, size=(1, 1, 6))
    X = hidden(rng, exact * rng.gamma(200, 1 / 200, size=exact.shape), 0.7)
    missing = np.isnan(X)
    errors = {
        smooth: np.abs(
            ManyBodyImputer(1, alpha=1e-3, ordered_modes=smooth).fit_transform(X)
            - exact
        )[missing].mean()
        for smooth in ((), (0,))
    }
    assert errors[0,] < 0.8 * errors[()]


def test_nearest_rows_as_reference_help_if_rows_share_a_pattern():
    rng = np.random.default_rng(4)
    pattern = rng.gamma(0.5, size=(6, 6)) + 0.1
    exact = pattern * rng.gamma(50, 1 / 50, size=(60, 6, 6))
    X = hidden(rng, exact, 0.3)
    missing = np.isnan(X)
    errors = [
        np.abs(ManyBodyImputer(1, n_neighbors=k).fit_transform(X) - exact)[
            missing
        ].mean()
        for k in (None, 5)
    ]
    assert errors[1] < 0.5 * errors[0]


# --- tables -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_totals_hold_and_observed_cells_are_unchanged(seed):
    rng = np.random.default_rng(seed)
    X = with_total(rng)
    given = hidden(rng, X)
    imputer = ManyBodyImputer()
    filled = imputer.fit_transform(given)
    observed = ~np.isnan(given)
    assert_array_equal(filled[observed], X[observed])
    assert imputer.equalities_.descriptions == ("x4 = x0 + x1 + x2 + x3",)
    assert imputer.equalities_.violation(filled).max() < 1e-9
    assert np.all(filled >= 0)
    alone = np.isnan(given).sum(axis=1) == 1
    assert_allclose(filled[alone], X[alone], rtol=1e-9)
    naive = KNNImputer().fit_transform(given)
    assert imputer.equalities_.violation(naive).max() > 1e-3
    new = hidden(rng, with_total(rng, 20))
    assert imputer.equalities_.violation(imputer.transform(new)).max() < 1e-9


def has_fill_within(rows, missing, system, ends):
    """Check by a linear programme which rows (n,) have a fill within bounds."""
    able = ~missing.any(axis=1)
    for i in np.flatnonzero(~able):
        hidden = missing[i]
        a = system.coefficients[:, hidden]
        told = a.any(axis=1)
        rest = system.coefficients[told][:, ~hidden] @ rows[i, ~hidden]
        column_bounds = (np.atleast_2d(e)[0] for e in (system.lower, system.upper))
        lower, upper = (e[told] - rest for e in column_bounds)
        found = milp(
            np.zeros(a.shape[1]),
            constraints=LinearConstraint(a[told], lower, upper),
            bounds=Bounds(*(e[hidden] for e in ends)),
        )
        able[i] = found.success
    return able


def two_levels(rng):
    """Make parts with negative values, subtotals and their total."""
    parts = rng.normal(size=(80, 4))
    subtotals = np.column_stack([parts[:, :2].sum(axis=1), parts[:, 2:].sum(axis=1)])
    X = np.column_stack([parts, subtotals, subtotals.sum(axis=1)])
    a = [[1, 1, 0, 0, -1, 0, 0], [0, 0, 1, 1, 0, -1, 0], [0, 0, 0, 0, 1, 1, -1]]
    return X, LinearConstraint(a, 0, 0)


def one_total(rng):
    return with_total(rng, 80), LinearConstraint([[1, 1, 1, 1, -1]], 0, 0)


def intervals(rng):
    """Make a total that nearly equals its parts, two of which are small."""
    X = with_total(rng, 80)
    share = (X[:, 0] + X[:, 1]).max() / X[:, 4].min()
    a = [[1, 1, 0, 0, -share], [1, 1, 1, 1, -1]]
    return X, LinearConstraint(a, [-np.inf, -5], [0, 5])


@pytest.mark.parametrize("table", [two_levels, one_total, intervals])
@pytest.mark.parametrize("seed", range(4))
def test_filled_values_are_within_the_observed_range_if_feasible(table, seed):
    rng = np.random.default_rng(seed)
    X, requested = table(rng)
    # The imputer is fitted on few rows, and the remaining rows exceed their ranges.
    given = np.where(rng.random(X.shape) < 0.5, np.nan, X)
    given[np.isnan(given).all(axis=1), 0] = X[np.isnan(given).all(axis=1), 0]
    given[70:] *= 2
    ends = np.nanmin(given[:40], axis=0), np.nanmax(given[:40], axis=0)
    imputer = ManyBodyImputer(equalities=None, constraints=requested).fit(given[:40])
    filled, missing = imputer.transform(given), np.isnan(given)
    outside = missing & ((filled < ends[0]) | (filled > ends[1]))
    assert np.all(filled[missing & (ends[0] >= 0)] >= 0)
    system = imputer._filler._system
    assert_array_equal(filled[~missing], given[~missing])
    off = np.abs(system.residual(filled)) / system.scale > 1e-9
    off[~(missing @ (system.coefficients != 0).T)] = False
    assert not off.any()
    # The programme has tolerances, so that bounds are moved inwards and outwards.
    room = 1e-5 * (ends[1] - ends[0])
    inner, outer = (
        has_fill_within(
            given, missing, system, (ends[0] + k * room, ends[1] - k * room)
        )
        for k in (1, -1)
    )
    assert not outside[inner].any()
    assert np.all(outside[~outer].any(axis=1))
    assert 0 < np.count_nonzero(~outer) < np.count_nonzero(inner)


def test_a_column_with_one_observed_value_follows_its_equation():
    """Test a total with a single observed value."""
    rng = np.random.default_rng(0)
    X = with_total(rng, 30)
    given = hidden(rng, X, 0.1)
    given[0], given[1:, 4] = X[0], np.nan
    total = ColumnConstraint({0: 1, 1: 1, 2: 1, 3: 1, 4: -1}, equal=0)
    imputer = ManyBodyImputer(equalities=total)
    filled = imputer.fit_transform(given)
    assert imputer.equalities_.violation(filled).max() < 1e-9
    whole = ~np.isnan(given[:, :4]).any(axis=1)
    assert_allclose(filled[whole], X[whole], rtol=1e-9)


@pytest.mark.parametrize("shift", [0, 2000])
def test_float32_totals_are_found_and_hold_up_to_rounding(shift):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = with_total(rng) + shift
    if not shift:
        # For zeros, rounding can require negative values.
        X[::2, 2] = 0
    X[:, 4] = X[:, :4].sum(axis=1)
    given = hidden(rng, X, 0.1)
    frame = pd.DataFrame(given, columns=list("abcde"))
    frame["n"] = np.arange(len(X))
    mixed = frame.astype({"a": np.float32, "e": np.float32})
    for rows in (given.astype(np.float32), mixed):
        imputer = ManyBodyImputer()
        filled = imputer.fit_transform(rows)
        assert len(imputer.equalities_) == 1
        room = 8 * np.finfo(np.float32).eps * np.abs(X).max()
        assert np.abs(imputer.equalities_.residual(filled)).max() < room
        assert_array_equal(imputer.transform(rows), filled)


def test_frames_and_arrays_are_filled_alike_for_equal_distances():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(200, 5)).astype(float)
    given = hidden(rng, np.column_stack([X, X.sum(axis=1)]))
    filled = ManyBodyImputer().fit_transform(given)
    whole = pd.DataFrame(given, columns=list("abcdef"))
    nullable = whole.convert_dtypes()
    for rows in (np.asfortranarray(given), whole, nullable):
        assert_array_equal(ManyBodyImputer().fit_transform(rows), filled)


def test_without_equalities_cells_are_filled_from_nearest_rows():
    rng = np.random.default_rng(0)
    X = hidden(rng, rng.normal(size=(50, 3)))
    span = np.nanmax(X, axis=0) - np.nanmin(X, axis=0)
    imputer = ManyBodyImputer(n_neighbors=3)
    assert_allclose(
        imputer.fit_transform(X),
        KNNImputer(n_neighbors=3).fit_transform(X / span) * span,
    )
    assert len(imputer.equalities_) == 0


def test_order_none_treats_tensors_as_tables():
    rng = np.random.default_rng(0)
    X = rng.gamma(3.0, size=(120, 3, 4))
    X[:, 0] = X[:, 1] + X[:, 2]
    X[rng.random(X.shape) < 0.05] = np.nan
    filled = ManyBodyImputer(order=None).fit_transform(X)
    # The imputer searches for sums along an axis of adjacent cells.
    assert_allclose(filled[:, 0], filled[:, 1] + filled[:, 2])


def test_constraints_and_equalities_can_be_given():
    rng = np.random.default_rng(1)
    X = hidden(rng, with_total(rng), 0.2)
    total = ColumnConstraint({0: 1, 1: 1, 2: 1, 3: 1, 4: -1}, equal=0)
    given = ManyBodyImputer(equalities=total).fit(X)
    assert given.equalities_.violation(given.transform(X)).max() < 1e-9
    requested = ManyBodyImputer(
        equalities=total, constraints=ColumnConstraint(0, upper=1.5)
    )
    X[::3, :2] = np.nan
    off = np.count_nonzero((X[:, 0] > 1.5) & np.isnan(X).any(axis=1))
    with pytest.warns(ConvergenceWarning, match=f"^{off} rows.*x0 <= 1.5"):
        filled = requested.fit_transform(X)
    assert filled[::3, 0].max() <= 1.5 + 1e-9
    assert not len(ManyBodyImputer(equalities=None).fit(X).equalities_)


def test_equalities_contradicted_by_observed_cells_raise_a_warning():
    rng = np.random.default_rng(2)
    imputer = ManyBodyImputer().fit(with_total(rng))
    new = with_total(rng, 3)
    new[1, 4] = 0.5 * new[1, 0]
    new[[0, 1], 1] = np.nan
    with pytest.warns(
        ConvergenceWarning, match="1 row cannot satisfy .* first is row 1. Correct"
    ):
        filled = imputer.transform(new)
    assert filled[1, 1] >= 0
    assert imputer.equalities_.violation(filled[[0, 2]]).max() < 1e-9


def test_frames_and_pipelines_are_supported():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    X = pd.DataFrame(hidden(rng, with_total(rng)), columns=list("abcd") + ["all"])
    imputer = ManyBodyImputer(constraints=ColumnConstraint("b", upper=1000))
    filled = imputer.set_output(transform="pandas").fit_transform(X)
    assert list(filled.columns) == [*"abcd", "all"]
    assert imputer.equalities_.descriptions[0] == "all = a + b + c + d"
    cube = ManyBodyImputer().set_output(transform="pandas")
    cube = cube.fit_transform(hidden(rng, tensors(rng)))
    assert isinstance(cube, np.ndarray)
    iris = load_iris()
    model = make_pipeline(ManyBodyImputer(), KNeighborsClassifier())
    assert cross_val_score(model, hidden(rng, iris.data), iris.target).mean() > 0.85


# --- errors -----------------------------------------------------------------------


def test_cells_that_are_not_determined_stay_missing_with_a_warning():
    X = np.array([[[1.0, 2.0], [3.0, np.nan]], [[1.0, np.nan], [np.nan, 2.0]]])
    with pytest.warns(UserWarning, match="2 of 3 .* cell 1 of row 1"):
        filled = ManyBodyImputer(1, alpha=0).fit_transform(X)
    assert_allclose(filled[0, 1, 1], 6)
    assert_array_equal(np.isnan(filled[1]), np.isnan(X[1]))
    assert not np.isnan(ManyBodyImputer(1).fit_transform(X)).any()


def test_cells_missing_only_in_transform_are_filled():
    rng = np.random.default_rng(5)
    for X in (tensors(rng), with_total(rng)):
        filled = ManyBodyImputer().fit(X).transform(hidden(rng, X))
        assert not np.isnan(filled).any()


def test_rows_without_observed_cells_are_rejected_or_filled():
    rng = np.random.default_rng(6)
    X = tensors(rng)
    X[3] = np.nan
    with pytest.raises(ValueError, match="Row 3"):
        ManyBodyImputer().fit(X)
    table = with_total(rng)
    table[7] = np.nan
    with pytest.warns(UserWarning, match="row 7"):
        filled = ManyBodyImputer().fit_transform(table)
    assert_allclose(filled[7], np.nanmean(table, axis=0))
    table[:, 2] = np.nan
    with pytest.raises(ValueError, match="'x2'"):
        ManyBodyImputer().fit(table)


def test_rows_of_zeros_require_an_offset():
    X = tensors(np.random.default_rng(7))
    X[2] = 0
    assert_array_equal(ManyBodyImputer().fit_transform(X), X)
    X[2, 0, 0] = np.nan
    with pytest.raises(ValueError, match="Row 2"):
        ManyBodyImputer().fit(X)
    filled = ManyBodyImputer(offset=1.0).fit_transform(X)
    assert_allclose(filled[2], 0, atol=1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"order": 3}, "order=3 .* 1 to 2"),
        ({"ordered_modes": [2]}, "ordered_modes"),
        ({"alpha": -1.0}, "'alpha' parameter"),
    ],
)
def test_invalid_parameters_are_rejected(params, message):
    X = np.random.default_rng(0).gamma(1.0, size=(5, 4, 3))
    with pytest.raises((IndexError, ValueError), match=message):
        ManyBodyImputer(**params).fit(X)


def test_a_parameter_of_tensors_is_named_for_a_table():
    X = with_total(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"alpha=1 has no effect .* Remove alpha\.$"):
        ManyBodyImputer(alpha=1).fit(X)


def test_invalid_values_are_rejected():
    X = -tensors(np.random.default_rng(0))
    with pytest.raises(ValueError):
        ManyBodyImputer().fit(X)
    assert np.all(ManyBodyImputer(order=None).fit_transform(X) == X)
    with pytest.raises(ValueError):
        ManyBodyImputer().fit(np.full((3, 2, 2), np.inf))
    with pytest.raises(ValueError):
        ManyBodyImputer().fit(-X).transform(-X[:, :, :2])
    arrays = ColumnConstraint(0, lower=[1.0, 2.0])
    with pytest.raises(ValueError):
        ManyBodyImputer(constraints=arrays).fit(with_total(np.random.default_rng(0)))


def test_dates_are_rejected():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    days = pd.date_range("2020", periods=9)
    frame = pd.DataFrame({"a": np.arange(9), "day": days})
    kinds = [frame.assign(day=days.tz_localize("UTC"), a=frame["a"].astype("Int64"))]
    kinds += [frame, frame[["day"]], frame[["day"]].to_numpy()]
    kinds += [frame.assign(day=days.to_period("D")), pl.from_pandas(frame)]
    for rows in kinds:
        with pytest.raises(TypeError):
            ManyBodyImputer().fit(rows)


def test_missing_convergence_raises_a_warning():
    rng = np.random.default_rng(0)
    X = hidden(rng, tensors(rng))
    # Fitting fills no row.
    imputer = ManyBodyImputer(2, alpha=1e-4, max_iter=1).fit(X)
    for fill in (imputer.transform, imputer.fit_transform):
        with pytest.warns(ConvergenceWarning):
            fill(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ManyBodyImputer(2, alpha=1e-4).fit_transform(X)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_bytes_for_every_number_of_threads(n_jobs):
    rng = np.random.default_rng(0)
    X = hidden(rng, tensors(rng, 40, (12, 10, 14)))
    one = ManyBodyImputer(1).fit_transform(X)
    assert_array_equal(ManyBodyImputer(1, n_jobs=n_jobs).fit_transform(X), one)


def test_equalities_unrelated_to_a_contradicted_equality_hold():
    parts = np.random.default_rng(1).gamma(2.0, size=(4, 80))
    rows = np.column_stack(
        [parts[:2].T, parts[:2].sum(0), parts[2:].T, parts[2:].sum(0)]
    )
    row = rows[0].copy()
    # A part larger than its total: the other part would be negative.
    row[1], row[[0, 5]] = row[2] + 2, np.nan
    with pytest.warns(ConvergenceWarning, match="x2 = x0 . x1") as caught:
        filled = ManyBodyImputer().fit(rows).transform([row])[0]
    np.testing.assert_allclose(filled[5], row[3] + row[4])
    assert not any("x5" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1.0, 1e6])
def test_equalities_hold_in_small_units(unit):
    rng = np.random.default_rng(1)
    X = rng.gamma(2.0, size=(40, 2))
    X = np.column_stack([X, X.sum(axis=1)]) * unit
    gaps = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    lost = np.isnan(gaps).all(axis=1)
    gaps[lost] = X[lost]
    filled = ManyBodyImputer().fit_transform(gaps)
    assert_allclose(filled[:, 0] + filled[:, 1], filled[:, 2], rtol=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_nearest_rows_agree_with_knn_imputer(share):
    rng = np.random.default_rng(0)
    X = hidden(rng, rng.normal(size=(300, 5)), share)
    X = X[~np.isnan(X).all(axis=1)]
    span = np.nanmax(X, axis=0) - np.nanmin(X, axis=0)
    filled = ManyBodyImputer(equalities=None, n_candidates=None).fit_transform(X)
    assert_allclose(filled, KNNImputer().fit_transform(X / span) * span, rtol=1e-9)


def test_ties_do_not_depend_on_the_other_rows_of_a_call():
    rng = np.random.default_rng(0)
    X = hidden(rng, rng.integers(0, 4, (400, 5)) / 10)
    X = X[~np.isnan(X).all(axis=1)]
    imputer = ManyBodyImputer(equalities=None).fit(X)
    filled = imputer.transform(X)
    for i in range(0, len(X), 20):
        assert_array_equal(imputer.transform(X[i : i + 1])[0], filled[i])


def test_nearest_rows_are_searched_among_candidates():
    """Test that a column with few values keeps as many rows as neighbours."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    gaps = hidden(rng, X)
    gaps[np.isnan(gaps).all(axis=1)] = 0
    gaps[10:, 2], gaps[:10, 2] = np.nan, np.arange(10)
    settings = {"equalities": None, "n_neighbors": 10}
    some = ManyBodyImputer(n_candidates=200, **settings).fit_transform(gaps)
    again = ManyBodyImputer(n_candidates=200, **settings).fit_transform(gaps)
    full = ManyBodyImputer(n_candidates=None, **settings).fit_transform(gaps)
    assert_array_equal(some, again)
    assert not np.array_equal(some, full)
    assert_allclose(some[10:, 2], 4.5)
    hole = np.isnan(gaps[:, 1]) & ~np.isnan(gaps[:, 0])
    assert np.abs(some - X)[hole, 1].mean() < 0.25


def test_sums_of_small_counts_hold_next_to_sums_of_amounts():
    rng = np.random.default_rng(0)
    amounts, counts = rng.lognormal(8, 2.5, (200, 2)), rng.integers(1, 6, (200, 3))
    sums = amounts.sum(axis=1), counts.sum(axis=1)
    X = np.column_stack([amounts, sums[0], counts, sums[1]]).astype(float)
    gaps = X.copy()
    gaps[::4, [2, 4]] = np.nan
    filled = ManyBodyImputer().fit_transform(gaps)
    assert_allclose(filled[:, [2, 4]], X[:, [2, 4]], rtol=1e-9)


@pytest.mark.parametrize("largest", [1e3, 1e6, 1e8])
def test_contradictions_that_are_small_next_to_the_range_are_reported(largest):
    rng = np.random.default_rng(0)
    parts = rng.integers(1, 1000, (60, 2)).astype(float)
    X = np.column_stack([parts, parts.sum(axis=1), rng.gamma(2, 5, 60)])
    X[3, :3] = largest, largest, 2 * largest
    X[0, 2], X[0, 3] = X[0, 2] + 1, np.nan
    total = ColumnConstraint({0: 1, 1: 1, 2: -1}, equal=0)
    with pytest.warns(ConvergenceWarning, match="row 0"):
        ManyBodyImputer(equalities=None, constraints=total).fit_transform(X)


def test_a_single_tensor_raises_a_warning():
    rng = np.random.default_rng(0)
    X = hidden(rng, rng.gamma(2.0, size=(4, 5, 6)))
    ManyBodyImputer(2).fit(X[None])
    with pytest.warns(UserWarning, match=r"shape \(5, 6\)"):
        ManyBodyImputer(2).fit(X)
    ManyBodyImputer(1).fit(X[0])
    ManyBodyImputer(1).fit(X)
    ManyBodyImputer(2, n_neighbors=2).fit(X)


# --- constraints that exclude each other ----------------------------------------------


def books(n=80, seed=0):
    rng = np.random.default_rng(seed)
    parts = rng.gamma(2, 30, (n, 2)).round()
    return np.column_stack([parts, parts.sum(axis=1)])


def caught_in(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, " ".join(str(each.message) for each in caught)


def test_equalities_of_the_data_precede_constraints_and_constraints_their_successors():
    upper, lower = ColumnConstraint(0, upper=50), ColumnConstraint(0, lower=70)
    record = np.array([[np.nan, 20.0, 100.0], [np.nan, 20.0, np.nan]])
    for rules, free in (([upper, lower], 50.0), ([lower, upper], 70.0)):
        imputer = ManyBodyImputer(constraints=rules).fit(books())
        filled, text = caught_in(lambda imputer=imputer: imputer.transform(record))
        # The first row follows from the identity, and the second from the first rule.
        assert_allclose(filled, [[80, 20, 100], [free, 20, 20 + free]])
        assert "1 row cannot satisfy 'x0 <= 50' by up to 30" in text or free == 70
        assert "'70 <= x0'" in text or free == 70


def test_a_violated_equality_is_missed_as_little_as_possible():
    imputer = ManyBodyImputer().fit(books())
    filled, text = caught_in(lambda: imputer.transform([[np.nan, 30.0, 28.0]]))
    assert_allclose(filled, [[0, 30, 28]], atol=1e-9)
    assert "by up to 2; the first is row 0" in text


@pytest.mark.parametrize("seed", range(3))
def test_each_row_is_imputed_independently_and_each_violated_constraint_is_named(seed):
    X = books(60, seed)
    rng = np.random.default_rng(seed)
    rules = [ColumnConstraint({0: 1, 2: -0.6}, upper=0), ColumnConstraint(1, lower=40)]
    imputer = ManyBodyImputer(constraints=rules).fit(X)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[::9, 2] = 90
    # Rows that also lack a cell, but not all cells.
    X[::9, 0], X[::9, 1] = np.nan, 95
    X = X[~np.isnan(X).all(axis=1) & np.isnan(X).any(axis=1)]
    together, text = caught_in(lambda: imputer.transform(X))
    alone = [caught_in(lambda row=row: imputer.transform(row[None]))[0] for row in X]
    assert_allclose(together, np.vstack(alone), rtol=1e-9, atol=1e-9)
    missed = {
        "x2 = x0 + x1": np.abs(together @ [1, 1, -1]),
        "x0 - 0.6 x2 <= 0": together @ [1, 0, -0.6],
        "40 <= x1": 40 - together[:, 1],
    }
    for name, residual in missed.items():
        n_off = np.count_nonzero(residual > 1e-6)
        assert n_off > 0
        noun = "row" if n_off == 1 else "rows"
        assert f"{n_off} {noun} cannot satisfy '{name}' by up to" in text
        assert f"up to {residual.max():.3g};" in text
