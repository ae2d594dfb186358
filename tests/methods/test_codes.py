"""Interactions of named axes, and the codes from which new rows are decoded."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.mixture import GaussianMixture

from sklearn_pnl import (
    Codes,
    Lines,
    ManyBodyProjector,
    PNLAugmenter,
    PrimeFactorReshaper,
)
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.encoding import FiberManifold, ForwardProjection, ThetaManifold
from sklearn_pnl.geometry import TensorPoset, kl_divergence, order_mask
from sklearn_pnl.methods import Draws

SHAPE = (4, 6, 3)
ORDERS = [[(0, 1), (2,)], [(0,), (1, 2)], [(0, 1, 2)], [(2,)], ((2, 0),)]


def positive(seed, *shape, n=24):
    return np.random.default_rng(seed).gamma(3.0, size=(n, *shape))


def method_of(X, order, **params):
    params = {"embedding": None, "offset": 0.5} | params
    return PNLAugmenter(Codes(order, **params)).fit(X).method_


def margins(X, order):
    """Sums of rows over all axes that are not in a set of the order."""
    axes = range(len(SHAPE))
    return [X.sum(axis=tuple(1 + k for k in axes if k not in s)) for s in order]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("reshaper", ["auto", "prime"])
def test_tuples_name_the_axes_of_a_row(order, reshaper):
    X = positive(0, *SHAPE)
    plain = method_of(X, order, reshaper=None)
    split = method_of(X, order, reshaper=reshaper)
    assert split.poset_.shape == (2, 2, 3, 2, 3)
    assert split.n_params_ == plain.n_params_
    assert_array_equal(split.base_mask_.reshape(SHAPE), plain.base_mask_)
    assert_array_equal(order_mask(split.poset_, split.order_), split.base_mask_)
    # Codes of both contain the marginals of the axes: another basis of the same codes.
    both = np.column_stack([split.codes_, plain.codes_])
    rank = np.linalg.matrix_rank(both - both.mean(axis=0), tol=1e-6)
    assert rank == min(len(X) - 1, plain.n_params_)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_decoded_rows_have_the_margins_of_the_named_axes(order):
    X = positive(1, *SHAPE)
    moved = X[:, ::-1, ::-1, ::-1] * 1.3
    method = method_of(X, order)
    codec = method.reshaper_
    projector = ManyBodyProjector(method.order_, offset=0.5, with_mass=True, tol=1e-10)
    tensors = [codec.transform(rows) for rows in (X, moved)]
    codes = projector.fit(tensors[0]).transform(tensors[1])
    rows = codec.inverse_transform(projector.inverse_transform(codes)) - 0.5
    for found, expected in zip(
        margins(rows, order), margins(moved, order), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda order: ManyBodyProjector(order, offset=0.5, with_mass=True),
        lambda order: OwnProjection(order),
    ],
)
def test_orders_of_objects_name_axes_too(make):
    X, order = positive(0, *SHAPE), [(0, 1), (2,)]
    given = make(order)
    params = {"offset": 1.0} if isinstance(given, ManyBodyProjector) else {}
    method = method_of(X, given, **params)
    assert method.n_params_ == method_of(X, order).n_params_
    assert given.order is order


class OwnProjection(ForwardProjection):
    """The KL projection, as a projection of the user."""

    def encode(self, p, poset):
        projector = ManyBodyProjector(self.order, offset=0, poset=poset)
        return projector.fit_transform(p)


@pytest.mark.parametrize("manifold", [FiberManifold, ThetaManifold])
def test_orders_of_local_manifolds_name_axes_too(manifold):
    X, poset = positive(0, *SHAPE), TensorPoset((2, 2, 3, 2, 3))
    by_axes = manifold([(0, 1), (2,)])
    by_modes = manifold([(0, 1, 2, 3), (4,)], poset=poset)
    rows = []
    for each in (by_axes, by_modes):
        method = Codes(1, embedding=None, local_manifold=each)
        rows.append(PNLAugmenter(method).fit(X).sample(5, random_state=0))
    assert_array_equal(*rows)
    assert by_axes.order == [(0, 1), (2,)]


def test_factors_are_named_for_reshaped_rows():
    X = positive(0, *SHAPE)
    reshaper = PrimeFactorReshaper().fit(X)
    order = [reshaper.axis_modes_[1], (0, 4)]
    tensors = reshaper.transform(X)
    method = method_of(tensors, order, reshaper=None)
    assert_array_equal(method.base_mask_, order_mask(method.poset_, order))
    # A poset names its own modes, also for flat rows.
    given = ManyBodyProjector(order, poset=TensorPoset((2, 2, 3, 2, 3)), offset=0.5)
    flat = method_of(X.reshape(len(X), -1), given, offset=1.0)
    assert_array_equal(flat.base_mask_, method.base_mask_)


def test_flat_rows_have_the_axes_of_the_reshaper():
    X = positive(0, *SHAPE)
    reshaper = PrimeFactorReshaper(SHAPE)
    flat = method_of(X.reshape(len(X), -1), [(0, 1), (2,)], reshaper=reshaper)
    assert flat.n_params_ == method_of(X, [(0, 1), (2,)]).n_params_


def test_axes_of_length_1_have_no_modes():
    X = positive(0, 4, 1, 6)
    assert method_of(X, [(0, 1), (2,)]).order_ == [(0, 1), (2, 3)]
    assert method_of(X, [(0,), (1,)]).order_ == [(0, 1)]


@pytest.mark.parametrize("order", [[(0, 3)], [(1, 1)], [()], [], [0, 1], [(-1,)]])
def test_other_tuples_are_refused(order):
    message = r"order=.* axes of a row of shape \(4, 6, 3\), from 0 to 2.*reshaper=None"
    with pytest.raises(ValueError, match=message):
        method_of(positive(0, *SHAPE), order)
    with pytest.raises(ValueError, match=message):
        manifold = FiberManifold(order)
        method_of(positive(0, *SHAPE), 1, local_manifold=manifold)


# --- codes as output ----------------------------------------------------------------


METHODS = {
    "fiber": Codes(1),
    "theta": Codes(2, local_manifold="theta"),
    "kde": Codes(1, draws="kde", local_manifold="eta", with_mass=False),
    "paper": Codes.paper(),
    "whole": Codes(),
    "own": Codes(OwnProjection(1)),
    "estimator": Codes(1, draws=GaussianMixture(1, reg_covar=1e-3)),
}


@pytest.mark.parametrize("name", METHODS)
def test_sampled_codes_are_decoded_to_the_rows(name):
    X = positive(0, *SHAPE)
    augmenter = PNLAugmenter(METHODS[name], extrapolation=None, equalities=None).fit(X)
    plain = augmenter.sample(15, random_state=0)
    rows, parents, sampled = augmenter.sample(
        15, random_state=0, return_parents=True, return_codes=True
    )
    assert_array_equal(rows, plain)
    assert_array_equal(sampled.neighbors, parents)
    assert sampled.codes.shape == (15, augmenter.method_.n_params_)
    assert sampled.divergences.shape == (15,)
    # The divergence of the definition, from the rows and the points of the codes.
    source = augmenter._rows.source
    method = augmenter.method_
    cells = method.embedding_.transform(rows.reshape(15, -1))
    if method.reshaper_ is not None:
        cells = method.reshaper_.transform(cells.reshape(15, *SHAPE))
    offset = METHODS[name].offset
    q = np.maximum(cells.reshape(15, -1) + offset, 1e-300)
    w = source.training.codec.points(sampled.codes)[0]
    expected = kl_divergence(w, q / q.sum(axis=1, keepdims=True), axis=1)
    assert_allclose(sampled.divergences, expected, rtol=1e-6, atol=1e-9)
    if name == "whole":
        assert_allclose(sampled.divergences, 0, atol=1e-12)
    else:
        assert (sampled.divergences > 1e-6).all()


def test_sampled_codes_are_the_codes_of_the_rows_of_a_fibre():
    X = positive(0, *SHAPE)
    method = Codes(2, embedding=None)
    augmenter = PNLAugmenter(method, extrapolation=None, equalities=None).fit(X)
    rows, sampled = augmenter.sample(10, random_state=0, return_codes=True)
    projector = ManyBodyProjector(2, offset=1.0, with_mass=True, tol=1e-10)
    tensors = augmenter.method_.reshaper_.transform(rows)
    assert_allclose(projector.fit_transform(tensors), sampled.codes, atol=1e-4)


@pytest.mark.parametrize("draws", ["mixup", "kde"])
def test_sampled_codes_do_not_depend_on_the_computation(draws):
    X = positive(0, *SHAPE)
    samples = []
    for n_jobs, memory in ((1, 1024), (2, 1024), (1, 1)):
        augmenter = PNLAugmenter(Codes(1, draws=draws), n_jobs=n_jobs).fit(X)
        with config_context(working_memory=memory):
            samples.append(augmenter.sample(5000, 0, return_codes=True)[1])
    for each in samples[1:]:
        for name in ("codes", "neighbors", "divergences"):
            assert_array_equal(getattr(each, name), getattr(samples[0], name))


def test_codes_of_rows_that_constraints_drop_are_dropped():
    X = positive(0, 6, n=40)
    augmenter = PNLAugmenter(order=1).fit(X)
    limit = ColumnConstraint({0: 1.0}, lower=X[:, 0].mean())
    rows, report, sampled = augmenter.sample(
        60,
        0,
        constraints=limit,
        infeasible="drop",
        return_report=True,
        return_codes=True,
    )
    assert len(rows) == len(sampled.codes) == len(sampled.divergences)
    assert report is not None
    totals = {0: float(50 * X[:, 0].mean())}
    rows, sampled = augmenter.sample(50, 0, totals=totals, return_codes=True)
    assert len(sampled.codes) == 50
    assert np.isfinite(sampled.divergences).all()


@pytest.mark.parametrize("method", ["auto", Lines(noise=0)])
def test_lines_have_no_codes(method):
    augmenter = PNLAugmenter(method).fit(positive(0, 6))
    with pytest.raises(ValueError, match=r"return_codes=True requires.*Lines\("):
        augmenter.sample(3, return_codes=True)


def test_draws_without_codes_are_refused_by_name():
    augmenter = PNLAugmenter(Codes(1, draws=Draws())).fit(positive(0, *SHAPE))
    with pytest.raises(NotImplementedError, match="Draws must implement start_codes"):
        augmenter.sample(3)
