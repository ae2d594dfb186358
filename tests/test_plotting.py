"""Displays: the numbers that they hold, and what they draw."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from sklearn_pnl import (
    BackwardProjector,
    GeodesicEnergyDisplay,
    InteractionEnergyDisplay,
    ManyBodyProjector,
    SampleComparisonDisplay,
    compare_samples,
)
from sklearn_pnl.geometry import (
    TensorPoset,
    energy_decomposition,
    geodesic_energy,
    interaction_energy,
    tree_poset,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ESTIMATORS = [ManyBodyProjector, BackwardProjector]
SHAPE = (2, 3, 2)
SEEDS = [0, 1]


@pytest.fixture(autouse=True)
def no_figure_stays():
    plt.close("all")
    yield
    plt.close("all")


def tensors(seed=0, n_rows=8):
    """Rows with some empty cells."""
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=(n_rows, *SHAPE)) * (rng.random((n_rows, *SHAPE)) > 0.1)


def distributions(X, offset):
    p = X + offset
    return p / p.sum(axis=(1, 2, 3), keepdims=True)


# --- energies of the orders -----------------------------------------------------


@pytest.mark.parametrize("make", ESTIMATORS)
@pytest.mark.parametrize("seed", SEEDS)
def test_display_holds_the_energies_of_the_rows(seed, make):
    X = tensors(seed)
    estimator = make(offset=0.1).fit(X)
    display = InteractionEnergyDisplay.from_estimator(estimator, X)
    expected = energy_decomposition(distributions(X, 0.1), TensorPoset(SHAPE))
    assert_allclose(display.energies, expected, atol=1e-12)
    assert display.level_names == ["order 1", "order 2", "order 3"]


def test_display_of_other_rows_than_those_of_the_fit():
    fitted, other = tensors(0), tensors(1, 3)
    estimator = ManyBodyProjector(offset=0.1).fit(fitted)
    display = InteractionEnergyDisplay.from_estimator(estimator, other)
    expected = energy_decomposition(distributions(other, 0.1), TensorPoset(SHAPE))
    assert_allclose(display.energies, expected, atol=1e-12)


def test_levels_are_passed_on_and_named():
    X = tensors()
    estimator = ManyBodyProjector(offset=0.1).fit(X)
    levels = [1, [(0, 1), (2,)]]
    display = InteractionEnergyDisplay.from_estimator(estimator, X, levels=levels)
    p = distributions(X, 0.1)
    expected = energy_decomposition(p, TensorPoset(SHAPE), levels)
    assert_allclose(display.energies, expected, atol=1e-12)
    assert display.level_names == ["level 1", "level 2", "beyond"]


def test_flat_rows_on_a_poset_with_an_added_bottom():
    X = np.random.default_rng(0).uniform(size=(5, 4))
    poset = tree_poset([-1, 0, -1, 2], add_bottom=True)
    estimator = ManyBodyProjector(poset=poset, offset=0.1).fit(X)
    roots = np.array([False, True, False, True, False])
    display = InteractionEnergyDisplay.from_estimator(estimator, X, levels=[roots])
    assert display.energies.shape == (5, 2)
    # The bottom holds the mean of the row.
    p = np.column_stack([X.mean(axis=1), X]) + 0.1
    p /= p.sum(axis=1, keepdims=True)
    whole = np.log(5) + (p * np.log(p)).sum(axis=1)
    assert_allclose(display.energies.sum(axis=1), whole, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_bars_are_means_and_whiskers_are_quartiles(seed):
    X = tensors(seed)
    _, ax = plt.subplots()
    estimator = ManyBodyProjector(offset=0.1).fit(X)
    display = InteractionEnergyDisplay.from_estimator(estimator, X, ax=ax)
    mean = display.energies.mean(axis=0)
    assert_allclose([bar.get_height() for bar in display.bars_], mean)
    segments = display.bars_.errorbar[2][0].get_segments()
    low, high = np.quantile(display.energies, [0.25, 0.75], axis=0)
    assert_allclose([s[0, 1] for s in segments], np.minimum(low, mean))
    assert_allclose([s[1, 1] for s in segments], np.maximum(high, mean))


# Older matplotlib reads the errors of a single bar in a way that numpy deprecates.
@pytest.mark.filterwarnings(
    "ignore:Conversion of an array with ndim:DeprecationWarning"
)
def test_bars_of_skewed_energies_have_no_negative_whisker():
    # The mean of a few large values lies above the upper quartile.
    energies = np.r_[np.zeros((9, 1)), [[10.0]]]
    display = InteractionEnergyDisplay(energies, ["order 1"]).plot()
    ((low, high),) = (s[:, 1] for s in display.bars_.errorbar[2][0].get_segments())
    assert (low, high) == (0.0, 1.0)


def test_bars_are_labelled_and_take_keywords():
    energies = np.ones((2, 2))
    display = InteractionEnergyDisplay(energies, ["low", "high"]).plot(color="red")
    labels = [tick.get_text() for tick in display.ax_.get_xticklabels()]
    assert labels == ["low", "high"]
    assert "nats" in display.ax_.get_ylabel()
    assert {bar.get_facecolor() for bar in display.bars_} == {(1.0, 0.0, 0.0, 1.0)}


# --- energies along geodesics ---------------------------------------------------


@pytest.mark.parametrize("make", ESTIMATORS)
@pytest.mark.parametrize("order", [1, 2])
def test_geodesic_display_holds_the_energies_between_rows(order, make):
    X = tensors()
    estimator = make(offset=0.1).fit(X)
    display = GeodesicEnergyDisplay.from_estimator(
        estimator, X[0], X[1], order=order, n_points=5
    )
    assert_array_equal(display.t, [0, 0.25, 0.5, 0.75, 1])
    p, q = distributions(X[:2], 0.1)
    expected = geodesic_energy(p, q, display.t, TensorPoset(SHAPE), order)
    assert_allclose([display.e_energy, display.m_energy], expected, atol=1e-12)
    # Both start in the first row and end in the second.
    ends = interaction_energy(np.stack([p, q]), TensorPoset(SHAPE), order)
    assert_allclose(display.e_energy[[0, -1]], ends, atol=1e-10)
    assert_allclose(display.m_energy[[0, -1]], ends, atol=1e-10)


@pytest.mark.parametrize("make", ESTIMATORS)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_between_encoded_rows_the_e_geodesic_has_no_energy(seed, order, make):
    # The base is e-flat (Amari 2016, section 2.4).
    X = tensors(seed)
    estimator = make(order, offset=0.1).fit(X)
    display = GeodesicEnergyDisplay.from_estimator(
        estimator, X[0], X[1], order=order, n_points=5, encoded=True
    )
    assert np.abs(display.e_energy).max() < 1e-10
    assert np.abs(display.m_energy[[0, -1]]).max() < 1e-10
    assert display.m_energy[1:-1].min() > 1e-6


def test_lines_are_the_energies():
    display = GeodesicEnergyDisplay(np.array([0.0, 1.0]), np.zeros(2), np.ones(2))
    display.plot(linewidth=3)
    for line, energy in zip(display.lines_, ([0, 0], [1, 1]), strict=True):
        assert_array_equal(line.get_xdata(), [0, 1])
        assert_array_equal(line.get_ydata(), energy)
        assert line.get_linewidth() == 3
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["e-geodesic", "m-geodesic"]
    assert display.ax_.get_xlabel() == "t"
    assert "nats" in display.ax_.get_ylabel()


# --- both -----------------------------------------------------------------------


def both_displays(estimator, X, ax=None):
    return [
        InteractionEnergyDisplay.from_estimator(estimator, X, ax=ax),
        GeodesicEnergyDisplay.from_estimator(estimator, X[0], X[1], n_points=3, ax=ax),
    ]


def test_computing_makes_no_figure_and_plotting_makes_one():
    X = tensors()
    displays = both_displays(ManyBodyProjector(offset=0.1).fit(X), X)
    assert plt.get_fignums() == []
    for n_figures, display in enumerate(displays, start=1):
        assert not hasattr(display, "ax_")
        assert display.plot() is display
        assert display.figure_ is display.ax_.figure
        assert len(plt.get_fignums()) == n_figures


def test_axes_given_are_drawn_on():
    X = tensors()
    figure, ax = plt.subplots()
    for display in both_displays(ManyBodyProjector(offset=0.1).fit(X), X, ax):
        assert display.ax_ is ax
        assert display.figure_ is figure
    assert len(plt.get_fignums()) == 1
    figure.canvas.draw()


@pytest.mark.parametrize("make", ESTIMATORS)
def test_data_frames_come_without_warnings(make):
    # Warnings are errors: names of features must match those of the fit.
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(0).uniform(size=(6, 4))
    frame = pandas.DataFrame(rows, columns=list("abcd"))
    estimator = make(offset=0.1, n_jobs=1).fit(frame)
    display = InteractionEnergyDisplay.from_estimator(estimator, frame)
    assert display.energies.shape == (6, 1)


@pytest.mark.parametrize("make", ESTIMATORS)
def test_rows_of_a_data_frame_come_without_warnings(make):
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(0).uniform(size=(6, 4))
    frame = pandas.DataFrame(rows, columns=list("abcd"))
    estimator = make(offset=0.1, n_jobs=1).fit(frame)
    display = GeodesicEnergyDisplay.from_estimator(
        estimator, frame.iloc[0], frame.iloc[1], n_points=3
    )
    assert display.m_energy.shape == (3,)


@pytest.mark.parametrize("make", ESTIMATORS)
def test_estimators_that_are_not_fitted_are_refused(make):
    X = tensors()
    with pytest.raises(NotFittedError):
        InteractionEnergyDisplay.from_estimator(make(), X)
    with pytest.raises(NotFittedError):
        GeodesicEnergyDisplay.from_estimator(make(), X[0], X[1])


@pytest.mark.parametrize("make", ESTIMATORS)
def test_rows_of_another_shape_are_refused(make):
    X = tensors()
    estimator = make().fit(X)
    message = r"fitted on rows of shape \(2, 3, 2\)"
    with pytest.raises(ValueError, match=message):
        InteractionEnergyDisplay.from_estimator(estimator, X[:, :, :2])
    with pytest.raises(ValueError, match=message):
        GeodesicEnergyDisplay.from_estimator(estimator, X[0, :, :2], X[1, :, :2])


def test_negative_rows_are_refused():
    X = tensors()
    estimator = ManyBodyProjector().fit(X)
    with pytest.raises(ValueError, match="Negative values"):
        InteractionEnergyDisplay.from_estimator(estimator, -X)


@pytest.mark.parametrize("names", [["a", "b"], list("abcd"), []], ids=len)
def test_names_of_another_number_than_the_levels_are_refused(names):
    X = tensors()
    estimator = ManyBodyProjector(offset=0.1).fit(X)
    with pytest.raises(ValueError, match=f"name 3 levels.*got {len(names)} names"):
        InteractionEnergyDisplay.from_estimator(estimator, X, level_names=names)


def test_without_matplotlib_plotting_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"EnergyDisplay\.plot needs matplotlib: pip"):
        InteractionEnergyDisplay(np.ones((2, 1)), ["order 1"]).plot()
    with pytest.raises(ImportError, match=r"EnergyDisplay\.plot needs matplotlib: pip"):
        GeodesicEnergyDisplay(np.ones(1), np.ones(1), np.ones(1)).plot()


# --- new rows against training rows ---------------------------------------------


def rows_and_new(seed=0, n_features=4):
    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(2, 30, n_features))
    X_new[:, 2] += 3
    return X, X_new


@pytest.mark.parametrize("seed", SEEDS)
def test_comparison_display_holds_the_comparison(seed):
    X, X_new = rows_and_new(seed)
    settings = {"X_test": X + 1, "cv": 2, "random_state": seed}
    display = SampleComparisonDisplay.from_samples(X, X_new, **settings)
    assert str(display.comparison) == str(compare_samples(X, X_new, **settings))
    assert plt.get_fignums() == []
    assert not hasattr(display, "axes_")


@pytest.mark.parametrize("seed", SEEDS)
def test_panels_draw_the_numbers(seed):
    found = compare_samples(*rows_and_new(seed), cv=2, random_state=seed)
    display = SampleComparisonDisplay(found).plot()
    assert len(plt.get_fignums()) == 1
    assert all(ax.figure is display.figure_ for ax in display.axes_)
    new, usual, bound = display.lines_
    for line, distances in ((new, found.distance), (usual, found.usual_distance)):
        assert_array_equal(np.unique(line.get_xdata()), np.unique(distances))
    assert_array_equal(bound.get_xdata(), found.copy_distance)
    # The feature that was shifted comes first, at the top.
    order = np.argsort(-found.ks_statistic)
    labels = [tick.get_text() for tick in display.axes_[1].get_yticklabels()]
    assert labels == [found.feature_names[i] for i in order]
    assert labels[0] == "x2"
    assert display.axes_[1].yaxis_inverted()
    numbers = (found.ks_statistic, found.outside_range, found.std_ratio)
    for points, values in zip(display.points_, numbers, strict=True):
        assert_array_equal(points.get_xdata(), values[order])
    image = display.image_
    assert_array_equal(image.get_array(), found.correlation_difference)
    limit = found.max_correlation_difference
    assert image.get_clim() == (-limit, limit)
    display.figure_.canvas.draw()


def legend_of(display):
    return [text.get_text() for text in display.axes_[0].get_legend().get_texts()]


def test_the_legend_says_whose_the_usual_distance_is():
    X, X_new = rows_and_new()
    display = SampleComparisonDisplay.from_samples(X, X_new, cv=2).plot()
    assert legend_of(display) == ["new rows", "other training rows", "near-copies"]
    display = SampleComparisonDisplay.from_samples(X, X_new, X_test=X + 1, cv=2).plot()
    assert legend_of(display) == ["new rows", "test rows", "near-copies"]


def test_three_axes_given_are_drawn_on():
    figure, axes = plt.subplots(3, 1)
    X, X_new = rows_and_new()
    display = SampleComparisonDisplay.from_samples(X, X_new, ax=axes, cv=2)
    assert list(display.axes_) == list(axes)
    assert display.figure_ is figure
    assert len(plt.get_fignums()) == 1


def test_of_many_features_those_that_differ_most_are_shown():
    found = compare_samples(*rows_and_new(n_features=40), cv=2, random_state=0)
    display = SampleComparisonDisplay(found).plot(max_features=6)
    shown = display.points_[0].get_xdata()
    assert_array_equal(shown, np.sort(found.ks_statistic)[::-1][:6])
    assert display.axes_[1].get_title() == "6 of 40 features"
    assert SampleComparisonDisplay(found).plot().points_[0].get_xdata().size == 15


def test_a_single_feature_has_panels_too():
    X, X_new = np.random.default_rng(0).normal(size=(2, 20, 1))
    display = SampleComparisonDisplay.from_samples(X, X_new, cv=2).plot()
    assert display.image_.get_clim() == (-1, 1)
    display.figure_.canvas.draw()


def test_wrong_axes_and_numbers_of_features_are_refused():
    display = SampleComparisonDisplay.from_samples(*rows_and_new(), cv=2)
    with pytest.raises(ValueError, match="ax must be 3 axes; got 2"):
        display.plot(plt.subplots(2)[1])
    with pytest.raises(ValueError, match="max_features must be >= 1; got 0"):
        display.plot(max_features=0)


def test_without_matplotlib_the_comparison_is_still_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = SampleComparisonDisplay.from_samples(*rows_and_new(), cv=2)
    assert display.comparison.n_new == 30
    with pytest.raises(ImportError, match=r"ComparisonDisplay\.plot needs matplotlib"):
        display.plot()
