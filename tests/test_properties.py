"""Properties that hold for all rows, shown on rows that nobody chose.

The profile "ci" takes the same few cases each time; ``--hypothesis-profile=deep`` takes
other ones, 20,000 in all.
"""

import pickle
import warnings
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from sklearn_pnl import (
    BackwardProjector,
    ColumnConstraint,
    ManyBodyProjector,
    MixupDraws,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
    compare_samples,
    find_invariants,
)
from sklearn_pnl.embedding import RangeEmbedding
from sklearn_pnl.geometry import (
    InteractionBasis,
    Poset,
    TensorPoset,
    eta_from_prob,
    kl_divergence,
    linear_projection,
    mixed_projection,
    prob_from_eta,
    prob_from_theta,
    rake,
    round_to_margins,
    theta_from_prob,
)

pytest.importorskip("hypothesis", reason="hypothesis is missing")

from hypothesis import assume, example, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

seeds = st.integers(0, 2**32 - 1)
small = st.integers(1, 4)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(
    lambda shape: 2 <= prod(shape) <= 60
)
KINDS = ["normal", "normal", "skewed", "whole", "few", "flags", "constant", "empty"]


def column(rng, kind, n):
    """Values of a feature of some kind, in no particular unit."""
    if kind == "normal":
        return rng.normal(size=n)
    if kind == "skewed":
        return rng.gamma(0.5, size=n)
    if kind == "whole":
        return rng.integers(-50, 50, n).astype(float)
    if kind == "few":
        return rng.choice([0.1, 0.5, 2.5], n)
    if kind == "flags":
        return rng.integers(0, 2, n).astype(float)
    if kind == "empty":
        return rng.gamma(1.0, size=n) * (rng.uniform(size=n) < 0.3)
    return np.full(n, rng.normal())


@st.composite
def tables(draw, rows=(2, 30), columns=(1, 7), units=6, kinds=tuple(KINDS)):
    """Rows of features of several kinds in several units, some rows twice."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(*rows)), draw(st.integers(*columns))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=d, max_size=d))
    sizes = draw(st.lists(st.integers(-units, units), min_size=d, max_size=d))
    X = np.column_stack([column(rng, kind, n) for kind in chosen])
    X = X * 10.0 ** np.array(sizes)
    if draw(st.booleans()):
        X = X[rng.integers(0, n, n)]
    return X


positive = tables(kinds=("skewed", "few", "flags", "empty"))


@st.composite
def recipes(draw, plain=False):
    """Parameters of an augmenter."""
    params = {
        "k_neighbors": draw(st.integers(1, 8)),
        "metric": draw(st.sampled_from(["kl", "euclidean"])),
        "with_mass": draw(st.booleans()),
        "offset": draw(st.sampled_from([0.1, 1.0, 10.0])),
        "range_slack": draw(st.sampled_from([0, 0.1, None])),
        "invariants": draw(st.sampled_from(["auto", None])),
        "draws": draw(st.sampled_from(["mixup", "kde", MixupDraws(noise=0)])),
    }
    if not plain:
        params["order"] = draw(st.sampled_from(["auto", 1, 2]))
        manifolds = ["fiber", "theta", "eta", "mixture"]
        params["local_manifold"] = draw(st.sampled_from(manifolds))
    return params


def fitted(X, **params):
    """An augmenter on rows that may be fewer than its neighbours."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*neighbours were asked for.*")
        return PNLAugmenter(**params).fit(X)


def ranges(X):
    """Units in which rows are compared: what rounding of features amounts to."""
    X = np.asarray(X, dtype=float)
    return np.maximum(np.ptp(X, axis=0), 1e-6 * np.abs(X).max(axis=0)) + 1e-300


def assert_alike(new, other, X, share=1e-7):
    """Rows that are equal up to a share of the ranges of features."""
    units = ranges(X)
    assert_allclose(new / units, other / units, rtol=0, atol=share)


def random_prob(rng, shape, n=3):
    p = rng.gamma(0.5, size=(n, *shape)) + 1e-3
    return p / p.sum(axis=tuple(range(1, p.ndim)), keepdims=True)


