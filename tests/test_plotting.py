"""Displays: the numbers that they hold, and what they draw."""

import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

from sklearn_pnl import (
    BackwardProjector,
    GeodesicEnergyDisplay,
    ImageRowsDisplay,
    InteractionEnergyDisplay,
    ManyBodyProjector,
    PNLAugmenter,
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
NEAR_COPIES = "near-copies: left of this"


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
    assert "position" in display.ax_.get_xlabel()
    assert "nats" in display.ax_.get_ylabel()


# --- both -----------------------------------------------------------------------


def both_displays(estimator, X, ax=None):
    return [
        InteractionEnergyDisplay.from_estimator(estimator, X, ax=ax),
        GeodesicEnergyDisplay.from_estimator(estimator, X[0], X[1], n_points=3, ax=ax),
    ]


def test_building_from_an_estimator_draws_one_figure_each():
    X = tensors()
    displays = both_displays(ManyBodyProjector(offset=0.1).fit(X), X)
    assert len(plt.get_fignums()) == 2
    for display in displays:
        assert display.figure_ is display.ax_.figure
        assert display.ax_.get_title().startswith("ManyBodyProjector: energy")
        assert display.ax_.get_xlabel() and display.ax_.get_ylabel()
        assert display.plot() is display
    assert len(plt.get_fignums()) == 4


def test_keywords_reach_the_bars_and_lines():
    X = tensors()
    projector = ManyBodyProjector(offset=0.1).fit(X)
    display = InteractionEnergyDisplay.from_estimator(projector, X, color="red")
    assert {bar.get_facecolor() for bar in display.bars_} == {(1.0, 0.0, 0.0, 1.0)}
    display = GeodesicEnergyDisplay.from_estimator(projector, *X[:2], linewidth=4)
    assert [line.get_linewidth() for line in display.lines_] == [4, 4]


# Rows as they are, on the tensor of their own shape.
PLAIN = {"embedding": None, "reshaper": None, "offset": 0.1}


class Sampler(BaseEstimator):
    """An augmenter for each class, as over-samplers have."""

    def fit(self, X, y):
        self.augmenters_ = {
            label: PNLAugmenter(k_neighbors=2, **PLAIN).fit(X[y == label])
            for label in np.unique(y)
        }
        return self


@pytest.mark.parametrize("order", [1, 2])
def test_augmenters_and_samplers_have_the_energies_of_their_projector(order):
    X, y = tensors(), np.repeat([0, 1], 4)
    of_all = PNLAugmenter(order=order, **PLAIN).fit(X)
    of_classes = Sampler().fit(X, y)
    expected = energy_decomposition(distributions(X, 0.1), TensorPoset(SHAPE))
    for estimator, label in ((of_all, None), (of_classes, 0), (of_classes, 1)):
        display = InteractionEnergyDisplay.from_estimator(estimator, X, label=label)
        assert_allclose(display.energies, expected, atol=1e-12)
    assert display.ax_.get_title().startswith("Sampler, class 1: energy")
    display = GeodesicEnergyDisplay.from_estimator(
        of_all, X[0], X[1], order=order, n_points=3, encoded=True
    )
    assert np.abs(display.e_energy).max() < 1e-10


def test_rows_go_through_the_embedding_and_the_reshaper():
    X = tensors()
    flat = 10 * X.reshape(len(X), -1)
    augmenter = PNLAugmenter(
        order=1,
        embedding=FunctionTransformer(lambda X: X / 10, lambda X: X * 10),
        reshaper=FunctionTransformer(
            lambda X: X.reshape(-1, *SHAPE), lambda X: X.reshape(len(X), -1)
        ),
        offset=0.1,
    ).fit(flat)
    display = InteractionEnergyDisplay.from_estimator(augmenter, flat)
    expected = energy_decomposition(distributions(X, 0.1), TensorPoset(SHAPE))
    assert_allclose(display.energies, expected, atol=1e-12)
    display = GeodesicEnergyDisplay.from_estimator(augmenter, *flat[:2], n_points=2)
    ends = interaction_energy(distributions(X[:2], 0.1), TensorPoset(SHAPE), 1)
    assert_allclose(display.m_energy, ends, atol=1e-10)


def test_a_sampler_of_several_classes_asks_which():
    X, y = tensors(), np.repeat(["a", "b"], 4)
    sampler = Sampler().fit(X, y)
    with pytest.raises(ValueError, match=r"classes \[.*a.*b.*\]; choose one by label"):
        InteractionEnergyDisplay.from_estimator(sampler, X)
    with pytest.raises(ValueError, match="got 'c'"):
        SampleComparisonDisplay.from_estimator(sampler, X, label="c")
    del sampler.augmenters_["b"]
    InteractionEnergyDisplay.from_estimator(sampler, X)
    with pytest.raises(ValueError, match="label is for samplers"):
        InteractionEnergyDisplay.from_estimator(PNLAugmenter().fit(X), X, label="a")


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
    X = tensors()
    projector = ManyBodyProjector().fit(X)
    displays = (
        InteractionEnergyDisplay(np.ones((2, 1)), ["order 1"]),
        GeodesicEnergyDisplay(np.ones(1), np.ones(1), np.ones(1)),
        SampleComparisonDisplay(compare_samples(*rows_and_new(), cv=2)),
        ImageRowsDisplay({"rows": np.ones((1, 2, 2))}),
    )
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for display in displays:
        name = type(display).__name__
        with pytest.raises(ImportError, match=rf"{name}\.plot needs matplotlib: pip"):
            display.plot()
    # Before anything is computed.
    for cls in (InteractionEnergyDisplay, SampleComparisonDisplay, ImageRowsDisplay):
        with pytest.raises(ImportError, match=r"from_estimator needs matplotlib: pip"):
            cls.from_estimator(projector, X)
    with pytest.raises(ImportError, match=r"from_estimator needs matplotlib: pip"):
        GeodesicEnergyDisplay.from_estimator(projector, X[0], X[1])
    with pytest.raises(ImportError, match=r"from_samples needs matplotlib: pip"):
        SampleComparisonDisplay.from_samples(X, X)


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


@pytest.mark.parametrize("make", [PNLAugmenter, Sampler])
def test_rows_drawn_from_an_estimator_are_compared(make):
    X = np.random.default_rng(0).uniform(size=(24, 3))
    y = np.zeros(24, int)
    estimator = make().fit(X) if make is PNLAugmenter else make().fit(X, y)
    display, again = (
        SampleComparisonDisplay.from_estimator(
            estimator, X, n_samples=15, random_state=3, cv=2
        )
        for _ in range(2)
    )
    assert display.comparison.n_new == 15
    assert str(display.comparison) == str(again.comparison)
    augmenter = getattr(estimator, "augmenters_", {0: estimator})[0]
    rng = np.random.RandomState(3)
    drawn = augmenter.sample(15, random_state=rng)
    expected = compare_samples(X, drawn, random_state=rng, cv=2)
    assert str(display.comparison) == str(expected)
    assert display.figure_.get_suptitle().startswith(make.__name__)
    display = SampleComparisonDisplay.from_estimator(estimator, X, cv=2)
    assert display.comparison.n_new == 24


def test_estimators_that_draw_no_rows_are_refused():
    X = tensors()
    with pytest.raises(TypeError, match="ManyBodyProjector has no method sample"):
        SampleComparisonDisplay.from_estimator(ManyBodyProjector().fit(X), X)
    with pytest.raises(NotFittedError):
        SampleComparisonDisplay.from_estimator(PNLAugmenter(), X)


def test_the_sampler_and_the_verdicts_are_in_the_titles():
    X, X_new = rows_and_new()
    display = SampleComparisonDisplay.from_samples(
        X, np.vstack([X_new[:20], X[:20]]), estimator_name="Mine", random_state=0
    )
    found = display.comparison
    assert display.figure_.get_suptitle() == f"Mine: {found.verdict}"
    titles = [ax.get_title() for ax in display.axes_]
    assert titles[0] == "distances: copies"
    assert titles[1] == f"features: {found.findings[3].verdict}"
    assert titles[2] == f"correlations: {found.findings[4].verdict}"
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
    assert limit > 0.1
    assert image.get_clim() == (-limit, limit)
    display.figure_.canvas.draw()


def legend_of(display):
    return [text.get_text() for text in display.axes_[0].get_legend().get_texts()]


def test_the_legend_says_whose_the_usual_distance_is():
    X, X_new = rows_and_new()
    display = SampleComparisonDisplay.from_samples(X, X_new, cv=2)
    assert legend_of(display) == ["new rows", "other training rows", NEAR_COPIES]
    display = SampleComparisonDisplay.from_samples(X, X_new, X_test=X + 1, cv=2)
    assert legend_of(display) == ["new rows", "test rows", NEAR_COPIES]


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
    with pytest.raises(ValueError, match="max_features must be >= 1; got 0"):
        display.plot(max_features=0)


# --- images in rows -------------------------------------------------------------


def images_and_labels(seed=0, n_rows=24, shape=(4, 6)):
    """Images with empty cells, of two classes."""
    rng = np.random.default_rng(seed)
    images = rng.gamma(1.0, size=(n_rows, *shape)) * (
        rng.random((n_rows, *shape)) > 0.1
    )
    return images, np.repeat(["a", "b"], n_rows // 2)


def image_augmenter(**settings):
    return PNLAugmenter(**{"embedding": None, "k_neighbors": 3} | settings)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_images_stand_below_their_relatives(seed, augment):
    X, _ = images_and_labels(seed)
    augmenter = image_augmenter(draws=augment).fit(X)
    display = ImageRowsDisplay.from_estimator(
        augmenter, X, n_images=4, random_state=seed
    )
    new, parents = augmenter.sample(4, np.random.RandomState(seed), return_parents=True)
    assert_array_equal(display.images["new rows"], new)
    assert_array_equal(display.images["training rows"], X[parents[:, 0]])
    gaps = ((new[:, None] - X) ** 2).sum(axis=(2, 3))
    closest = X[gaps.argmin(axis=1)]
    assert_array_equal(display.images["closest training rows"], closest)


@pytest.mark.parametrize("embedding", [None, "minmax"])
@pytest.mark.parametrize("order", [1, 2])
def test_projections_are_in_the_units_of_the_images(order, embedding):
    # Sums over all but `order` modes are kept, after the embedding.
    X, _ = images_and_labels()
    augmenter = image_augmenter(order=order, embedding=embedding, offset=0.1).fit(X)
    display = ImageRowsDisplay.from_estimator(augmenter, X, random_state=0)

    def tensors_of(name):
        rows = display.images[name].reshape(10, -1)
        if embedding is not None:
            rows = augmenter.embedding_.transform(rows)
        return augmenter.reshaper_.transform(rows.reshape(-1, 4, 6))

    shown, projected = tensors_of("training rows"), tensors_of("projections")
    n_modes = len(augmenter.poset_.shape)
    for others in combinations(range(1, 1 + n_modes), n_modes - order):
        assert_allclose(projected.sum(axis=others), shown.sum(axis=others), atol=1e-4)
    assert np.abs(projected - shown).max() > 0.1


def test_codes_of_everything_keep_the_images():
    X, _ = images_and_labels()
    augmenter = image_augmenter(order=None, reshaper=None).fit(X)
    images = ImageRowsDisplay.from_estimator(augmenter, X, random_state=0).images
    assert_allclose(images["projections"], images["training rows"], atol=1e-10)


def test_images_on_a_poset_with_an_added_bottom():
    X, _ = images_and_labels(shape=(2, 2))
    flat = X.reshape(-1, 4)
    poset = tree_poset([-1, 0, -1, 2], add_bottom=True)
    augmenter = image_augmenter(poset=poset, offset=0.1).fit(flat)
    display = ImageRowsDisplay.from_estimator(
        augmenter, flat, image_shape=(2, 2), n_images=3
    )
    assert display.images["projections"].shape == (3, 2, 2)


def test_the_classes_of_a_sampler_take_turns():
    X, y = images_and_labels()
    sampler = Sampler().fit(X, y)
    display = ImageRowsDisplay.from_estimator(sampler, X, y, n_images=5, random_state=0)
    rng = np.random.RandomState(0)
    drawn = [sampler.augmenters_[c].sample(n, rng) for c, n in (("a", 3), ("b", 2))]
    assert_array_equal(display.images["new rows"], np.concatenate(drawn))
    of_class = [X[y == c] for c in "aaabb"]
    for name in ("training rows", "closest training rows"):
        for image, rows in zip(display.images[name], of_class, strict=True):
            assert (rows == image).all(axis=(1, 2)).any()
    assert display.figure_.get_suptitle() == "Sampler"
    few = ImageRowsDisplay.from_estimator(sampler, X, y, n_images=1)
    assert few.images["new rows"].shape == (1, 4, 6)


def test_images_need_the_classes_of_a_sampler_and_no_others():
    X, y = images_and_labels()
    with pytest.raises(ValueError, match="give y, the classes of the rows"):
        ImageRowsDisplay.from_estimator(Sampler().fit(X, y), X)
    with pytest.raises(ValueError, match="y is for samplers; PNLAugmenter has no"):
        ImageRowsDisplay.from_estimator(image_augmenter().fit(X), X, y)
    with pytest.raises(TypeError, match="ManyBodyProjector draws no rows"):
        ImageRowsDisplay.from_estimator(ManyBodyProjector().fit(X), X)
    with pytest.raises(NotFittedError):
        ImageRowsDisplay.from_estimator(PNLAugmenter(), X)


def test_rows_without_the_shape_of_an_image_are_refused():
    X, _ = images_and_labels()
    flat = X.reshape(len(X), -1)
    augmenter = image_augmenter().fit(flat)
    with pytest.raises(ValueError, match=r"shape \(24,\).*need image_shape"):
        ImageRowsDisplay.from_estimator(augmenter, flat)
    display = ImageRowsDisplay.from_estimator(augmenter, flat, image_shape=(4, 6))
    assert display.images["projections"].shape == (10, 4, 6)
    with pytest.raises(ValueError, match=r"'x' have shape \(4, 6, 2\)"):
        ImageRowsDisplay({"x": np.ones((1, 4, 6, 2))}).plot()


def test_images_have_one_scale_and_names():
    first, second = np.arange(12.0).reshape(2, 2, 3), np.full((1, 2, 3), 99.0)
    display = ImageRowsDisplay(
        {"ours": first, "theirs": second}, column_names=["left", "right"]
    ).plot(title="Images")
    assert display.axes_.shape == (2, 2)
    assert [image.get_clim() for image in display.images_] == [(0, 11)] * 3
    assert [axis.get_ylabel() for axis in display.axes_[:, 0]] == ["ours", "theirs"]
    assert [axis.get_title() for axis in display.axes_[0]] == ["left", "right"]
    assert display.figure_.get_suptitle() == "Images"
    assert not display.axes_[1, 1].get_images()
    display.plot(vmin=-1, vmax=2)
    assert display.images_[0].get_clim() == (-1, 2)
    display.figure_.canvas.draw()


def test_images_in_colour_are_clipped_to_the_scale():
    X = np.array([0.0, 50, 100, 200]).reshape(1, 4, 1, 1) * np.ones(3)
    display = ImageRowsDisplay({"rows": X}).plot(vmax=100)
    shown = np.asarray(display.images_[0].get_array())[:, 0, 0]
    assert_allclose(shown, [0, 0.5, 1, 1])
    flat = ImageRowsDisplay({"rows": np.full_like(X, 7)}).plot()
    assert_allclose(flat.images_[0].get_array(), 0)


def test_images_are_drawn_on_axes_given():
    figure, axes = plt.subplots(4, 3)
    X, _ = images_and_labels()
    display = ImageRowsDisplay.from_estimator(
        image_augmenter().fit(X), X, n_images=3, axes=axes
    )
    assert display.figure_ is figure
    assert len(plt.get_fignums()) == 1
    assert list(display.axes_.ravel()) == list(axes.ravel())
