"""The display of a comparison shows the values of the comparison."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklearn_pnl import compare_samples
from sklearn_pnl.compare import SampleComparisonDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    plt.close("all")
    yield
    plt.close("all")


X, X_NEW = np.random.default_rng(0).normal(size=(2, 30, 4))
X_NEW[:, 2] += 3


def test_panels_show_the_values_of_the_comparison():
    comparison = compare_samples(X, X_NEW, cv=2, random_state=0)
    display = SampleComparisonDisplay(comparison).plot()
    assert len(plt.get_fignums()) == 1
    assert all(ax.figure is display.figure_ for ax in display.axes_)
    new, baseline, bound = display.lines_
    for line, distances in (
        (new, comparison.distance),
        (baseline, comparison.baseline_distance),
    ):
        assert_array_equal(np.unique(line.get_xdata()), np.unique(distances))
    quarter = np.median(comparison.baseline_distance) / 4
    assert_array_equal(bound.get_xdata(), quarter)
    # The feature that was shifted comes first, at the top.
    features = comparison.features
    order = np.argsort(-features.ks_statistic)
    labels = [tick.get_text() for tick in display.axes_[1].get_yticklabels()]
    assert labels == [features.names[i] for i in order]
    assert labels[0] == "x2"
    assert display.axes_[1].yaxis_inverted()
    series = features.ks_statistic, features.outside_range, features.std_ratio
    for points, values in zip(display.points_, series, strict=True):
        assert_array_equal(points.get_xdata(), values[order])
    image = display.image_
    assert_array_equal(image.get_array(), comparison.correlation_difference)
    limit = np.abs(comparison.correlation_difference).max()
    assert image.get_clim() == (-limit, limit)
    display.figure_.canvas.draw()


def test_titles_and_legend_describe_the_panels():
    display = SampleComparisonDisplay.from_samples(
        X, np.vstack([X_NEW[:20], X[:20]]), random_state=0
    )
    comparison = display.comparison
    assert display.figure_.get_suptitle() == comparison.verdict
    titles = [ax.get_title() for ax in display.axes_]
    assert titles[0] == "distances: copies"
    assert titles[1].startswith("features: ") and "shifted" in titles[1]
    assert titles[2] == f"correlations: {comparison['correlations'].status}"
    plain = SampleComparisonDisplay.from_samples(X, X_NEW, X_test=X + 1, cv=2)
    for drawn, kind in ((display, "other training rows"), (plain, "test rows")):
        legend = [text.get_text() for text in drawn.axes_[0].get_legend().get_texts()]
        assert legend == ["new rows", kind, "bound of close rows"]
    figure, axes = plt.subplots(3, 1)
    display.plot(ax=axes)
    assert [*display.axes_] == [*axes] and display.figure_ is figure
    with pytest.raises(ValueError):
        display.plot(plt.subplots(2)[1])
    with pytest.raises(ValueError):
        display.plot(max_features=0)