@st.composite
def posets(draw):
    """Tensors, and other posets with their elements in any order."""
    if draw(st.booleans()):
        return TensorPoset(draw(shapes))
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(2, 14))
    names = rng.permutation(n)
    pairs = [(0, b) for b in range(1, n)]
    above = [(a, b) for a in range(1, n) for b in range(a + 1, n)]
    density = draw(st.sampled_from([0.0, 0.1, 0.4]))
    pairs += [pair for pair in above if rng.random() < density]
    return Poset.from_relations(n, names[np.array(pairs)])


# --- geometry ---------------------------------------------------------------------


@given(posets(), seeds)
def test_transforms_and_their_inverses(poset, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 3, *poset.shape))
    assert_allclose(poset.moebius(poset.zeta(x)), x, atol=1e-9)
    assert_allclose(poset.eta_inverse(poset.eta(x)), x, atol=1e-9)
    # The adjoint of the zeta transform.
    assert_allclose((poset.zeta(x) * y).sum(), (x * poset.eta(y)).sum(), atol=1e-8)


@given(posets(), seeds)
def test_coordinates_there_and_back(poset, seed):
    p = random_prob(np.random.default_rng(seed), poset.shape)
    assert_allclose(prob_from_theta(theta_from_prob(p, poset), poset), p, rtol=1e-9)
    assert_allclose(prob_from_eta(eta_from_prob(p, poset), poset), p, atol=1e-13)


@given(posets(), seeds, st.floats(0, 1))
def test_mixed_coordinates(poset, seed, share):
    rng = np.random.default_rng(seed)
    target, reference = (random_prob(rng, poset.shape) for _ in range(2))
    matched = rng.random(poset.shape) < share
    matched.reshape(-1)[poset.bottom] = False
    found = mixed_projection(target, reference, matched, poset, tol=1e-10)
    assert np.all(found.converged)
    eta, theta = eta_from_prob(found.prob, poset), theta_from_prob(found.prob, poset)
    rest = ~matched
    rest.reshape(-1)[poset.bottom] = False
    wanted = theta_from_prob(reference, poset)
    assert_allclose(
        eta[:, matched], eta_from_prob(target, poset)[:, matched], atol=1e-9
    )
    assert_allclose(theta[:, rest], wanted[:, rest], atol=1e-7)
    # Pythagoras: the projection is the nearest to the reference among those.
    cells = tuple(range(1, target.ndim))
    whole = kl_divergence(target, reference, axis=cells)
    parts = kl_divergence(target, found.prob, axis=cells)
    parts = parts + kl_divergence(found.prob, reference, axis=cells)
    assert_allclose(parts, whole, atol=1e-7)
    again = mixed_projection(found.prob, reference, matched, poset, tol=1e-10)
    assert_allclose(again.prob, found.prob, atol=1e-9)


@given(shapes, seeds)
def test_an_orthonormal_basis(shape, seed):
    rng = np.random.default_rng(seed)
    modes = [tuple(np.flatnonzero(rng.random(len(shape)) < 0.5)) for _ in range(2)]
    modes = [chosen for chosen in modes if chosen] or [(0,)]
    basis = InteractionBasis(shape, modes)
    v = rng.normal(size=(3, basis.n_functions))
    assert_allclose(basis.analysis(basis.synthesis(v)), v, atol=1e-12)


@given(shapes, seeds, st.booleans())
def test_raking_reaches_margins_that_some_table_has(shape, seed, whole):
    rng = np.random.default_rng(seed)
    holes = rng.random(shape) < 0.2
    wanted = rng.integers(1, 30, shape) * 1.0 if whole else rng.gamma(1.0, size=shape)
    wanted = np.where(holes, 0, wanted)
    assume(wanted.sum() > 0)
    start = np.where(holes, 0, rng.gamma(1.0, size=shape) + 0.05)
    modes = [tuple(np.flatnonzero(rng.random(len(shape)) < 0.5)) for _ in range(2)]
    margins = {}
    for kept in modes:
        others = tuple(k for k in range(len(shape)) if k not in kept)
        margins[tuple(map(int, kept))] = wanted.sum(axis=others)
    found = rake(start, margins, n_modes=len(shape), tol=1e-8)
    for kept, margin in margins.items():
        others = tuple(k for k in range(len(shape)) if k not in kept)
        assert_allclose(found.tables.sum(axis=others), margin, atol=1e-7 * wanted.sum())
    assert not found.tables[holes].any()
    if whole:
        rounded = round_to_margins(found.tables, margins, n_modes=len(shape))
        assert np.all(np.abs(rounded - found.tables) < 1 + 1e-6)
        for kept, margin in margins.items():
            others = tuple(k for k in range(len(shape)) if k not in kept)
            assert_array_equal(rounded.sum(axis=others), margin)


