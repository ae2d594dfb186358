r"""The two dual coordinate systems of a log-linear model, and its Fisher metric.

The positive distributions on a finite poset are a dually flat manifold (section 3.1 and
appendix A.1 of the paper; Amari 2016, chapter 2). Two systems of coordinates are flat:
the natural ones, ``theta``, in which e-geodesics are straight, and the expectation
ones, ``eta``, in which m-geodesics are. On a poset they are

.. math:: \log p(x) = \sum_{y \le x} \theta(y), \qquad
          \eta(x) = \sum_{y \ge x} p(y)

(section 3.2; Sugiyama, Nakahara and Tsuda 2017): ``theta`` is the Moebius transform of
``log p``, ``eta`` the adjoint of the zeta transform applied to ``p``. theta at the
bottom is ``-psi``, the log-partition, eta there is 1; a positive measure that is not
normalised has its mass there (the footnote of section 4.1). Legendre duality ties them:

.. math:: \eta = \nabla \psi(\theta), \qquad
          G(x, y) = \frac{\partial \eta(x)}{\partial \theta(y)}
          = \sum_{z \ge x, z \ge y} p(z) - \eta(x) \eta(y) .

Linear constraints on theta give an e-flat sub-manifold, on eta an m-flat one (Remark
3.1): :mod:`sklearn_pnl.geometry.many_body` projects on both.

Convention:
    theta = theta_from_prob(p, poset)      p = prob_from_theta(theta, poset)
    eta   = eta_from_prob(p, poset)        p = prob_from_eta(eta, poset)

All arrays have shape ``(..., *poset.shape)``; rows are independent of each other. The
coordinate system is in a function's name, never in a flag.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.arrays import exp_over, is_foreign, namespace, row_sums, take, to_host
from .posets.elements import (
    as_doubles,
    as_floats,
    flat_elements,
    flat_rows,
    leading_shape,
    together,
)
from .posets.protocol import PosetProtocol

__all__ = [
    "eta_from_prob",
    "fisher_information",
    "log_partition",
    "measure_from_theta",
    "prob_from_eta",
    "prob_from_theta",
    "theta_from_prob",
]


def theta_from_prob(p: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute natural coordinates: the Moebius transform of ``log p``.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Positive. If it does not sum to 1 it is read as a positive measure, and
        ``theta(bottom)`` carries its mass.
    poset : Poset or TensorPoset

    Returns
    -------
    theta : ndarray of the same shape
        With the bottom; for a distribution ``theta(bottom) = -psi``.

    Raises
    ------
    ValueError
        If a cell is not positive: its ``log`` would be infinite.

    See Also
    --------
    prob_from_theta : From natural coordinates to a distribution.
    eta_from_prob : Expectation coordinates.
    log_partition : The convex function whose gradient is eta.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, theta_from_prob
    >>> independent = np.outer([0.5, 0.5], [0.2, 0.8])
    >>> theta_from_prob(independent, TensorPoset((2, 2))).round(3) + 0.0
    array([[-2.303,  1.386],
           [ 0.   ,  0.   ]])
    """
    p = as_floats(p)
    xp = namespace(p)
    if not xp.all(p > 0):
        cell = tuple(int(i) for i in np.argwhere(~(to_host(p) > 0))[0])
        raise ValueError(
            f"theta is finite for positive cells only; the cell at index {cell} is "
            f"{float(p[cell])!r}. Add a positive offset before normalising."
        )
    return poset.moebius(xp.log(p))


