"""Selection of interactions, against an exhaustive search and published tables."""

from itertools import chain, combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_textbook_tables import DRUGS, HAIR_EYE_SEX, TITANIC, UCB

from sklearn_pnl import LogLinearModel
from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    goodness_of_fit,
    select_interactions,
)

SHAPE = (3, 3, 3, 3)
CHAIN = [(0, 1), (1, 2), (2, 3)]
BLOCKS = [(0, 1), (2, 3)]


def subsets(modes):
    sizes = range(1, len(modes) + 1)
    return {s for size in sizes for s in combinations(sorted(modes), size)}


def maximal(sets):
    return sorted(s for s in sets if not any(set(s) < set(other) for other in sets))


def table(model, seed, shape=SHAPE, total=2000):
    """Draw counts of a model whose effects have a standard deviation of 0.6."""
    rng, log_p = np.random.default_rng(seed), np.zeros(shape)
    for modes in sorted(set(chain(*map(subsets, model)))):
        lengths = [n if k in modes else 1 for k, n in enumerate(shape)]
        effect = rng.normal(scale=0.6, size=lengths)
        for k in modes:
            effect -= effect.mean(axis=k, keepdims=True)
        log_p = log_p + effect
    p = np.exp(log_p).ravel()
    return rng.multinomial(total, p / p.sum()).reshape(shape)


def hierarchical_models(n_modes, max_order):
    """All families of sets that contain the single modes and all subsets."""
    sizes = range(2, max_order + 1)
    sets = [s for size in sizes for s in combinations(range(n_modes), size)]
    for chosen in product([False, True], repeat=len(sets)):
        model = {s for s, is_in in zip(sets, chosen, strict=True) if is_in}
        if all(t in model for s in model for t in subsets(s) if len(t) > 1):
            yield maximal(model | {(k,) for k in range(n_modes)})


def criterion_of(rows, model, criterion="bic", reference=None):
    poset = TensorPoset(rows.shape[1:])
    fits = (goodness_of_fit(r, poset, model, reference=reference) for r in rows)
    return sum(getattr(fit, criterion) for fit in fits)


def exhaustive(rows, max_order, criterion="bic", reference=None):
    models = list(hierarchical_models(rows.ndim - 1, max_order))
    values = [criterion_of(rows, m, criterion, reference) for m in models]
    return models[np.argmin(values)], min(values)


@pytest.mark.parametrize("model", [CHAIN, BLOCKS], ids=str)
def test_the_model_of_the_counts_is_found(model):
    found = [
        select_interactions(table(model, seed)[None]).interactions for seed in range(20)
    ]
    assert sum(each == model for each in found) >= 16


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("model", [CHAIN, [(0, 1), (0, 2), (1, 2), (3,)]], ids=str)
def test_the_search_agrees_with_an_exhaustive_search_of_pairs(model, seed):
    rows = table(model, seed, (2, 3, 2, 2), total=600)[None]
    interactions, value = exhaustive(rows, 2)
    found = select_interactions(rows)
    assert found.interactions == interactions
    assert_allclose(found.steps[-1].criterion, value)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("model", [[(0, 1, 2), (2, 3)], [*CHAIN, (0, 3)]], ids=str)
def test_the_search_agrees_with_an_exhaustive_search_of_triples(model, seed):
    rows = table(model, seed, (2, 2, 3, 2))[None]
    interactions, value = exhaustive(rows, 3)
    found = select_interactions(rows, 3)
    assert found.interactions == interactions
    assert_allclose(found.steps[-1].criterion, value)


@pytest.mark.parametrize("criterion", ["bic", "aic"])
@pytest.mark.parametrize("seed", [0, 1])
def test_rows_share_interactions_and_have_their_own_parameters(seed, criterion):
    shape, totals = (3, 2, 3), (300, 2000, 900)
    model = [(0, 1), (1, 2)]
    rows = [table(model, (seed, k), shape, n) for k, n in enumerate(totals)]
    rows = np.stack(rows)
    interactions, value = exhaustive(rows, 3, criterion)
    found = select_interactions(rows, 3, criterion)
    assert found.interactions == interactions
    assert_allclose(found.steps[-1].criterion, value)


@pytest.mark.parametrize("seed", [0, 1])
def test_structural_zeros_are_no_interactions(seed):
    can_occur = np.ones((4, 4, 2), bool)
    can_occur[range(4), range(4)] = False
    rng = np.random.default_rng(seed)
    p = np.einsum("i,j,k->ijk", *(rng.uniform(1, 3, n) for n in (4, 4, 2))) * can_occur
    counts = rng.multinomial(2000, p.ravel() / p.sum()).reshape(1, 4, 4, 2)
    assert (0, 1) in select_interactions(counts).interactions
    found = select_interactions(counts, reference=can_occur)
    assert found.interactions == exhaustive(counts, 2, reference=can_occur)[0]
    assert found.interactions == [(0,), (1,), (2,)]
    model = LogLinearModel("bic", reference=can_occur).fit(counts)
    assert model.order_ == 1