@given(seeds, st.integers(2, 7), st.integers(1, 4))
def test_linear_equations_that_some_measure_meets(seed, d, c):
    rng = np.random.default_rng(seed)
    a = rng.integers(-1, 3, (c, d)).astype(float)
    floor, ceiling = np.zeros(d), rng.uniform(2, 9, d)
    inside = rng.uniform(0.05, 0.95, (4, d)) * ceiling
    lower = inside @ a.T
    upper = lower + rng.choice([0.0, 1.0], (4, c))
    start = rng.gamma(1.0, size=(4, d)) + 0.1
    bounds = {"floor": floor, "ceiling": ceiling}
    found = linear_projection(start, a, lower, upper, **bounds, max_iter=200)
    # With as many constraints as cells there is next to no room, and some rows are
    # not met; these are told.
    assert c >= d or found.converged.all(), found.reasons
    assert set(np.flatnonzero(~found.converged)) == set(found.reasons)
    lower, upper = lower[found.converged], upper[found.converged]
    found = replace(found, measure=found.measure[found.converged])
    reached = found.measure @ a.T
    scale = np.maximum(np.maximum(np.abs(lower), np.abs(upper)), np.abs(a) @ ceiling)
    assert np.all(reached >= lower - 1e-8 * scale)
    assert np.all(reached <= upper + 1e-8 * scale)
    assert np.all((found.measure >= floor) & (found.measure <= ceiling))


# --- round trips ------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.one_of(st.none(), st.integers(2, 7)),
    st.sampled_from([0.0, -1.5, "mean"]),
    st.sampled_from([np.float32, np.float64]),
    seeds,
)
def test_reshaped_rows_come_back(shape, max_factor, pad_value, dtype, seed):
    X = np.random.default_rng(seed).normal(size=(3, *shape)).astype(dtype)
    reshaper = PrimeFactorReshaper(max_factor=max_factor, pad_value=pad_value)
    assert_array_equal(reshaper.inverse_transform(reshaper.fit_transform(X)), X)


@given(tables(units=150))
def test_embedded_rows_come_back(X):
    embedding = RangeEmbedding()
    embedded = embedding.fit_transform(X)
    assert embedded.min() >= 0
    assert embedded.max() <= 1
    size = np.abs(X).max(axis=0)
    back = embedding.inverse_transform(embedded)
    assert np.all(np.abs(back - X) <= 4e-16 * size)


@given(shapes, seeds, st.sampled_from([1, 2]), st.booleans())
def test_codes_of_the_points_that_codes_stand_for(shape, seed, order, with_mass):
    assume(order <= len(shape))
    X = np.random.default_rng(seed).gamma(0.7, size=(5, *shape))
    projector = ManyBodyProjector(order, with_mass=with_mass, offset=0.1, tol=1e-10)
    codes = projector.fit_transform(X)
    measures = projector.inverse_transform(codes)
    # With their mass, points are rows once the offset is off again.
    rows = measures - projector.offset
    if not with_mass:
        rows = measures * 100 - projector.offset
    assume(rows.min() > -projector.offset)
    if with_mass:
        assert_allclose(projector.transform(rows), codes, atol=1e-7)
    else:
        assert_allclose(projector.transform(rows), codes, atol=1e-7)