def prob_from_theta(theta: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute the distribution with natural coordinates ``theta``.

    ``q = exp(zeta(theta) - psi)``: the value at the bottom is ignored, since
    normalisation decides it.

    Parameters
    ----------
    theta : array-like of shape (..., *poset.shape)
    poset : Poset or TensorPoset

    Returns
    -------
    p : ndarray of the same shape, each row summing to 1

    See Also
    --------
    theta_from_prob : Natural coordinates.
    measure_from_theta : The same with a mass.
    log_partition : The convex function whose gradient is eta.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, prob_from_theta
    >>> prob_from_theta(np.zeros((2, 2)), TensorPoset((2, 2)))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    return _normalized(theta, poset)[0]


@np.errstate(over="ignore", invalid="ignore")
def _normalized(theta, poset):
    """Distributions with theta, and psi; theta at the bottom is ignored."""
    theta = as_floats(theta)
    xp, lead = namespace(theta), leading_shape(theta, poset)
    flat = 1 * xp.reshape(theta, (prod(lead), poset.n_elements))
    # Sums with theta of the bottom would lose digits.
    flat[:, poset.bottom] = 0
    energy = poset.zeta(xp.reshape(flat, theta.shape))
    q, psi = normalized_exp(xp.reshape(energy, flat.shape))
    return xp.reshape(q, theta.shape), xp.reshape(psi, lead)


def normalized_exp(energy):
    """``exp(energy - psi)`` of rows of shape (n, D), written over them, and psi.

    A ValueError if a row has no such distribution: its energies overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        q, psi = tilted_exp(energy)
    _check_finite(psi)
    return q, psi


def _check_finite(logs):
    finite = namespace(logs).isfinite(logs)
    if not namespace(logs).all(finite):
        row = int(np.argmin(to_host(finite)))
        raise ValueError(
            f"Row {row} has no distribution: theta is so large that log p, a sum of "
            "theta, is not finite. Choose theta closer to 0, or codes closer to those "
            "of data."
        )


def tilted_exp(energy):
    """:func:`normalized_exp` unchecked: for steps that a search may refuse."""
    xp = namespace(energy)
    top = xp.max(energy, axis=1)
    energy -= top[:, None]
    p = exp_over(energy)
    total = row_sums(p)
    p *= (1 / total)[:, None]
    return p, top + xp.log(total)


def distributions(poset, **arrays):
    """Validate distributions; rows (n, D) of float64, and the leading shape."""
    types = [(p if is_foreign(p) else np.asarray(p)).dtype for p in arrays.values()]
    arrays = dict(zip(arrays, together(as_doubles, *arrays.values()), strict=True))
    rows, lead = flat_rows(poset, **arrays)
    for k, name in enumerate(arrays):
        xp, total = namespace(rows[k]), row_sums(rows[k])
        if rows[k].shape[0] and not (
            xp.min(rows[k]) >= 0 and xp.all(xp.abs(total - 1) <= 1e-6)
        ):
            raise ValueError(
                f"{name} must hold distributions: cells of at least 0 with sum 1. "
                "Divide each row by its sum."
            )
        if not str(types[k]).endswith("float64"):
            # Sums of other types are 1 only to their own precision.
            rows[k] = rows[k] / total[:, None]
    return rows, lead


def measure_from_theta(theta: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute the measure ``exp(zeta(theta))``; ``theta(bottom)`` sets its mass.

    Parameters
    ----------
    theta : array-like of shape (..., *poset.shape)
    poset : Poset or TensorPoset

    Returns
    -------
    measure : ndarray of the same shape

    See Also
    --------
    prob_from_theta : From natural coordinates to a distribution.
    theta_from_prob : Natural coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, measure_from_theta
    >>> measure_from_theta(np.log([[2.0, 1.0], [1.0, 1.0]]), TensorPoset((2, 2)))
    array([[2., 2.],
           [2., 2.]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        energy = poset.zeta(theta)
    xp, n = namespace(energy), poset.n_elements
    flat = xp.reshape(energy, (prod(leading_shape(energy, poset)), n))
    _check_finite(xp.max(flat, axis=1))
    return xp.exp(energy)


def log_partition(theta: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute ``psi(theta)``, the convex function with ``grad psi = eta``.

    ``psi = log sum_x exp(sum_{bottom < y <= x} theta(y))``; the value at the
    bottom is ignored.

    Parameters
    ----------
    theta : array-like of shape (..., *poset.shape)
    poset : Poset or TensorPoset

    Returns
    -------
    psi : ndarray of shape (...,)

    See Also
    --------
    eta_from_prob : Expectation coordinates.
    fisher_information : Its second derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, log_partition
    >>> log_partition(np.zeros((3, 2, 2)), TensorPoset((2, 2))) / np.log(2)
    array([2., 2., 2.])
    """
    psi = _normalized(as_doubles(theta), poset)[1]
    return psi[()] if isinstance(psi, np.ndarray) else psi


def eta_from_prob(p: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute expectation coordinates ``eta(x) = sum_{y >= x} p(y)``.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Distribution or non-negative measure; zero cells are fine.
    poset : Poset or TensorPoset

    Returns
    -------
    eta : ndarray of the same shape; ``eta(bottom)`` is the mass

    See Also
    --------
    prob_from_eta : From expectation coordinates to a distribution.
    theta_from_prob : Natural coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, eta_from_prob
    >>> eta_from_prob(np.full((2, 2), 0.25), TensorPoset((2, 2)))
    array([[1.  , 0.5 ],
           [0.5 , 0.25]])
    """
    return poset.eta(p)


def prob_from_eta(eta: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute the distribution with expectation coordinates ``eta``.

    Not every array is the eta of a positive distribution; the result then has
    cells that are zero or negative.

    Parameters
    ----------
    eta : array-like of shape (..., *poset.shape)
    poset : Poset or TensorPoset

    Returns
    -------
    p : ndarray of the same shape

    See Also
    --------
    eta_from_prob : Expectation coordinates.
    prob_from_theta : From natural coordinates to a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, prob_from_eta
    >>> prob_from_eta([[1.0, 0.5], [0.5, 0.25]], TensorPoset((2, 2)))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    return poset.eta_inverse(eta)


def fisher_information(
    p: ArrayLike, poset: PosetProtocol, elements: ArrayLike | None = None
) -> NDArray:
    r"""Fisher information in the natural coordinates, ``G = Hess psi``.

    ``G(x, y) = sum_{z >= x, z >= y} p(z) - eta(x) eta(y)``, the covariance of the
    indicators of the elements above ``x`` and ``y``.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Distributions.
    poset : Poset or TensorPoset
    elements : array-like, default=None
        The coordinates wanted, as for :func:`element_mask`, in the order in which they
        are listed; None means all but the bottom.

    Returns
    -------
    G : ndarray of shape (..., m, m)

    See Also
    --------
    log_partition : The convex function whose gradient is eta.
    eta_from_prob : Expectation coordinates.

    References
    ----------
    Sugiyama, Nakahara and Tsuda, ICML 2017 (Fisher information of the log-linear
    model on a poset).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, fisher_information
    >>> fisher_information(np.full(4, 0.25), TensorPoset((4,)), elements=[1, 3])
    array([[0.1875, 0.0625],
           [0.0625, 0.1875]])
    """
    (p,), lead = distributions(poset, p=p)
    if elements is None:
        elements = np.delete(np.arange(poset.n_elements), poset.bottom)
    elements = flat_elements(poset, elements)
    xp, m = namespace(p), len(elements)
    tables = xp.reshape(p, (p.shape[0], *poset.shape))
    eta = take(xp.reshape(poset.eta(tables), p.shape), elements, axis=1)
    metric = poset.fisher_gram(tables, elements) - eta[:, :, None] * eta[:, None, :]
    return xp.reshape(metric, (*lead, m, m))
