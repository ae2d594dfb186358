"""Displays: the numbers that they hold, and what they draw."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sklearn_pnl import (
    ImageRowsDisplay,
    ManyBodyProjector,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
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


def test_without_matplotlib_plotting_says_what_to_install(monkeypatch):
    X, _ = images_and_labels()
    displays = (
        SampleComparisonDisplay(compare_samples(*rows_and_new(), cv=2)),
        ImageRowsDisplay({"rows": np.ones((1, 2, 2))}),
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for display in displays:
        name = type(display).__name__
        with pytest.raises(ImportError, match=rf"{name}\.plot requires matplotlib"):
            display.plot()
    # Before anything is computed.
    with pytest.raises(ImportError, match=r"from_estimator requires matplotlib"):
        ImageRowsDisplay.from_estimator(None, X)
    with pytest.raises(ImportError, match=r"from_samples requires matplotlib"):
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


def test_the_classes_of_a_sampler_share_the_columns():
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


@pytest.mark.filterwarnings("ignore:.*asks for no new row")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sampler_of_which_fit_was_called_alone_resamples_a_clone(seed):
    X, y = images_and_labels(seed)
    y[:8] = "b"
    sampler = PNLSampler(**PLAIN, k_neighbors=2, random_state=seed).fit(X, y)
    before = set(vars(sampler))
    display = ImageRowsDisplay.from_estimator(sampler, X, y, n_images=3, random_state=7)
    assert set(vars(sampler)) == before
    sampler.fit_resample(X, y)
    expected = ImageRowsDisplay.from_estimator(
        sampler, X, y, n_images=3, random_state=7
    )
    assert list(display.images) == [
        "training rows",
        "new rows",
        "closest training rows",
    ]
    for name, images in expected.images.items():
        assert_array_equal(display.images[name], images)
    with pytest.raises(ValueError, match="call fit_resample first, or give y"):
        ImageRowsDisplay.from_estimator(PNLSampler().fit(X, y), X)
    with pytest.raises(ValueError, match="PNLSampler drew no rows: no class lacks any"):
        ImageRowsDisplay.from_estimator(PNLSampler().fit(X, y), X, np.arange(24) % 2)


@pytest.mark.parametrize("fitted", [False, True])
def test_samplers_of_regression_have_one_augmenter(fitted):
    X, _ = images_and_labels()
    y = X.sum(axis=(1, 2))
    sampler = PNLRegressionSampler(**PLAIN, k_neighbors=2, random_state=0).fit(X, y)
    if fitted:
        sampler.fit_resample(X, y)
    display = ImageRowsDisplay.from_estimator(sampler, X, y, n_images=5)
    assert display.images["new rows"].shape == (5, 4, 6)
    for image in display.images["training rows"]:
        assert (X == image).all(axis=(1, 2)).any()


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
    assert display.images["new rows"].shape == (10, 4, 6)
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
    figure, axes = plt.subplots(3, 3)
    X, _ = images_and_labels()
    display = ImageRowsDisplay.from_estimator(
        image_augmenter().fit(X), X, n_images=3, axes=axes
    )
    assert display.figure_ is figure
    assert len(plt.get_fignums()) == 1
    assert list(display.axes_.ravel()) == list(axes.ravel())


def test_images_of_one_channel_are_those_without():
    X = np.random.default_rng(0).uniform(size=(24, 4, 6))
    plain, channel = (
        ImageRowsDisplay.from_estimator(
            PNLAugmenter(embedding=None).fit(rows), rows, n_images=3, random_state=0
        )
        for rows in (X, X[..., None])
    )
    for one, other in zip(plain.images_, channel.images_, strict=True):
        assert_array_equal(one.get_array(), other.get_array())


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"n_images": 0}, "n_images must be an integer >= 1"),
        ({"image_shape": (5, 5)}, r"image_shape=\(5, 5\) has 25 cells, .* have 24"),
        ({"axes": [None, None]}, r"axes must be of shape \(3, 10\), .*; got 2"),
    ],
)
def test_what_images_cannot_have_is_told(keywords, message):
    X = np.random.default_rng(0).uniform(size=(24, 4, 6))
    augmenter = PNLAugmenter(embedding=None).fit(X)
    with pytest.raises(ValueError, match=message):
        ImageRowsDisplay.from_estimator(augmenter, X, **keywords)


def test_new_rows_of_rows_that_are_not_given_are_told():
    X = np.random.default_rng(0).random((30, 4, 4))
    augmenter = PNLAugmenter().fit(X)
    with pytest.raises(ValueError, match="X has 1 rows, .* was fitted on"):
        ImageRowsDisplay.from_estimator(augmenter, X[:1])