@given(
    shapes,
    seeds,
    st.sampled_from([1, 2]),
    st.booleans(),
    st.sampled_from(["kl", "euclidean"]),
)
def test_fiber_gives_back_rows_and_codes(shape, seed, order, with_mass, metric):
    assume(order <= len(shape))
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.7, size=(6, *shape)) + (0 if with_mass else 0.01)
    projector = BackwardProjector(
        order, n_neighbors=1, with_mass=with_mass, offset=0.1, tol=1e-11, metric=metric
    )
    codes = projector.fit_transform(X)
    back = projector.inverse_transform(codes)
    assert_allclose(back, X, atol=1e-6 * X.max())
    moved = codes + 0.05 * rng.normal(size=codes.shape)
    rows = projector.inverse_transform(moved)
    assert_allclose(projector.transform(rows), moved, atol=1e-6)


@given(tables(rows=(3, 20)), recipes())
def test_pickled_augmenters_draw_the_same_rows(X, params):
    augmenter = fitted(X, **params)
    again = pickle.loads(pickle.dumps(augmenter))
    rows = augmenter.sample(7, random_state=0)
    assert again.sample(7, random_state=0).tobytes() == rows.tobytes()


# --- what new rows keep -----------------------------------------------------------


@given(tables(), recipes(), seeds)
def test_new_rows_are_finite_in_range_and_of_one_seed(X, params, seed):
    augmenter = fitted(X, **params)
    rows, parents = augmenter.sample(20, random_state=seed, return_parents=True)
    assert rows.shape == (20, X.shape[1])
    assert np.isfinite(rows).all()
    assert parents.min() >= 0
    assert parents.max() < len(X)
    if params["range_slack"] is not None:
        beyond = params["range_slack"] * np.ptp(X, axis=0) + 1e-8 * ranges(X)
        assert np.all(rows >= X.min(axis=0) - beyond)
        assert np.all(rows <= X.max(axis=0) + beyond)
    again = augmenter.sample(20, random_state=seed)
    assert again.tobytes() == rows.tobytes()


@given(tables(), recipes(plain=True), seeds)
def test_without_noise_new_rows_lie_between_their_parents(X, params, seed):
    params |= {"draws": MixupDraws(noise=0), "invariants": None, "with_mass": True}
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    low, high = X[parents].min(axis=1), X[parents].max(axis=1)
    beyond = 1e-9 * ranges(X) * max(1, params["offset"])
    assert np.all(rows >= low - beyond)
    assert np.all(rows <= high + beyond)


@given(tables(rows=(50, 80), columns=(3, 5), units=2), recipes(plain=True), seeds)
def test_totals_and_one_hots_are_kept(X, params, seed):
    rng = np.random.default_rng(seed)
    weights = rng.choice([1.0, -1.0, 2.0], X.shape[1])
    groups = np.eye(3)[rng.integers(0, 3, len(X))]
    X = np.column_stack([X, X @ weights, groups, 1 - X[:, 0]])
    params["invariants"] = "auto"
    augmenter = fitted(X, **params)
    assert augmenter.invariants_.violation(X).max(initial=0) <= 1e-9
    rows = augmenter.sample(30, random_state=seed)
    assert augmenter.invariants_.violation(rows).max(initial=0) <= 1e-8
    first = len(weights) + 1
    shown = np.sort(rows[:, first : first + 3], axis=1)
    assert_array_equal(shown, [[0, 0, 1]] * 30)


@given(positive, recipes(plain=True), seeds, st.booleans())
def test_zeros_of_all_parents_stay(X, params, seed, closed):
    params |= {"embedding": None, "marks": "zeros"}
    if closed:
        X = X / ranges(X)
        X = X[X.sum(axis=1) > 0]
        assume(len(X) >= 2 and X.shape[1] >= 2)
        X = X / X.sum(axis=1, keepdims=True)
        params |= {"with_mass": False, "range_slack": None}
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    zeros = np.all(X[parents] == 0, axis=1)
    assert not rows[zeros].any()
    assert rows.min() >= 0
    if closed:
        assert_allclose(rows.sum(axis=1), 1, atol=1e-8)


