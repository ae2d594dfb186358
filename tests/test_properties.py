"""Test properties that hold for all rows on random rows.

The profile "ci" runs the same few cases each time; ``--hypothesis-profile=deep`` runs
700 random cases of each test.
"""

import pickle
import warnings
from collections import Counter
from math import prod

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from benchmarks.promises import fuzz
from sklearn_pnl import Codes, Lines, PNLAugmenter
from sklearn_pnl.control import ColumnConstraint, find_equalities
from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    eta_from_prob,
    kl_divergence,
    mixed_projection,
    prob_from_eta,
    prob_from_theta,
    theta_from_prob,
)
from sklearn_pnl.methods.draws import MixupDraws

pytest.importorskip("hypothesis", reason="hypothesis is missing")

from hypothesis import assume, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

seeds = st.integers(0, 2**32 - 1)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(
    lambda shape: 2 <= prod(shape) <= 60
)
KINDS = ["normal", "normal", "skewed", "whole", "few", "flags", "constant", "empty"]
COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.gamma(0.5, size=n),
    "whole": lambda rng, n: rng.integers(-50, 50, n).astype(float),
    "few": lambda rng, n: rng.choice([0.1, 0.5, 2.5], n),
    "flags": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "empty": lambda rng, n: rng.gamma(1.0, size=n) * (rng.uniform(size=n) < 0.3),
    "constant": lambda rng, n: np.full(n, rng.normal()),
}


@st.composite
def tables(draw, rows=(2, 30), columns=(1, 7), units=6, kinds=tuple(KINDS)):
    """Draw rows of features of several kinds and units, some rows twice."""
    rng = np.random.default_rng(draw(seeds))
    n, d = draw(st.integers(*rows)), draw(st.integers(*columns))
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=d, max_size=d))
    sizes = draw(st.lists(st.integers(-units, units), min_size=d, max_size=d))
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in chosen])
    X = X * 10.0 ** np.array(sizes)
    return X[rng.integers(0, n, n)] if draw(st.booleans()) else X


@st.composite
def recipes(draw, lines=False):
    """Draw parameters of an augmenter; ``lines`` draws only straight lines."""
    params = {
        "k_neighbors": draw(st.integers(1, 8)),
        "extrapolation": draw(st.sampled_from([0, 0.1, None])),
        "equalities": draw(st.sampled_from(["auto", None])),
        "value_support": draw(st.sampled_from(["auto", None])),
    }
    n_candidates = draw(st.sampled_from([5, None]))
    noise = draw(st.sampled_from([0, 0.3, 0.6]))
    if lines or draw(st.booleans()):
        return params | {"method": Lines(noise, n_candidates=n_candidates)}
    draws = MixupDraws(noise, n_candidates=n_candidates)
    method = Codes(
        draw(st.sampled_from([None, 1])),
        local_manifold=draw(st.sampled_from(["fiber", "theta", "eta", "mixture"])),
        draws=draw(st.sampled_from(["kde", "mixup", draws])),
    )
    return params | {"method": method}


