"""Tilts by functions of single modes: as a matrix of two groups, and as a tensor."""

import numpy as np
import pytest
from _oracles import finite_difference, random_prob
from numpy.testing import assert_allclose

from sklearn_pnl.geometry import (
    TensorPoset,
    interaction_mask,
    marginals,
    mixed_projection,
    mode_tilts,
    solvers,
)

SEEDS = [0, 1, 2]
CONCENTRATIONS = [1.0, 0.3]


def test_marginals_of_modes_by_either_way(monkeypatch):
    rng = np.random.default_rng(0)
    shape, modes = (3, 2, 4), [0, 2]
    x = rng.gamma(1.0, size=(5, 24))
    products = marginals.mode_marginals(x, shape, modes)
    monkeypatch.setattr(marginals, "_LARGEST_INDICATORS", 0)
    sums = marginals.mode_marginals(x, shape, modes)
    for mode in modes:
        assert_allclose(products[mode], sums[mode], rtol=1e-12)
        others = tuple(k + 1 for k in range(3) if k != mode)
        assert_allclose(sums[mode], x.reshape(5, *shape).sum(axis=others), rtol=1e-12)


SHAPES_AND_MODES = [
    ((4, 3, 5), [0, 1, 2]),
    ((2, 1, 7, 3), [0, 1, 2, 3]),
    ((3, 4, 2), [1]),
    ((3, 4, 2), [0, 2]),
    ((6,), [0]),
    ((5, 2), [0]),
]


@pytest.mark.parametrize(("shape", "modes"), SHAPES_AND_MODES)
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_single_modes_as_a_matrix_or_as_a_tensor(
    seed, concentration, shape, modes, monkeypatch
):
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    target, start = random_prob(rng, (size,), 12, concentration).reshape(2, 6, *shape)
    poset, family = TensorPoset(shape), [(mode,) for mode in modes]
    found = []
    for fewest in (1, size + 1):
        monkeypatch.setattr(solvers, "_MATRIX_FROM", fewest)
        matched = interaction_mask(shape, family)
        found.append(mixed_projection(target, start, matched, poset, tol=1e-10))
        assert found[-1].converged.all()
    assert_allclose(found[0].prob, found[1].prob, rtol=1e-8)


@pytest.mark.parametrize(("shape", "modes"), SHAPES_AND_MODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_raking_single_modes_as_a_matrix_or_as_a_tensor(seed, shape, modes):
    rng = np.random.default_rng(seed)
    target, start = random_prob(rng, (int(np.prod(shape)),), 8, 1.0).reshape(2, 4, -1)
    target[:, 0] = 0
    start[:2, 0] = 0
    one_by_one = marginals.rake(start, target, shape, [(mode,) for mode in modes], 3)
    in_groups = mode_tilts.rake_modes(start, target, shape, modes, 3)
    assert_allclose(in_groups, one_by_one, rtol=1e-10)


@pytest.mark.parametrize(("shape", "modes"), SHAPES_AND_MODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_of_a_tilt_by_single_modes(seed, shape, modes):
    rng = np.random.default_rng(seed)
    size, one = int(np.prod(shape)), np.array([0])
    target, start = random_prob(rng, (size,), 2, 1.0).reshape(2, 1, size)
    references = {mode: int(rng.integers(shape[mode])) for mode in modes}
    problem = mode_tilts.ModeTilt(shape, references, start, target)

    def value(x):
        return problem.value(x[None], one)[0][0]

    def gradient(x):
        return problem.gradient(problem.value(x[None], one)[1], one)[0][0]

    x = 0.3 * rng.normal(size=sum(shape[mode] - 1 for mode in modes))
    assert_allclose(gradient(x), finite_difference(value, x, 1e-5), atol=1e-8)
    hessian = finite_difference(gradient, x, 1e-5)
    point = problem.value(x[None], one)[1]
    assert_allclose(problem.hessian(point, one)[0], hessian, atol=1e-8)
    # The residual is that of eta on the cells of the modes.
    poset = TensorPoset(shape)
    difference = problem.distributions(point) - target
    eta = poset.eta(difference.reshape(1, *shape))[0]
    matched = interaction_mask(shape, [(mode,) for mode in modes])
    residual = problem.gradient(point, one)[1][0]
    assert_allclose(residual, np.abs(eta[matched]).max(), rtol=1e-10)