@given(tables(kinds=("whole", "flags")), recipes(plain=True), seeds)
def test_whole_numbers_stay_whole_and_in_range(X, params, seed):
    assume(np.abs(X).max() < 2**30)
    X = np.rint(X).astype(np.int32)
    augmenter = fitted(X, **{**params, "range_slack": 0})
    rows = augmenter.sample(20, random_state=seed)
    assert rows.dtype == X.dtype
    assert np.all((rows >= X.min(axis=0)) & (rows <= X.max(axis=0)))


@given(tables(rows=(4, 30), units=3), recipes(plain=True), seeds)
def test_constraints_that_real_rows_meet_are_met(X, params, seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(X.shape[1]))
    params["invariants"] = None
    asked = float(rng.choice(X[:, k]))
    augmenter = fitted(X, **params)
    rows = augmenter.sample(8, seed, constraints=ColumnConstraint(k, equal=asked))
    assert_allclose(rows[:, k], asked, atol=2e-9 * ranges(X)[k], rtol=1e-12)


@given(tables(rows=(12, 30), columns=(2, 5)), recipes(plain=True), seeds)
def test_a_sampler_adds_rows_after_those_there_are(X, params, seed):
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, 3, len(X)))
    assume(len(np.unique(y)) > 1)
    sampler = PNLSampler(random_state=seed, **params)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*neighbours were asked for.*")
        X_all, y_all = sampler.fit_resample(X, y)
    assert X_all[: len(X)].tobytes() == X.tobytes()
    assert_array_equal(y_all[: len(y)], y)
    counts = np.bincount(y_all)
    assert set(counts[counts > 0]) == {np.bincount(y).max()}
    parents = sampler.parent_indices_
    assert np.all((y[parents] == y_all[len(y) :, None]) | (parents == -1))


@given(tables(rows=(6, 30)), recipes(plain=True), seeds, st.booleans())
def test_targets_are_those_of_the_parents(X, params, seed, rarity):
    y = np.random.default_rng(seed).gamma(0.5, size=(len(X), 2))
    where = "rarity" if rarity else "uniform"
    sampler = PNLRegressionSampler(n_samples=15, row_weights=where, random_state=seed)
    sampler.set_params(**params)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*neighbours were asked for.*")
        X_all, y_all = sampler.fit_resample(X, y)
    assert X_all[: len(X)].tobytes() == X.tobytes()
    weights, parents = sampler.parent_weights_, sampler.parent_indices_
    assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    expected = (weights[:, :, None] * y[parents]).sum(axis=1)
    assert_allclose(y_all[len(y) :], expected, rtol=1e-12)


@given(tables(rows=(3, 25), units=2), recipes(plain=True), seeds)
def test_categories_go_together_as_somewhere_in_the_data(X, params, seed):
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b", "c", "d"], size=(len(X), 2)).astype(object)
    table = np.column_stack([labels[:, 0], X.astype(object), labels[:, 1]])
    d = table.shape[1]
    params["categorical_features"] = [0, d - 1]
    if np.ptp(X, axis=0).max() == 0:
        params["draws"] = "mixup"
    rows, parents = fitted(table, **params).sample(20, seed, return_parents=True)
    found, own = rows[:, [0, -1]], labels[parents]
    assert np.all(np.any(np.all(found[:, None] == own, axis=2), axis=1))


@given(
    st.one_of(
        tables(rows=(2, 60), columns=(1, 8), units=3),
        tables(rows=(50, 80), columns=(2, 6), units=3, kinds=("normal", "whole")),
    ),
    st.integers(0, 2),
    seeds,
)
def test_equations_hold_and_those_planted_are_found(X, n_planted, seed):
    rng = np.random.default_rng(seed)
    X = X[rng.permutation(len(X))]
    planted = []
    for _ in range(n_planted):
        weights = rng.choice([1.0, -1.0], X.shape[1])
        X = np.column_stack([X, X @ weights])
        planted.append(np.append(weights, -1.0))
    found = find_invariants(X)
    assert found.violation(X).max(initial=0) <= 1e-9
    # Few rows, or values that many rows have, would satisfy equations by chance.
    most = max(np.unique(column, return_counts=True)[1].max() for column in X.T)
    if len(X) < 4 * X.shape[1] + 10 or most > len(X) / 5:
        return
    for k, equation in enumerate(planted):
        whole = np.zeros(X.shape[1])
        whole[: len(equation)] = equation
        # A combination of those found.
        rest = whole - np.linalg.lstsq(found.coefficients.T, whole, rcond=None)[0] @ (
            found.coefficients
        )
        assert np.abs(rest * np.ptp(X, axis=0)).max() <= 1e-6 * np.ptp(X), k