def fitted(X, **params):
    """Fit an augmenter to rows that can be fewer than its neighbours."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* has only ")
        return PNLAugmenter(**params).fit(X)


def ranges(X):
    """Return the units in which rows are compared, with room for rounding."""
    X = np.asarray(X, dtype=float)
    return np.maximum(np.ptp(X, axis=0), 1e-6 * np.abs(X).max(axis=0)) + 1e-300


def has_more_than_two_values(X):
    """Return the mask of columns that are not binary."""
    return np.array([len(np.unique(column)) > 2 for column in X.T])


def random_prob(rng, shape, n=3):
    p = rng.gamma(0.5, size=(n, *shape)) + 1e-3
    return p / p.sum(axis=tuple(range(1, p.ndim)), keepdims=True)


@st.composite
def posets(draw):
    """Draw tensors, and other posets with their elements in any order."""
    if draw(st.booleans()):
        return TensorPoset(draw(shapes))
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(2, 14))
    pairs = [(0, b) for b in range(1, n)]
    above = [(a, b) for a in range(1, n) for b in range(a + 1, n)]
    density = draw(st.sampled_from([0.0, 0.1, 0.4]))
    pairs += [pair for pair in above if rng.random() < density]
    return Poset.from_relations(n, rng.permutation(n)[np.array(pairs)])


# --- geometry ---------------------------------------------------------------------


@given(posets(), seeds)
def test_transforms_and_coordinates_round_trip(poset, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 3, *poset.shape))
    assert_allclose(poset.moebius(poset.zeta(x)), x, atol=1e-9)
    assert_allclose(poset.eta_inverse(poset.eta(x)), x, atol=1e-9)
    # The adjoint of the zeta transform.
    assert_allclose((poset.zeta(x) * y).sum(), (x * poset.eta(y)).sum(), atol=1e-8)
    p = random_prob(rng, poset.shape)
    assert_allclose(prob_from_theta(theta_from_prob(p, poset), poset), p, rtol=1e-9)
    assert_allclose(prob_from_eta(eta_from_prob(p, poset), poset), p, atol=1e-13)


@given(posets(), seeds, st.floats(0, 1))
def test_mixed_coordinates_determine_one_distribution(poset, seed, share):
    rng = np.random.default_rng(seed)
    target, reference = (random_prob(rng, poset.shape) for _ in range(2))
    matched = rng.random(poset.shape) < share
    matched.reshape(-1)[poset.bottom] = False
    found = mixed_projection(target, reference, matched, poset, tol=1e-10)
    assert np.all(found.converged)
    eta, theta = eta_from_prob(found.prob, poset), theta_from_prob(found.prob, poset)
    rest = ~matched
    rest.reshape(-1)[poset.bottom] = False
    wanted = eta_from_prob(target, poset), theta_from_prob(reference, poset)
    assert_allclose(eta[:, matched], wanted[0][:, matched], atol=1e-9)
    assert_allclose(theta[:, rest], wanted[1][:, rest], atol=1e-7)
    # Pythagoras: the projection is the point of the set nearest to the reference.
    cells = tuple(range(1, target.ndim))
    whole = kl_divergence(target, reference, axis=cells)
    parts = kl_divergence(target, found.prob, axis=cells)
    parts = parts + kl_divergence(found.prob, reference, axis=cells)
    assert_allclose(parts, whole, atol=1e-7)


# --- properties of new rows -------------------------------------------------------


@given(tables(), recipes(), seeds)
def test_new_rows_are_finite_in_range_and_reproducible(X, params, seed):
    augmenter = fitted(X, **params)
    rows, parents = augmenter.sample(20, seed, return_parents=True)
    assert rows.shape == (20, X.shape[1])
    assert np.isfinite(rows).all()
    assert parents.min() >= 0
    assert parents.max() < len(X)
    if params["extrapolation"] is not None:
        beyond = params["extrapolation"] * np.ptp(X, axis=0) + 1e-12 * ranges(X)
        assert np.all(rows >= X.min(axis=0) - beyond)
        assert np.all(rows <= X.max(axis=0) + beyond)
    again = pickle.loads(pickle.dumps(augmenter)).sample(20, seed)
    assert again.tobytes() == rows.tobytes()


@given(tables(), recipes(lines=True), seeds)
def test_without_noise_new_rows_lie_between_their_parents(X, params, seed):
    params |= {"method": Lines(noise=0), "value_support": None}
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    # Binary columns can come from other neighbours.
    c = has_more_than_two_values(X)
    low, high = X[parents].min(axis=1)[:, c], X[parents].max(axis=1)[:, c]
    beyond = 1e-9 * ranges(X)[c]
    assert np.all(rows[:, c] >= low - beyond)
    assert np.all(rows[:, c] <= high + beyond)


@given(tables(rows=(40, 80), columns=(2, 5), units=2), recipes(), seeds)
def test_equalities_and_one_hot_columns_are_found_and_hold(X, params, seed):
    rng = np.random.default_rng(seed)
    weights = rng.choice([1.0, -1.0, 2.0], X.shape[1])
    runs = np.eye(3)[rng.integers(0, 3, len(X))]
    X = np.column_stack([X, X @ weights, runs, 1 - X[:, 0]])
    params |= {"equalities": "auto"}
    found = find_equalities(X)
    assert np.abs(found.residual(X) / found.scale).max(initial=0) <= 1e-9
    a = np.append(weights, [-1, 0, 0, 0, 0])
    rows = fitted(X, **params).sample(30, seed)
    room = 1e-9 * np.max(np.abs(a) * np.ptp(X, axis=0)) + 1e-12 * np.abs(rows) @ np.abs(
        a
    )
    assert np.all(np.abs(rows @ a) <= room)
    gap = np.abs(rows[:, 0] + rows[:, -1] - 1)
    assert np.all(gap <= 1e-9 * np.ptp(X[:, 0]) + 1e-12)
    first = len(weights) + 1
    assert_array_equal(np.sort(rows[:, first : first + 3], axis=1), [[0, 0, 1]] * 30)


@given(
    tables(rows=(4, 40), columns=(2, 5), units=2, kinds=("skewed", "whole", "few")),
    seeds,
)
def test_orders_hold(X, seed):
    X = np.cumsum(np.abs(X), axis=1)
    # Binary columns count as 0 and 1.
    assume(all(len(np.unique(column)) > 2 for column in X.T))
    augmenter = fitted(X, method=Lines(1.0))
    rows = augmenter.sample(100, seed)
    for p, q in augmenter.inequalities_:
        assert np.all(X[:, p] <= X[:, q])
        assert np.all(rows[:, p] <= rows[:, q])
    assert np.all(np.diff(rows, axis=1) >= -1e-12 * ranges(X)[1:])


@given(tables(kinds=("skewed", "few", "flags", "empty")), recipes(lines=True), seeds)
def test_zeros_of_both_parents_are_preserved(X, params, seed):
    params["method"] = Lines()
    params["equalities"] = None
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    c = has_more_than_two_values(X)
    assert not rows[:, c][np.all(X[parents] == 0, axis=1)[:, c]].any()


@given(tables(kinds=("whole", "flags")), recipes(), seeds)
def test_integers_stay_integers_in_range(X, params, seed):
    assume(np.abs(X).max() < 2**30)
    X = np.rint(X).astype(np.int32)
    rows = fitted(X, **params).sample(20, seed)
    assert rows.dtype == X.dtype
    assert np.all((rows >= X.min(axis=0)) & (rows <= X.max(axis=0)))


@given(tables(rows=(4, 30), units=3), recipes(), seeds)
def test_constraints_that_real_rows_satisfy_are_satisfied(X, params, seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(X.shape[1]))
    params["equalities"] = None
    requested = float(rng.choice(X[:, k]))
    constraint = ColumnConstraint(k, equal=requested)
    with warnings.catch_warnings():
        # An inequality of few rows can contradict the request, which takes precedence.
        warnings.filterwarnings("ignore", ".* rows? miss", ConvergenceWarning)
        rows = fitted(X, **params).sample(8, seed, constraints=constraint)
    assert_allclose(rows[:, k], requested, atol=1e-9 * ranges(X)[k], rtol=1e-12)


@given(tables(rows=(3, 25), units=2), recipes(), seeds)
def test_combinations_of_categories_are_those_of_a_parent(X, params, seed):
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b", "c", "d"], size=(len(X), 2)).astype(object)
    table = np.column_stack([labels[:, 0], X.astype(object), labels[:, 1]])
    params["categorical_features"] = [0, table.shape[1] - 1]
    rows, parents = fitted(table, **params).sample(20, seed, return_parents=True)
    found, theirs = rows[:, [0, -1]], labels[parents]
    assert np.all(np.any(np.all(found[:, None] == theirs, axis=2), axis=1))


@given(tables(rows=(3, 40), units=2), st.floats(0, 0.6), recipes(lines=True), seeds)
def test_patterns_of_missing_cells_are_those_of_a_parent(X, share, params, seed):
    rng = np.random.default_rng(seed)
    X[rng.uniform(size=X.shape) < share] = np.nan
    X[rng.integers(len(X))] = 1.5
    rows, parents = fitted(X, **params).sample(20, seed, return_parents=True)
    gaps = np.isnan(X)[parents]
    assert np.all(np.any(np.all(gaps == np.isnan(rows)[:, None], axis=2), axis=1))
    assert np.isfinite(rows[~np.isnan(rows)]).all()


# --- invariance -------------------------------------------------------------------

LAYOUTS = {
    "fortran": np.asfortranarray,
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "bytes swapped": lambda X: X.astype(X.dtype.newbyteorder()),
    "list": lambda X: X.tolist(),
}


@given(tables(), recipes(), seeds, st.sampled_from(sorted(LAYOUTS)))
def test_the_layout_of_memory_does_not_matter(X, params, seed, layout):
    rows = fitted(X, **params).sample(20, seed)
    assert_array_equal(fitted(LAYOUTS[layout](X), **params).sample(20, seed), rows)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "scipy"])
@given(X=tables(), params=recipes(), seed=seeds)
def test_containers_and_arrays_give_the_same_rows(library, X, params, seed):
    rows = fitted(X, **params).sample(20, seed)
    if library == "scipy":
        assert_array_equal(
            fitted(csr_array(X), **params).sample(20, seed).toarray(), rows
        )
        return
    module = pytest.importorskip(library)
    names = [f"c{j}" for j in range(X.shape[1])]
    make = getattr(module, "DataFrame", None) or module.table
    frame = make(dict(zip(names, X.T.copy(), strict=True)))
    new = fitted(frame, **params).sample(20, seed)
    assert type(new) is type(frame)
    found = np.column_stack([np.asarray(new[name]) for name in names])
    assert found.tobytes() == rows.tobytes()


@given(tables(rows=(3, 30)), recipes(), seeds)
def test_batch_size_and_n_jobs_change_no_byte(X, params, seed):
    rows = fitted(X, **params).sample(60, seed)
    other = fitted(X, **params, n_jobs=2)
    assert other.sample(60, seed).tobytes() == rows.tobytes()
    batches = other.iter_samples(60, 1 + seed % 30, seed)
    assert np.concatenate(list(batches)).tobytes() == rows.tobytes()


# Few distinct values give ties, which depend on the rounding of sums.
@given(
    tables(rows=(20, 30), columns=(2, 6), kinds=("normal", "skewed")),
    recipes(lines=True),
    seeds,
)
def test_results_do_not_depend_on_the_order_of_columns(X, params, seed):
    assume(len(np.unique(X, axis=0)) == len(X))
    order = np.random.default_rng(seed).permutation(X.shape[1])
    rows = fitted(X, **params).sample(20, seed)
    other = fitted(X[:, order], **params).sample(20, seed)
    gap = np.abs(other - rows[:, order]) / ranges(X[:, order])
    assert gap.max() < 1e-9


# Integers stay integers only in their original units.
@given(tables(kinds=("normal", "skewed", "empty")), recipes(), seeds)
def test_results_do_not_depend_on_the_units_of_columns(X, params, seed):
    params |= {"equalities": None, "value_support": None}
    # Powers of two cause no rounding; inequalities are found in the given units.
    units = 2.0 ** int(np.random.default_rng(seed).integers(-20, 20))
    rows = fitted(X, **params).sample(20, seed)
    other = fitted(X * units, **params).sample(20, seed) / units
    assert_allclose(other / ranges(X), rows / ranges(X), atol=1e-9)


# --- all of it at once ------------------------------------------------------------


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_no_guarantee_is_violated_silently(start):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    trials = [fuzz.trial(seed) for seed in range(start, start + 10)]
    outcomes = Counter(trial["outcome"] for trial in trials)
    bad = [t for t in trials if t["outcome"] in ("silent", "error")]
    assert not bad
    assert outcomes["kept"] >= 5
