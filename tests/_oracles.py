"""Slow oracles, which follow the definitions and use no fast transform.

A partial order is a dense boolean matrix ``leq`` with ``leq[x, y]`` true if ``x <= y``;
arrays are flat rows of shape ``(..., D)``.
"""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from sklearn_pnl.geometry import Poset

# --- partial orders -----------------------------------------------------------


def closure_slow(n_elements, pairs):
    """Compute the reflexive and transitive closure by Warshall's algorithm."""
    leq = np.eye(n_elements, dtype=bool)
    for a, b in pairs:
        leq[a, b] = True
    for k in range(n_elements):
        leq |= leq[:, [k]] & leq[[k], :]
    return leq


def tensor_leq(shape):
    """Return the componentwise order of the cells of a tensor, in C order."""
    cells = np.indices(shape).reshape(len(shape), -1).T
    return np.all(cells[:, None, :] <= cells[None, :, :], axis=2)


def tensor_relations(shape):
    """Return cover relations of the cells of a tensor: one step along one mode."""
    cells = np.arange(np.prod(shape)).reshape(shape)
    return [
        pair
        for mode in range(len(shape))
        for pair in zip(
            cells.take(range(shape[mode] - 1), axis=mode).ravel().tolist(),
            cells.take(range(1, shape[mode]), axis=mode).ravel().tolist(),
            strict=True,
        )
    ]


def random_relations(rng, n_elements, density=0.1):
    """Draw relations of a random poset with a bottom, under random labels.

    The relations are neither covers only nor closed, and the bottom is usually not
    element 0, so that no test passes because its input is sorted.
    """
    label = rng.permutation(n_elements)
    pairs = [(0, b) for b in range(1, n_elements)]
    pairs += [
        p for p in combinations(range(1, n_elements), 2) if rng.random() < density
    ]
    rng.shuffle(pairs)
    return [(int(label[a]), int(label[b])) for a, b in pairs]


def random_poset(rng, n_elements, density=0.1):
    """Draw a random poset and its order relation."""
    pairs = random_relations(rng, n_elements, density)
    return Poset.from_relations(n_elements, pairs), closure_slow(n_elements, pairs)


def bottom_slow(leq):
    """Find the element below all other elements."""
    return int(np.flatnonzero(leq.all(axis=1))[0])


def order_slow(leq):
    """Count the atoms below each element."""
    atoms = leq.sum(axis=0) == 2
    return (leq & atoms[:, None]).sum(axis=0)


def is_down_set_slow(leq, mask):
    return all(
        mask[x] for y in np.flatnonzero(mask) for x in range(len(leq)) if leq[x, y]
    )


def is_up_set_slow(leq, mask):
    return all(
        mask[y] for x in np.flatnonzero(mask) for y in range(len(leq)) if leq[x, y]
    )


def random_up_set(rng, leq, n_generators):
    """Return all elements above a few random elements other than the bottom."""
    candidates = np.delete(np.arange(len(leq)), bottom_slow(leq))
    return leq[rng.choice(candidates, n_generators)].any(axis=0)


def random_down_set(rng, leq, n_generators):
    """Return all elements below a few random elements."""
    return leq[:, rng.choice(len(leq), n_generators)].any(axis=1)


# --- coordinates ----------------------------------------------------------------


def zeta_slow(theta, leq):
    """Compute ``f(x) = sum over y <= x of theta(y)``."""
    return theta @ leq.astype(float)


def eta_slow(p, leq):
    """Compute ``eta(x) = sum over y >= x of p(y)``."""
    return p @ leq.T.astype(float)


def theta_slow(p, leq):
    """Compute natural coordinates by a dense solve with the zeta matrix."""
    log_p = np.log(np.atleast_2d(p))
    return np.linalg.solve(leq.T.astype(float), log_p.T).T.reshape(np.shape(p))


def fisher_slow(p, leq, elements):
    """Compute the covariance under ``p`` of the indicators "above x", pair by pair."""
    above = [leq[x].astype(float) for x in elements]
    return np.array([[p @ (f * g) - (p @ f) * (p @ g) for g in above] for f in above])


# --- distributions --------------------------------------------------------------