# --- what does not matter ---------------------------------------------------------


LAYOUTS = {
    "columns first": np.asfortranarray,
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "bytes swapped": lambda X: X.astype(X.dtype.newbyteorder()),
    "list": lambda X: X.tolist(),
}


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS["read only"] = read_only


@given(tables(), recipes(), seeds, st.sampled_from(sorted(LAYOUTS)))
def test_the_layout_of_memory_does_not_matter(X, params, seed, layout):
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    other = fitted(LAYOUTS[layout](X), **params)
    assert_array_equal(other.sample(20, seed), rows)
    for estimator in (ManyBodyProjector(), BackwardProjector(n_neighbors=1)):
        estimator.set_params(offset=params["offset"])
        codes = estimator.fit_transform(np.abs(X))
        laid_out = clone(estimator).fit_transform(LAYOUTS[layout](np.abs(X)))
        assert_array_equal(laid_out, codes)
    assert find_invariants(LAYOUTS[layout](X)).coefficients.tobytes() == (
        find_invariants(X).coefficients.tobytes()
    )


@given(tables(units=3), recipes(plain=True), seeds)
@example(
    X=np.column_stack(
        [
            np.isin(np.arange(18), [0, 2, 5, 16]) / 100,
            [1, 25, 25, 25, 5, 1, 1, 5, 1, 5, 5, 25, 5, 25, 25, 5, 5, 25],
            np.r_[0, 2.1, 0, 3.4, 3, 0, 1.6, 5.4, 0, 0, 10.4, 0, 2.3, 0, 0.6, 0, 0, 0],
        ]
    ),
    params={"k_neighbors": 5},
    seed=200,
)
def test_single_precision_gives_the_same_rows_to_single_precision(X, params, seed):
    X = X.astype(np.float32)
    params["invariants"] = None
    # Ties are broken by rounding: partners are the same where all are.
    params["k_neighbors"] = len(X)
    params["draws"] = MixupDraws(noise=0)
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    assert rows.dtype == np.float32
    double, others = fitted(X.astype(float), **params).sample(
        20, seed, return_parents=True
    )
    same = np.all(
        np.sort(X[parents], axis=1) == np.sort(X[others], axis=1), axis=(1, 2)
    )
    rows, double = rows[same], double[same]
    for own, other, column in zip(rows.T, double.T, X.T, strict=True):
        # Values that rows share come from one row, and rows may be as near as others.
        values, counts = np.unique(column, return_counts=True)
        shared = values[counts > 1]
        given = np.isin(own, shared) & np.isin(other.astype(np.float32), shared)
        other[given] = own[given]
    assert_alike(rows, double, X, 1e-5)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@given(X=tables(), params=recipes(plain=True), seed=seeds)
def test_frames_give_the_rows_of_arrays(library, X, params, seed):
    module = pytest.importorskip(library)
    names = [f"c{j}" for j in range(X.shape[1])]
    columns = dict(zip(names, X.T.copy(), strict=True))
    make = getattr(module, "DataFrame", None) or module.table
    frame = make(columns)
    new = fitted(frame, **params).sample(20, seed)
    assert type(new) is type(frame)
    rows = fitted(X, **params).sample(20, seed)
    found = np.column_stack([np.asarray(new[name]) for name in names])
    assert found.tobytes() == rows.tobytes()


