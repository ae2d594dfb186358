r"""The two dual coordinate systems of a log-linear model, and its Fisher metric.

The positive distributions on a finite poset are a dually flat manifold (section 3.1 and
appendix A.1 of the paper; Amari 2016, chapter 2). It has two systems of flat
coordinates: e-geodesics are straight lines in the natural coordinates ``theta``, and
m-geodesics are straight lines in the expectation coordinates ``eta``. On a poset,

.. math:: \log p(x) = \sum_{y \le x} \theta(y), \qquad
          \eta(x) = \sum_{y \ge x} p(y)

(section 3.2; Sugiyama, Nakahara and Tsuda 2017). So ``theta`` is the Moebius transform
of ``log p``, and ``eta`` is the adjoint of the zeta transform applied to ``p``. At the
bottom, theta is ``-psi``, minus the log-partition, and eta is 1. For a positive measure
that is not normalised, eta at the bottom is its mass (the footnote of section 4.1).
The two systems are related by Legendre duality:

.. math:: \eta = \nabla \psi(\theta), \qquad
          G(x, y) = \frac{\partial \eta(x)}{\partial \theta(y)}
          = \sum_{z \ge x, z \ge y} p(z) - \eta(x) \eta(y) .

Linear constraints on theta define an e-flat submanifold, and linear constraints on eta
define an m-flat submanifold (Remark 3.1). :mod:`sklearn_pnl.geometry.many_body`
projects onto both kinds.

Convention:
    theta = theta_from_prob(p, poset)      p = prob_from_theta(theta, poset)
    eta   = eta_from_prob(p, poset)        p = prob_from_eta(eta, poset)

All arrays have shape ``(..., *poset.shape)``; rows are independent of each other.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._utils.arrays import (
    exp_over,
    is_foreign,
    namespace,
    row_sums,
    take,
    to_host,
    with_errstate,
)
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
        Positive distributions or measures. The mass of a measure changes only
        ``theta(bottom)``.
    poset : Poset or TensorPoset
        Poset of the cells.

    Returns
    -------
    theta : ndarray of the same shape
        Natural coordinates, including the bottom. For a distribution
        ``theta(bottom) = -psi``.

    Raises
    ------
    ValueError
        If a cell is not positive.

    See Also
    --------
    prob_from_theta : Compute a distribution from natural coordinates.
    eta_from_prob : Compute expectation coordinates.
    log_partition : Compute the convex function whose gradient is eta.

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
            f"p must be positive, because theta is based on log p; the cell at index "
            f"{cell} is {float(p[cell])!r}. Add a positive offset before normalising."
        )
    return poset.moebius(xp.log(p))


def prob_from_theta(theta: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute the distribution with natural coordinates ``theta``.

    The distribution is ``exp(zeta(theta) - psi)``. The value of theta at the bottom is
    ignored, because normalisation determines it.

    Parameters
    ----------
    theta : array-like of shape (..., *poset.shape)
        Natural coordinates.
    poset : Poset or TensorPoset
        Poset of the cells.

    Returns
    -------
    p : ndarray of the same shape
        Distributions; each sums to 1.

    Raises
    ------
    ValueError
        If theta is so large that ``log p`` is not finite.

    See Also
    --------
    theta_from_prob : Compute natural coordinates.
    measure_from_theta : Compute a measure whose mass theta at the bottom determines.
    log_partition : Compute the convex function whose gradient is eta.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, prob_from_theta
    >>> prob_from_theta(np.zeros((2, 2)), TensorPoset((2, 2)))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    return _normalized(theta, poset)[0]


@with_errstate(over="ignore", invalid="ignore")
def _normalized(theta, poset):
    """Compute the distributions with theta, and psi; ignore theta at the bottom."""
    theta = as_floats(theta)
    xp, lead = namespace(theta), leading_shape(theta, poset)
    flat = 1 * xp.reshape(theta, (prod(lead), poset.n_elements))
    # Adding a large theta at the bottom to all cells would lose digits.
    flat[:, poset.bottom] = 0
    energy = poset.zeta(xp.reshape(flat, theta.shape))
    q, psi = normalized_exp(xp.reshape(energy, flat.shape))
    return xp.reshape(q, theta.shape), xp.reshape(psi, lead)


def normalized_exp(energy):
    """Compute ``exp(energy - psi)`` in place for rows (n, D), and psi.

    Raise a ValueError if the energies of a row overflow.
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
            f"Row {row} has no distribution, because log p, a sum of entries of theta, "
            "is not finite. Use smaller values of theta, or codes closer to the codes "
            "of the training rows."
        )


