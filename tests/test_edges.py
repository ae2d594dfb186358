"""The edges of what is allowed: tiny classes, copies, one feature, odd embeddings."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklearn_pnl import (
    BackwardProjector,
    ManyBodyProjector,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl.geometry import TensorPoset

SEEDS = [0, 1, 2]


def table(seed=0, n=30, d=6):
    return np.random.default_rng(seed).normal(size=(n, d))


# --- embeddings, layouts ----------------------------------------------------------


class Odd(TransformerMixin, BaseEstimator):
    """An embedding with one value that is no number."""

    def __init__(self, value=np.nan):
        self.value = value

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        X = np.abs(X)
        X[3, 2] = self.value
        return X

    def inverse_transform(self, X):
        return X


@pytest.mark.parametrize("value, word", [(np.nan, "NaN"), (np.inf, "infinity")])
def test_an_embedding_that_is_not_finite_is_told_where(value, word):
    with pytest.raises(ValueError, match=f"embedding gives {word}.* row 3, column 2"):
        PNLAugmenter(embedding=Odd(value)).fit(table())


@pytest.mark.parametrize(
    "make",
    [
        lambda: ManyBodyProjector(order=2),
        lambda: BackwardProjector(order=2),
        lambda: PNLAugmenter(order=2, reshaper=None),
    ],
)
def test_interactions_of_one_mode_name_the_reshaper(make):
    with pytest.raises(
        ValueError, match="outside 1 to 1: rows of one mode.*PrimeFactorR"
    ):
        make().fit(np.abs(table()))


def test_a_flat_table_is_reshaped_for_interactions():
    augmenter = PNLAugmenter(order=2).fit(table())
    assert augmenter.poset_.shape == (3, 2)
    assert augmenter.sample(3, random_state=0).shape == (3, 6)


def test_a_poset_beside_a_reshaper_is_told_which_is_which():
    poset = TensorPoset((6,))
    message = (
        "stands for 6 features, but PrimeFactorReshaper.* of shape \\(3, 2\\).*one of"
    )
    with pytest.raises(ValueError, match=message):
        PNLAugmenter(poset=poset, reshaper=PrimeFactorReshaper()).fit(table())


def test_digits_without_embedding_stay_in_their_range():
    images = load_digits().images[:300] / 16
    low, high = images.min(axis=0), images.max(axis=0)
    for margin in (0, 0.1):
        augmenter = PNLAugmenter(embedding=None, range_slack=margin).fit(images)
        rows = augmenter.sample(500, random_state=0)
        beyond = margin * (high - low)
        assert (rows >= np.maximum(low - beyond, 0)).all()
        assert (rows <= high + beyond).all()
        # An end that several share is a bound.
        shared = (images == high).sum(axis=0) > 1
        assert shared.any()
        assert (rows <= high)[:, shared].all()


# --- few rows ---------------------------------------------------------------------


@pytest.mark.parametrize("label", [1, "rare", "a: b"])
@pytest.mark.parametrize(
    "n_rows, message",
    [
        (1, "has 1 row: all new rows are copies of it"),
        (2, "has 2 rows, 1 near each: using 1"),
        (4, "has 4 rows, 3 near each: using 3"),
    ],
)
def test_small_classes_are_named_and_counted(n_rows, message, label):
    X, y = table(), np.full(30, 0 if label == 1 else "often", dtype=object)
    y[-n_rows:] = label
    y = y.astype(int) if label == 1 else y.astype(str)
    sampler = PNLSampler(k_neighbors=5, random_state=0)
    whole = re.escape(f"class {label!r} {message}")
    with pytest.warns(UserWarning, match=whole) as caught:
        X_new, _ = sampler.fit_resample(X, y)
    assert len(caught) == 1
    if n_rows == 1:
        assert_allclose(X_new[30:], np.repeat(X[-1:], 28, axis=0), rtol=1e-12)
    assert sampler.augmenters_[label].n_neighbors_ == max(1, n_rows - 1)


def test_enough_rows_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PNLAugmenter(k_neighbors=5).fit(table(n=6)).n_neighbors_ == 5


@pytest.mark.parametrize(("draws", "most"), [("mixup", 10), ("kde", 5)])
def test_as_many_neighbours_as_there_are_without_a_warning(draws, most):
    for n in (2, 4, 30):
        augmenter = PNLAugmenter(draws=draws).fit(table(n=n))
        assert augmenter.n_neighbors_ == min(most, n - (draws == "mixup"))
    with pytest.warns(UserWarning, match="has 1 row: all new rows are copies of it"):
        PNLAugmenter().fit(table(n=1))


def test_warnings_of_convergence_name_the_class():
    X, y = np.abs(table(n=40, d=8)) ** 4, np.repeat(["a", "b"], [28, 12])
    sampler = PNLSampler(
        order=2, offset=1e-9, max_iter=1, local_manifold="fiber", random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="PNLSampler, class 'b': "):
        sampler.fit_resample(X, y)


# --- copies -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("labels", [False, True])
def test_all_copies_of_a_row_are_partners_alike(labels, seed):
    X = np.repeat(table(seed, n=3, d=2), 20, axis=0)
    params = {}
    if labels:
        X = np.column_stack([X.astype(object), ["u", "v"] * 30])
        params["categorical_features"] = [2]
    augmenter = PNLAugmenter(k_neighbors=3, **params).fit(X)
    counts = np.zeros(60)
    for draw in range(40):
        # Which are partners is drawn anew each time.
        _, parents = augmenter.sample(600, 100 * seed + draw, return_parents=True)
        counts += np.bincount(parents[:, 1], minlength=60)
    assert (parents[:, 0] != parents[:, 1]).all()
    assert (X[parents[:, 0]] == X[parents[:, 1]]).all()
    # Partners come in threes, drawn once a source.
    assert chisquare(counts).statistic < 60 * 40


def test_copies_among_other_rows_leave_their_partners():
    X = np.vstack([np.zeros((4, 2)), 1 + np.abs(table(n=20, d=2))])
    augmenter = PNLAugmenter(k_neighbors=5).fit(X)
    _, parents = augmenter.sample(4000, 0, return_parents=True)
    near = parents[parents[:, 0] == 0, 1]
    assert {1, 2, 3} < set(near)


# --- one feature, empty rows, large numbers ------------------------------------------


@pytest.mark.parametrize("with_mass", [False, True])
def test_one_feature_there_and_back(with_mass):
    X = 1 + np.random.default_rng(0).uniform(size=(30, 1))
    projector = BackwardProjector(with_mass=with_mass, n_neighbors=30).fit(X)
    back = projector.inverse_transform(projector.transform(X))
    # Without its mass nothing is left of a row: the mean comes back.
    expected = X if with_mass else np.full_like(X, X.mean())
    assert_allclose(back, expected, rtol=1e-8)


@pytest.mark.parametrize("embedding", ["minmax", None])
@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_one_feature_is_drawn(augment, embedding):
    X = 1 + np.random.default_rng(0).uniform(size=(30, 1))
    augmenter = PNLAugmenter(draws=augment, embedding=embedding).fit(X)
    rows = augmenter.sample(100, random_state=0)
    assert abs(rows.mean() - X.mean()) < 0.1


def test_a_row_of_minus_offset_is_refused():
    X = np.abs(table())
    projector = BackwardProjector(offset=1.0).fit(X)
    X[4] = -1.0
    with pytest.raises(ValueError, match="Row 4 is -offset=-1 in all cells"):
        projector.transform(X)


def test_integers_that_are_no_doubles_are_as_near_as_doubles_get():
    X = 2**53 + np.random.default_rng(0).integers(0, 99, (30, 2))
    rows = PNLAugmenter(range_slack=0).fit(X).sample(50, random_state=0)
    assert rows.dtype == X.dtype
    assert (abs(rows - np.clip(rows, X.min(axis=0), X.max(axis=0))) <= 1).all()


@pytest.mark.parametrize(
    "make", [PNLAugmenter, PNLSampler, BackwardProjector, ManyBodyProjector]
)
def test_no_jobs_are_refused(make):
    X, y = np.abs(table()), np.repeat([0, 1], [20, 10])
    with pytest.raises(ValueError, match="'n_jobs' parameter .* Got 0"):
        if make is PNLSampler:
            make(n_jobs=0).fit_resample(X, y)
        else:
            make(n_jobs=0).fit(X)


def test_kept_rows_are_the_projectors_own():
    X = np.abs(table())
    projector = BackwardProjector().fit(X)
    before = projector.rows_.copy()
    X[:] = 7
    assert_array_equal(projector.rows_, before)
    augmenter = PNLAugmenter(embedding=None, draws=MixupDraws(noise=0))
    Y = np.abs(table())
    augmenter.fit(Y)
    rows = augmenter.sample(5, random_state=0)
    Y[:] = 7
    assert_array_equal(augmenter.sample(5, random_state=0), rows)
