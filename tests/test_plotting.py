"""Displays: the numbers that they hold, and what they draw."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklearn_pnl import (
    SampleComparisonDisplay,
    compare_samples,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

SEEDS = [0, 1]
CLOSE = "close rows: left of this"


@pytest.fixture(autouse=True)
def no_figure_stays():
    plt.close("all")
    yield
    plt.close("all")


def test_without_matplotlib_plotting_says_what_to_install(monkeypatch):
    display = SampleComparisonDisplay(compare_samples(*rows_and_new(), cv=2))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"Display\.plot requires matplotlib"):
        display.plot()
    # Before anything is computed.
    with pytest.raises(ImportError, match=r"from_samples requires matplotlib"):
        SampleComparisonDisplay.from_samples(None, None)


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
    assert len(plt.get_fignums()) == 1


def test_the_sampler_and_the_verdicts_are_in_the_titles():
    X, X_new = rows_and_new()
    display = SampleComparisonDisplay.from_samples(
        X, np.vstack([X_new[:20], X[:20]]), estimator_name="Mine", random_state=0
    )
    found = display.comparison
    assert display.figure_.get_suptitle() == f"Mine: {found.verdict}"
    titles = [ax.get_title() for ax in display.axes_]
    assert titles[0] == "distances: copies"
    assert titles[1].startswith("features: ") and "shifted" in titles[1]
    assert titles[2] == f"correlations: {found['correlations'].verdict}"
    assert "copies" in found.verdict and "shifted" in found.verdict
    plain = SampleComparisonDisplay(found).plot()
    assert plain.figure_.get_suptitle() == found.verdict


@pytest.mark.parametrize("change", [0.0, 5e-17, 0.02])
def test_small_changes_of_correlations_are_pale(change):
    found = compare_samples(*rows_and_new(), cv=2, random_state=0)
    found = replace(found, correlation_difference=np.full((4, 4), change))
    image = SampleComparisonDisplay(found).plot().image_
    assert image.get_clim() == (-0.1, 0.1)
    red, green, blue, _ = image.to_rgba(change)
    assert min(red, green, blue) > 0.75


def test_correlations_are_named_and_gray_where_there_are_none():
    X, X_new = rows_and_new(n_features=50)
    X[:, 3] = 1
    found = compare_samples(X, X_new, cv=2, random_state=0)
    axis = SampleComparisonDisplay(found).plot().axes_[2]
    for ticks, names in (
        (axis.get_xticks(), axis.get_xticklabels()),
        (axis.get_yticks(), axis.get_yticklabels()),
    ):
        assert 10 <= len(ticks) <= 20
        assert [n.get_text() for n in names] == [f"x{int(t)}" for t in ticks]
    assert "gray: constant" in axis.get_xlabel()
    axis = SampleComparisonDisplay.from_samples(X[:, 4:], X_new[:, 4:]).axes_[2]
    assert axis.get_xlabel() == "feature"


@pytest.mark.parametrize("seed", SEEDS)
def test_panels_draw_the_numbers(seed):
    found = compare_samples(*rows_and_new(seed), cv=2, random_state=seed)
    display = SampleComparisonDisplay(found).plot()
    assert len(plt.get_fignums()) == 1
    assert all(ax.figure is display.figure_ for ax in display.axes_)
    new, usual, bound = display.lines_
    for line, distances in ((new, found.distance), (usual, found.usual_distance)):
        assert_array_equal(np.unique(line.get_xdata()), np.unique(distances))
    assert_array_equal(bound.get_xdata(), np.median(found.usual_distance) / 4)
    # The feature that was shifted comes first, at the top.
    order = np.argsort(-found.features.ks_statistic)
    labels = [tick.get_text() for tick in display.axes_[1].get_yticklabels()]
    assert labels == [found.features.names[i] for i in order]
    assert labels[0] == "x2"
    assert display.axes_[1].yaxis_inverted()
    numbers = [
        getattr(found.features, n)
        for n in ("ks_statistic", "outside_range", "std_ratio")
    ]
    for points, values in zip(display.points_, numbers, strict=True):
        assert_array_equal(points.get_xdata(), values[order])
    image = display.image_
    assert_array_equal(image.get_array(), found.correlation_difference)
    limit = np.abs(found.correlation_difference).max()
    assert limit > 0.1
    assert image.get_clim() == (-limit, limit)
    display.figure_.canvas.draw()


def legend_of(display):
    return [text.get_text() for text in display.axes_[0].get_legend().get_texts()]


def test_the_legend_says_whose_the_usual_distance_is():
    X, X_new = rows_and_new()
    display = SampleComparisonDisplay.from_samples(X, X_new, cv=2)
    assert legend_of(display) == ["new rows", "other training rows", CLOSE]
    display = SampleComparisonDisplay.from_samples(X, X_new, X_test=X + 1, cv=2)
    assert legend_of(display) == ["new rows", "test rows", CLOSE]


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
    assert_array_equal(shown, np.sort(found.features.ks_statistic)[::-1][:6])
    assert display.axes_[1].get_title().endswith("\n6 of 40 features")
    assert SampleComparisonDisplay(found).plot().points_[0].get_xdata().size == 15


def test_a_single_feature_has_panels_too():
    X, X_new = np.random.default_rng(0).normal(size=(2, 20, 1))
    display = SampleComparisonDisplay.from_samples(X, X_new, cv=2)
    assert display.image_.get_clim() == (-0.1, 0.1)
    display.figure_.canvas.draw()


def test_wrong_axes_and_numbers_of_features_are_refused():
    display = SampleComparisonDisplay.from_samples(*rows_and_new(), cv=2)
    with pytest.raises(ValueError, match="ax must be 3 axes; got 2"):
        display.plot(plt.subplots(2)[1])
    for wrong in (0, 2.5, None):
        asked = f"max_features must be an integer >= 1; got {wrong}"
        with pytest.raises(ValueError, match=asked):
            display.plot(max_features=wrong)
