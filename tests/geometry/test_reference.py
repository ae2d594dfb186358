"""End-to-end comparison of the package with a direct implementation of the paper.

The reference implementation uses no code of the package, only a dense zeta matrix and
SciPy's BFGS.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import xlogy

from sklearn_pnl import BackwardProjector, ManyBodyProjector
from sklearn_pnl.geometry import (
    Poset,
    TensorPoset,
    chain_poset,
    eta_from_prob,
    theta_from_prob,
    tree_poset,
)

# --- the reference: rows are flat, element 0 is the bottom --------------------------


def zeta_matrix(leq):
    """Return Z with ``Z[x, y] = 1`` if ``y <= x``: log p = Z theta, eta = Z' p."""
    return leq.T.astype(float)


def theta_of(p, Z):
    return np.linalg.solve(Z, np.log(p))


def eta_of(p, Z):
    return Z.T @ p


def kl(p, q):
    return np.sum(xlogy(p, p / q) - p + q)


def mixed(target, reference, matched, Z):
    """Compute by BFGS eta of the target on a set, and theta of the reference off it."""
    columns, energy = Z[:, matched], np.log(reference)
    # BFGS converges faster with unit covariance under the uniform distribution.
    factor = np.linalg.cholesky(np.atleast_2d(np.cov(columns.T, bias=True)))
    columns = np.linalg.solve(factor, (columns - columns.mean(axis=0)).T).T
    wanted, start = columns.T @ target, np.zeros(columns.shape[1])

    def objective(v):
        log_q = energy + columns @ v
        psi = np.logaddexp.reduce(log_q)
        return psi - v @ wanted, columns.T @ np.exp(log_q - psi) - wanted

    for _ in range(5):
        found = minimize(objective, start, jac=True, method="BFGS", tol=1e-10)
        start = found.x
        if found.success:
            break
    log_q = energy + columns @ start
    return np.exp(log_q - np.logaddexp.reduce(log_q))


def forward(p, low, Z):
    """Project on M_ell of equation 1, where theta is 0 except at the low elements."""
    return mixed(p, np.full(len(p), 1 / len(p)), low, Z) if low.any() else p


def sub_manifold(neighbors, Z):
    """Return a point of M*_ell(N) of equation 2: theta is the neighbours' mean."""
    energy = Z @ np.mean([theta_of(p, Z) for p in neighbors], axis=0)
    return np.exp(energy - np.logaddexp.reduce(energy))


def backward(w, bases, rows, k, low, Z, manifold):
    """Decode by Algorithm 1: project onto the submanifold of the neighbours."""
    N = np.argsort([kl(w, base) for base in bases], kind="stable")[:k]
    p = rows[N] / rows[N].sum(axis=1, keepdims=True)
    mean, high = p.mean(axis=0), ~low & (np.arange(len(w)) > 0)
    if manifold == "theta":
        q = mixed(w, sub_manifold(p, Z), high, Z)
    elif manifold == "fiber":
        q = mixed(w, mean, low, Z)
    else:
        q = mixed(mean, w, low, Z) if manifold == "eta" else 0.02 * w + 0.98 * mean
    # phi^-1 multiplies by the mean mass of the neighbours (Remark 4.3).
    return q * rows[N].sum(axis=1).mean()


def augment(X, offset, k, low, Z, parents, noise, manifolds):
    """Sample by Algorithm 2: encode rows, draw from a kernel density, and decode."""
    rows = X + offset
    # The encoder applies phi, which divides by the sum (Example 4.1), and projects.
    bases = [forward(row / row.sum(), low, Z) for row in rows]
    codes = np.array([theta_of(base, Z)[low] for base in bases])
    energies = (codes[parents] + noise) @ Z[:, low].T
    drawn = np.exp(energies - np.logaddexp.reduce(energies, axis=1, keepdims=True))
    new = [[backward(w, bases, rows, k, low, Z, manifold) - offset for w in drawn]
           for manifold in manifolds]  # fmt: skip
    return codes, np.array(new)


# --- cases ----------------------------------------------------------------------------


def tensor_case(shape, order):
    cells = np.indices(shape).reshape(len(shape), -1).T
    leq = (cells[:, None] <= cells).all(axis=2)
    return TensorPoset(shape), leq, (cells > 0).sum(axis=1) <= order


def poset_case(poset, rng):
    """Draw the free elements, because in chains and trees all have order 1."""
    leq = poset.zeta_matrix.toarray().T > 0
    return poset, leq, rng.random(poset.n_elements) < 0.5


def random_poset(rng, n):
    pairs = [(0, x) for x in range(1, n)]
    pairs += [(a, b) for b in range(n) for a in range(1, b) if rng.random() < 0.25]
    return Poset.from_relations(n, pairs)


CASES = {
    "2 modes": lambda rng: tensor_case((3, 4), 1),
    "3 modes": lambda rng: tensor_case((2, 3, 3), 2),
    "4 modes": lambda rng: tensor_case((2, 2, 3, 2), 2),
    "chain": lambda rng: poset_case(chain_poset(9), rng),
    "tree": lambda rng: poset_case(
        tree_poset([-1, *(int(rng.integers(x)) for x in range(1, 12))]), rng
    ),
    "random": lambda rng: poset_case(random_poset(rng, 11), rng),
}


def rows_of(rng, shape, empty):
    """Draw rows of different masses; with ``empty``, 20% of the cells are 0."""
    X = rng.gamma(1.0, size=(7, *shape)) * rng.uniform(1, 20, (7, *(1,) * len(shape)))
    return np.where(rng.random(X.shape) < 0.2, 0.0, X) if empty else X + 0.1


@pytest.mark.parametrize("empty", [False, True], ids=["full", "empty cells"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(10))
def test_package_agrees_with_the_reference_implementation(seed, case, empty):
    rng = np.random.default_rng(seed)
    poset, leq, low = CASES[case](rng)
    low[0], low[-1] = False, True
    X, offset, k = rows_of(rng, poset.shape, empty), 1e-2, 3
    parents, noise = rng.integers(7, size=3), rng.normal(0, 0.3, (3, low.sum()))
    names, Z = ["theta", "fiber", "eta", "mixture"], zeta_matrix(leq)
    rows, mass = X.reshape(7, -1), X.sum() / 7
    codes, wanted = augment(rows, offset, k, low, Z, parents, noise, names)
    base = {"base": low.reshape(poset.shape), "poset": poset}
    forward_projector = ManyBodyProjector(**base, offset=offset, tol=1e-11)
    for manifold, expected in zip(names, wanted, strict=True):
        projector = BackwardProjector(
            forward_projector, local_manifold=manifold, k_neighbors=k
        ).fit(X)
        assert_allclose(projector.codes_, codes, atol=1e-5)
        new = projector.inverse_transform(projector.codes_[parents] + noise)
        assert_allclose(new.reshape(3, -1) / mass, expected / mass, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_coordinates_are_those_of_a_dense_zeta_matrix(case):
    rng = np.random.default_rng(0)
    poset, leq, _ = CASES[case](rng)
    p, Z = rng.dirichlet(np.ones(poset.n_elements)), zeta_matrix(leq)
    shaped = p.reshape(poset.shape)
    assert_allclose(theta_from_prob(shaped, poset).ravel(), theta_of(p, Z), atol=1e-10)
    assert_allclose(eta_from_prob(shaped, poset).ravel(), eta_of(p, Z), atol=1e-14)