# Values of few levels make ties, which go by the rounding of sums.
@given(
    tables(rows=(8, 30), columns=(2, 6), kinds=("normal", "skewed")),
    recipes(plain=True),
    seeds,
)
def test_columns_of_a_plain_table_have_no_order(X, params, seed):
    params["draws"] = MixupDraws(noise=0.25)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    augmenter, permuted = fitted(X, **params), fitted(X[:, order], **params)
    rows, parents = augmenter.sample(20, seed, return_parents=True)
    other, others = permuted.sample(20, seed, return_parents=True)
    assume(len(np.unique(X, axis=0)) == len(X))
    assert_array_equal(others, parents)
    assert_alike(other, rows[:, order], X[:, order], 1e-6)


@given(tables(), recipes(), seeds)
def test_rows_have_no_order(X, params, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    augmenter, permuted = fitted(X, **params), fitted(X[order], **params)
    assert_allclose(permuted.codes_, augmenter.codes_[order], atol=1e-7)
    found, other = augmenter.invariants_, permuted.invariants_
    assert len(found) == len(other)
    assert other.violation(X).max(initial=0) <= 1e-8
    projector = BackwardProjector(offset=params["offset"], n_neighbors=1)
    codes = projector.fit_transform(np.abs(X))
    moved = clone(projector).fit(np.abs(X[order]))
    distances, _ = projector.kneighbors(codes[:3], 2)
    assert_allclose(moved.kneighbors(codes[:3], 2)[0], distances, atol=1e-9)
    assert_allclose(moved.transform(np.abs(X)), codes, atol=1e-12)


# Whole numbers stay whole in the units that they come in.
@given(tables(kinds=("normal", "skewed", "empty")), recipes(plain=True), seeds)
def test_units_of_columns_do_not_matter(X, params, seed):
    params["invariants"] = None
    rng = np.random.default_rng(seed)
    # By powers of two nothing is rounded.
    units = 2.0 ** rng.integers(-20, 20, X.shape[1])
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    other, others = fitted(X * units, **params).sample(20, seed, return_parents=True)
    assert_array_equal(parents, others)
    assert (other / units).tobytes() == rows.tobytes()


@given(
    tables(rows=(4, 40)),
    recipes(),
    seeds,
    st.integers(1, 30),
    st.sampled_from([None, 2, -1]),
    st.sampled_from([0.0001, 1, 1024]),
)
def test_batches_jobs_and_memory_change_no_byte(X, params, seed, size, n_jobs, memory):
    rows, parents = fitted(X, **params).sample(60, seed, return_parents=True)
    with config_context(working_memory=memory):
        augmenter = fitted(X, **params, n_jobs=n_jobs)
        assert augmenter.sample(60, seed).tobytes() == rows.tobytes()
        batches = list(augmenter.iter_samples(60, size, seed, return_parents=True))
        some = list(augmenter.iter_samples(60, None, seed))
    assert np.concatenate([b for b, _ in batches]).tobytes() == rows.tobytes()
    assert_array_equal(np.concatenate([p for _, p in batches]), parents)
    assert np.concatenate(some).tobytes() == rows.tobytes()


@settings(max_examples=settings.default.max_examples // 5)
@given(tables(rows=(6, 30), columns=(1, 4)), seeds)
def test_comparisons_do_not_depend_on_order_or_units(X, seed):
    # What is constant keeps its units.
    assume(np.ptp(X, axis=0).min() > 0)
    rng = np.random.default_rng(seed)
    X_new = X[rng.integers(0, len(X), 12)] + 0.1 * ranges(X) * rng.normal(
        size=(12, X.shape[1])
    )
    kept = ["outside_range", "ks_statistic", "std_ratio", "mean_difference"]
    fast = {"classifier": DecisionTreeClassifier(), "cv": 2, "random_state": 0}
    found = compare_samples(X, X_new, **fast)
    order, other = rng.permutation(len(X)), rng.permutation(12)
    moved = compare_samples(X[order] * 8, X_new[other] * 8, **fast)
    assert_allclose(moved.distance, found.distance[other], rtol=1e-6, atol=1e-9)
    for name in kept:
        own, before = (getattr(f.features, name) for f in (moved, found))
        assert_allclose(own, before, rtol=1e-6, atol=1e-12)
    assert np.isin(X[::2], X).all()
    copies = compare_samples(X, X[::2], **fast)["exact copies"]
    assert copies.verdict == "nothing to compare" or copies.value > 0
