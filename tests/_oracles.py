"""Slow oracles: everything here follows the definition, and no fast transform is used.

A partial order is a dense boolean matrix ``leq`` with ``leq[x, y]`` true if
``x <= y``; arrays are flat rows of shape ``(..., D)``.
"""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from sklearn_pnl.geometry import Poset

# --- partial orders -----------------------------------------------------------


def closure_slow(n_elements, pairs):
    """Reflexive and transitive closure by Warshall's algorithm."""
    leq = np.eye(n_elements, dtype=bool)
    for a, b in pairs:
        leq[a, b] = True
    for k in range(n_elements):
        leq |= leq[:, [k]] & leq[[k], :]
    return leq


def tensor_leq(shape):
    """Componentwise order of the cells of a tensor, in C order."""
    cells = np.indices(shape).reshape(len(shape), -1).T
    return np.all(cells[:, None, :] <= cells[None, :, :], axis=2)


def tensor_relations(shape):
    """Cover relations of the cells of a tensor: one step along one mode."""
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
    """Relations of a random poset with a bottom, under random labels.

    They are neither covers only nor closed, and the bottom is not element 0 as a
    rule, so that no test passes by the accident of a sorted input.
    """
    label = rng.permutation(n_elements)
    pairs = [(0, b) for b in range(1, n_elements)]
    pairs += [
        p for p in combinations(range(1, n_elements), 2) if rng.random() < density
    ]
    rng.shuffle(pairs)
    return [(int(label[a]), int(label[b])) for a, b in pairs]


def random_poset(rng, n_elements, density=0.1):
    """A random poset and its order relation."""
    pairs = random_relations(rng, n_elements, density)
    return Poset.from_relations(n_elements, pairs), closure_slow(n_elements, pairs)


def bottom_slow(leq):
    """The element below all others."""
    return int(np.flatnonzero(leq.all(axis=1))[0])


def order_slow(leq):
    """For each element, the number of atoms below it."""
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
    """Everything above a few random elements (the bottom is not one of them)."""
    candidates = np.delete(np.arange(len(leq)), bottom_slow(leq))
    return leq[rng.choice(candidates, n_generators)].any(axis=0)


def random_down_set(rng, leq, n_generators):
    """Everything below a few random elements."""
    return leq[:, rng.choice(len(leq), n_generators)].any(axis=1)


# --- coordinates ----------------------------------------------------------------


def zeta_slow(theta, leq):
    """``f(x) = sum over y <= x of theta(y)``."""
    return theta @ leq.astype(float)


def eta_slow(p, leq):
    """``eta(x) = sum over y >= x of p(y)``."""
    return p @ leq.T.astype(float)


def theta_slow(p, leq):
    """Natural coordinates by a dense solve with the zeta matrix."""
    log_p = np.log(np.atleast_2d(p))
    return np.linalg.solve(leq.T.astype(float), log_p.T).T.reshape(np.shape(p))


def fisher_slow(p, leq, elements):
    """Covariance under ``p`` of the indicators "above x", pair by pair."""
    above = [leq[x].astype(float) for x in elements]
    return np.array([[p @ (f * g) - (p @ f) * (p @ g) for g in above] for f in above])


# --- distributions --------------------------------------------------------------


def random_prob(rng, shape, n_rows=None, concentration=1.0):
    """Dirichlet rows; a small concentration gives many cells near zero."""
    lead = () if n_rows is None else (n_rows,)
    p = rng.gamma(concentration, size=(*lead, int(np.prod(shape)))) + 1e-12
    p /= p.sum(axis=-1, keepdims=True)
    return p.reshape(*lead, *shape)


def empty_cells(rng, p, share):
    """The same distribution with about that share of its cells set to zero."""
    q = np.where(rng.random(p.shape) < share, 0.0, p)
    return q / q.sum()


def sparse_image(rng):
    """A 28 x 28 image on 0..255, mostly empty: strokes and some stray pixels."""
    image = np.zeros((28, 28))
    row, column = 14, 14
    for _ in range(120):
        row, column = np.clip([row, column] + rng.integers(-1, 2, 2), 5, 22)
        image[row, column] = rng.integers(40, 256)
    return image


def lifted_image(rng, offset=1e-5):
    """:func:`sparse_image` as a distribution on its prime factors, zeros lifted."""
    tensor = sparse_image(rng).reshape(7, 2, 2, 7, 2, 2) + offset
    return tensor / tensor.sum()


# --- projections ----------------------------------------------------------------


def mixed_projection_slow(target, reference, matched, leq):
    """Distribution with the eta of ``target`` on a set, theta of ``reference`` off it.

    Minimises ``psi(theta) - <theta, eta*>`` over ``theta`` on the set: SciPy's
    L-BFGS to come near, then Newton steps with the dense Hessian, halved until they
    lower the gradient (near the minimum, differences of ``psi`` are rounding errors).
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
    """Flat indices of the cells whose non-zero modes lie inside one of the sets."""
    return [
        i
        for i, cell in enumerate(np.ndindex(*shape))
        if any(cell)
        and any({k for k, c in enumerate(cell) if c} <= set(s) for s in mode_sets)
    ]


def up_to_order(n_modes, order):
    """All mode sets of ``order`` modes, as a list."""
    return list(combinations(range(n_modes), order))


def indicator_design(shape, elements):
    """Columns of a log-linear model with corner-point constraints.

    The column of a cell is 1 on the cells that agree with it in all its non-zero
    indices: another basis of the same functions as the zeta columns.
    """
    cells = np.indices(shape).reshape(len(shape), -1).T
    chosen = cells[elements]
    agree = (chosen[None] == 0) | (cells[:, None, :] == chosen[None])
    return agree.all(axis=2).astype(float)


def finite_difference(f, x, step=1e-6):
    """Central differences of ``f`` along each coordinate of ``x``, last axis."""
    eye = np.eye(len(x)) * step
    return np.stack([(f(x + e) - f(x - e)) / (2 * step) for e in eye], axis=-1)