def test_the_path_has_the_deviances_of_the_textbook():
    """Agresti, "Categorical Data Analysis": G^2 of the models of the table of drugs.

    The models (A, C, M), (A, CM), (AC, CM) and (AC, AM, CM) have the deviances 1286.0,
    534.2, 92.0 and 0.4.
    """
    found = select_interactions(DRUGS[None])
    assert [step.interaction for step in found.steps] == [(), (1, 2), (0, 1), (0, 2)]
    deviances = [2 * DRUGS.sum() * step.kl for step in found.steps]
    assert_allclose(deviances, [1286.0, 534.2, 92.0, 0.4], atol=0.05)


@pytest.mark.parametrize("counts", [DRUGS, HAIR_EYE_SEX, UCB, TITANIC])
@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_published_tables_agree_with_an_exhaustive_search(counts, criterion):
    found = select_interactions(counts[None], 3, criterion)
    interactions, value = exhaustive(counts[None], 3, criterion)
    assert found.interactions == interactions
    assert_allclose(found.steps[-1].criterion, value)


def test_steps_describe_the_models_of_the_search():
    rows = table([(0, 1, 2), (2, 3)], 1)[None]
    found = select_interactions(rows, 3)
    sets = {(0,), (1,), (2,), (3,)}
    values = []
    for step in found.steps:
        if step.interaction:
            new = subsets(step.interaction)
            sets = sets | new if step.is_added else sets - {step.interaction}
        fit = goodness_of_fit(rows[0], TensorPoset(SHAPE), maximal(sets))
        assert_allclose(step.criterion, fit.bic)
        assert_allclose(step.kl, fit.deviance / 2 / fit.total, atol=1e-8)
        values.append(step.criterion)
    assert (np.diff(values) < 0).all()
    assert found.interactions == maximal(sets)


@pytest.mark.parametrize("shape", [(5,), (1, 4), (1, 1), (3, 1, 4)])
def test_tables_of_few_modes(shape):
    counts = np.random.default_rng(0).poisson(30, size=(1, *shape))
    found = select_interactions(counts)
    assert found.interactions == [(k,) for k in range(len(shape))]
    model = LogLinearModel("bic").fit(counts)
    plain = LogLinearModel(1).fit(counts)
    assert_allclose(model.expected_, plain.expected_)


def test_max_order_limits_the_sets():
    rows = table([(0, 1, 2), (2, 3)], 0, total=20_000)[None]
    singles = [(k,) for k in range(4)]
    assert select_interactions(rows, 1).interactions == singles
    for max_order in (2, 3, 9):
        found = select_interactions(rows, max_order).interactions
        assert max(map(len, found)) == min(max_order, 3)


@pytest.mark.parametrize(
    "X, params, message",
    [
        ([[1, 2], [3, -4]], {}, "X"),
        ([[1, 2], [0, 0]], {}, "sum of row 1 of X is 0"),
        ([1, 2], {}, r"shape \(n, \*shape\); got \(2,\)"),
        ([[1, np.nan]], {}, "X"),
        ([[1, 2]], {"max_order": 0}, "max_order must be an integer.*got 0"),
        ([[1, 2]], {"max_order": 1.5}, "max_order must be an integer.*got 1.5"),
        ([[1, 2]], {"criterion": "cv"}, "criterion must be 'bic' or 'aic'; got 'cv'"),
        ([[1, 2]], {"reference": [1, 0]}, "reference must be positive"),
    ],
)
def test_invalid_input_is_named(X, params, message):
    with pytest.raises(ValueError, match=message):
        select_interactions(X, **params)


def test_a_search_that_does_not_converge_raises_an_error():
    rows = table([(0, 1), (0, 2), (1, 2)], 0)[None]
    with pytest.raises(RuntimeError, match=r"did not converge.*tol=1e-15"):
        select_interactions(rows, tol=1e-15, max_iter=1)


def test_the_estimator_fits_the_selected_model():
    for seed in range(3):
        counts = table(BLOCKS, seed)
        model = LogLinearModel("bic").fit(counts[None])
        found = select_interactions(counts[None])
        assert model.order_ == found.interactions
        assert_allclose(model.statistics_.bic, found.steps[-1].criterion)
        # Rows are summed, and may be flat.
        flat = LogLinearModel("bic", poset=TensorPoset(SHAPE))
        parts = np.stack([counts // 2, counts - counts // 2]).reshape(2, -1)
        assert flat.fit(parts).order_ == model.order_


def test_the_estimator_selects_modes_of_tensors_only():
    counts = np.array([[4, 5, 6, 7]])
    tree = Poset.from_relations(4, [(0, 1), (0, 2), (2, 3)])
    with pytest.raises(ValueError, match=r"order='bic' selects sets of modes"):
        LogLinearModel("bic", poset=tree).fit(counts)
    with pytest.raises(ValueError, match="cannot be combined with base"):
        LogLinearModel("bic", base=[1, 2]).fit(counts)
    with pytest.raises(ValueError, match="order"):
        LogLinearModel("aic").fit(counts)