def random_prob(rng, shape, n_rows=None, concentration=1.0):
    """Draw Dirichlet rows; a small concentration gives many cells near zero."""
    lead = () if n_rows is None else (n_rows,)
    p = rng.gamma(concentration, size=(*lead, int(np.prod(shape)))) + 1e-12
    p /= p.sum(axis=-1, keepdims=True)
    return p.reshape(*lead, *shape)


def empty_cells(rng, p, share):
    """Set about a share of the cells of a distribution to zero."""
    q = np.where(rng.random(p.shape) < share, 0.0, p)
    return q / q.sum()


def sparse_image(rng):
    """Draw a 28 x 28 image on 0 to 255, mostly empty: strokes and stray pixels."""
    image = np.zeros((28, 28))
    row, column = 14, 14
    for _ in range(120):
        row, column = np.clip([row, column] + rng.integers(-1, 2, 2), 5, 22)
        image[row, column] = rng.integers(40, 256)
    return image


def lifted_image(rng, offset=1e-5):
    """Convert :func:`sparse_image` to a distribution on its prime factors."""
    tensor = sparse_image(rng).reshape(7, 2, 2, 7, 2, 2) + offset
    return tensor / tensor.sum()


# --- projections ----------------------------------------------------------------


def mixed_projection_slow(target, reference, matched, leq):
    """Compute the distribution with given eta on a set, and given theta off it.

    It minimises ``psi(theta) - <theta, eta*>`` over ``theta`` on the set: SciPy's
    L-BFGS comes near, then Newton steps with the dense Hessian follow. They are halved
    until they lower the gradient (near the minimum, differences of ``psi`` are rounding
    errors).
    """
    functions = leq[np.flatnonzero(matched)].astype(float)
    log_reference = np.log(reference)
    wanted = functions @ target
    if not len(functions):
        return reference / reference.sum()

    def prob(theta):
        energy = log_reference + theta @ functions
        return np.exp(energy - logsumexp(energy))

    def objective(theta):
        return logsumexp(log_reference + theta @ functions) - theta @ wanted

    def gradient(theta):
        return functions @ prob(theta) - wanted

    def newton_step(theta):
        q = prob(theta)
        mean = functions @ q
        hessian = (functions * q) @ functions.T - np.outer(mean, mean)
        return np.linalg.lstsq(hessian, -gradient(theta), rcond=None)[0]

    theta = minimize(
        objective,
        np.zeros(len(functions)),
        jac=gradient,
        method="L-BFGS-B",
        options={"gtol": 1e-6, "ftol": 0, "maxiter": 2000},
    ).x
    for _ in range(100):
        step, before = newton_step(theta), np.linalg.norm(gradient(theta))
        trials = (theta + step * 0.5**k for k in range(20))
        better = (t for t in trials if np.linalg.norm(gradient(t)) < before)
        following = next(better, None)
        if following is None:
            break
        theta = following
    residual = np.abs(gradient(theta)).max()
    assert residual < 1e-12, f"the oracle itself failed: residual {residual:.1e}"
    return prob(theta)


def interaction_cells_slow(shape, mode_sets):
    """Find the cells whose non-zero modes lie inside one of the sets."""
    return [
        i
        for i, cell in enumerate(np.ndindex(*shape))
        if any(cell)
        and any({k for k, c in enumerate(cell) if c} <= set(s) for s in mode_sets)
    ]


def up_to_order(n_modes, order):
    """List all sets of ``order`` modes."""
    return list(combinations(range(n_modes), order))


def indicator_design(shape, elements):
    """Build columns of a log-linear model with corner-point constraints.

    The column of a cell is 1 on the cells that agree with it in all its non-zero
    indices: another basis of the same functions as the zeta columns.
    """
    cells = np.indices(shape).reshape(len(shape), -1).T
    chosen = cells[elements]
    agree = (chosen[None] == 0) | (cells[:, None, :] == chosen[None])
    return agree.all(axis=2).astype(float)


def finite_difference(f, x, step=1e-6):
    """Compute central differences of ``f`` along each coordinate of ``x``."""
    eye = np.eye(len(x)) * step
    return np.stack([(f(x + e) - f(x - e)) / (2 * step) for e in eye], axis=-1)