def tilted_exp(energy):
    """Compute :func:`normalized_exp` without the check, for steps of a line search."""
    xp = namespace(energy)
    top = xp.max(energy, axis=1)
    energy -= top[:, None]
    p = exp_over(energy)
    total = row_sums(p)
    p *= (1 / total)[:, None]
    return p, top + xp.log(total)


def distributions(poset, **arrays):
    """Validate named distributions; return rows (n, D) and the leading shape."""
    types = [(p if is_foreign(p) else np.asarray(p)).dtype for p in arrays.values()]
    arrays = dict(zip(arrays, together(as_doubles, *arrays.values()), strict=True))
    rows, lead = flat_rows(poset, **arrays)
    for k, name in enumerate(arrays):
        xp, total = namespace(rows[k]), row_sums(rows[k])
        if rows[k].shape[0] and not (
            xp.min(rows[k]) >= 0 and xp.all(xp.abs(total - 1) <= 1e-6)
        ):
            raise ValueError(
                f"{name} must contain distributions, with non-negative cells that sum "
                "to 1. Divide each row by its sum, after adding an offset if a cell is "
                "negative."
            )
        if not str(types[k]).endswith("float64"):
            # In a lower precision the rows sum to 1 only approximately.
            rows[k] = rows[k] / total[:, None]
    return rows, lead


def measure_from_theta(theta: ArrayLike, poset: PosetProtocol) -> NDArray:
    """Compute the positive measure ``exp(zeta(theta))``.

    In contrast to :func:`prob_from_theta`, the result is not normalised:
    ``theta(bottom)`` determines the mass.

    Parameters
    ----------
    theta : array-like of shape (..., *poset.shape)
        Natural coordinates, including the bottom.
    poset : Poset or TensorPoset
        Poset of the cells.

    Returns
    -------
    measure : ndarray of the same shape
        Positive measures.

    Raises
    ------
    ValueError
        If the logarithm of a measure is not finite.

    See Also
    --------
    prob_from_theta : Compute a distribution from natural coordinates.
    theta_from_prob : Compute natural coordinates.

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

    ``psi = log sum_x exp(sum_{bottom < y <= x} theta(y))``. The value of theta at the
    bottom is ignored.

    Parameters
    ----------
    theta : array-like of shape (..., *poset.shape)
        Natural coordinates.
    poset : Poset or TensorPoset
        Poset of the cells.

    Returns
    -------
    psi : ndarray of shape (...,)
        One value per row.

    See Also
    --------
    eta_from_prob : Compute expectation coordinates.
    fisher_information : Compute the second derivatives of psi.

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
        Distributions or non-negative measures. Cells may be zero.
    poset : Poset or TensorPoset
        Poset of the cells.

    Returns
    -------
    eta : ndarray of the same shape
        Expectation coordinates; ``eta(bottom)`` is the mass.

    See Also
    --------
    prob_from_eta : Compute a distribution from expectation coordinates.
    theta_from_prob : Compute natural coordinates.

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

    If ``eta`` does not belong to a positive distribution, the result has cells that are
    zero or negative.

    Parameters
    ----------
    eta : array-like of shape (..., *poset.shape)
        Expectation coordinates, including the bottom.
    poset : Poset or TensorPoset
        Poset of the cells.

    Returns
    -------
    p : ndarray of the same shape
        Distributions, or measures of mass ``eta(bottom)``.

    See Also
    --------
    eta_from_prob : Compute expectation coordinates.
    prob_from_theta : Compute a distribution from natural coordinates.

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
    r"""Compute the Fisher information in the natural coordinates, ``G = Hess psi``.

    ``G(x, y) = sum_{z >= x, z >= y} p(z) - eta(x) eta(y)`` is the covariance of the
    indicator functions of the elements above ``x`` and above ``y``.

    Parameters
    ----------
    p : array-like of shape (..., *poset.shape)
        Distributions.
    poset : Poset or TensorPoset
        Poset of the cells.
    elements : array-like, default=None
        The ``m`` elements of the rows and columns of ``G``, in the format of
        :func:`element_mask`. The order of a list is preserved. None means all elements
        except the bottom.

    Returns
    -------
    G : ndarray of shape (..., m, m)
        One symmetric matrix per row of ``p``.

    See Also
    --------
    log_partition : Compute the convex function whose gradient is eta.
    eta_from_prob : Compute expectation coordinates.

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
