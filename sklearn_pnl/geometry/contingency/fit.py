r"""Statistics of a log-linear model of counts: G^2, X^2, degrees of freedom, errors.

The package ``contingency`` defines the model and the statistics. With a reference
``r``, theta belongs to ``q / r``, and cells with reference 0 cannot occur (structural
zeros). ``D`` is then the number of cells that can occur. ``1 + |B|`` is the rank of the
functions of the model on the cells that can occur, as for quasi-independence.

If cells that can occur have count 0, the model may be unable to fill some cells, and
some theta may not be identified. A cell cannot be filled if it is 0 in every
distribution of the model with the sums of the data. The *adjusted* degrees of freedom
count only the remaining cells and the rank of the functions on them.

References
----------
Y. Bishop, S. Fienberg, P. Holland, "Discrete Multivariate Analysis", MIT Press 1975
(chapter 3 on estimates, section 3.8 on degrees of freedom where cells are zero,
chapter 5 on tables with cells that cannot occur).

A. Agresti, "Categorical Data Analysis", Wiley, 3rd edition 2013, chapters 9 and 10.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import pinv
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import xlogy
from scipy.stats import chi2

from ..._utils.arrays import to_host
from ..convex.newton import Report
from ..coordinates import distributions
from ..divergences import kl_divergence
from ..many_body.observed import model_design, unfillable_cells
from ..many_body.projections import mixed_projection
from ..posets.elements import non_negative
from ..posets.protocol import PosetProtocol


@dataclass(frozen=True, kw_only=True)
class GoodnessOfFit(Report):
    """Result of :func:`goodness_of_fit`: a fitted model and its statistics.

    Attributes
    ----------
    expected : ndarray of shape ``poset.shape``
        Expected counts ``N q``. Cells that the model cannot fill have 0.
    total : float
        ``N``, the sum of the counts.
    deviance, pearson : float
        ``G^2`` and ``X^2``.
    n_params : int
        ``|B|``, the dimension of the model on the cells that can occur, without the
        total.
    dof : int
        Number of cells that can occur minus ``1 + n_params``, as in R's ``loglin``.
    adjusted_dof : int
        Number of cells that the model can fill minus the rank of its functions on them.
        It equals ``dof`` if no expected count is 0.
    log_likelihood : float
        ``sum n log q`` in nats, without the multinomial coefficient.
    residual, n_iter, tol, converged
        Convergence of the projection; see :class:`Projection`.

    See Also
    --------
    goodness_of_fit : Fit a log-linear model to counts.
    InteractionTests : Statistics of each interaction.
    """

    expected: np.ndarray
    total: float
    deviance: float
    pearson: float
    log_likelihood: float
    n_params: int
    dof: int
    adjusted_dof: int

    @property
    def p_value(self) -> float:
        """P-value of ``G^2`` by the chi-square distribution; 1 if ``dof`` is 0."""
        return p_values(self.deviance, self.dof)

    @property
    def aic(self) -> float:
        """Akaike information criterion, ``2 n_params - 2 log_likelihood``."""
        return 2 * self.n_params - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Bayesian information criterion, ``log(N) n_params - 2 log_likelihood``."""
        return np.log(self.total) * self.n_params - 2 * self.log_likelihood

    def __str__(self):
        warning = "" if self.converged else f"; not converged: {self.residual:.1e}"
        values, dofs = (self.deviance, self.pearson), (self.dof, self.dof)
        lines = [
            f"{self.n_params} parameters, {self.total:g} counts, "
            f"{self.dof + 1 + self.n_params} cells{warning}",
            *statistics_table("", "statistic", ("G^2", "X^2"), values, dofs, 4),
        ]
        if self.adjusted_dof != self.dof:
            p = p_values(self.deviance, self.adjusted_dof)
            lines.append(
                f"df adjusted for cells that cannot be filled: {self.adjusted_dof}, "
                f"p of G^2 {p:.4g}"
            )
        return "\n".join([*lines, f"AIC {self.aic:.2f}, BIC {self.bic:.2f}"])


def goodness_of_fit(
    counts: ArrayLike,
    poset: PosetProtocol,
    order: ArrayLike = 1,
    *,
    reference: ArrayLike | None = None,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> GoodnessOfFit:
    """Fit the log-linear model of an order to counts, and compute its statistics.

    The fit is the maximum-likelihood estimate. It minimises ``KL(n / N, q)`` over the
    ``q`` for which theta of ``q / reference`` is 0 above ``order``.

    Parameters
    ----------
    counts : array-like of shape ``poset.shape``
        Non-negative counts or weights, which may be 0 or fractional.
    poset : Poset or TensorPoset
        Poset of the cells.
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level of the model, as in :func:`interaction_energy`. A larger order fits more
        interactions. For a tensor, a list of sets of modes is also accepted. With order
        0 the model is the reference.
    reference : array-like of shape ``poset.shape``, default=None
        Non-negative values to which expected counts are proportional at order 0, for
        example exposures. Cells with reference 0 or False cannot occur (structural
        zeros). None means 1 in all cells.
    tol, max_iter
        See :func:`mixed_projection`.

    Returns
    -------
    GoodnessOfFit
        Expected counts, statistics, and the convergence of the projection.

    Raises
    ------
    ValueError
        If a count is negative or not finite, if all counts are 0, or if a cell with
        reference 0 has a positive count.

    See Also
    --------
    deviance_tests : Compute the deviance that each interaction explains.
    theta_with_errors : Compute the coordinates of a fit and their standard errors.

    References
    ----------
    Bishop, Fienberg and Holland, "Discrete Multivariate Analysis", 1975, chapter 3.

    Examples
    --------
    >>> from sklearn_pnl.geometry import TensorPoset, goodness_of_fit
    >>> print(goodness_of_fit([[20, 10], [15, 30]], TensorPoset((2, 2)), 1))
    2 parameters, 75 counts, 4 cells
           statistic    df           p
    G^2       8.1614     1    0.004279
    X^2       8.0357     1    0.004586
    AIC 208.59, BIC 213.23

    Quasi-independence, for a table whose diagonal cells cannot occur:

    >>> counts = [[0, 9, 5], [7, 0, 3], [6, 8, 0]]
    >>> can_occur = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> fit = goodness_of_fit(counts, TensorPoset((3, 3)), reference=can_occur)
    >>> print(fit.dof, fit.deviance.round(4))
    1 0.2802
    """
    counts, total, p = check_counts(counts, poset)
    reference = check_reference(reference, counts, poset)
    mask = poset.level_mask(order)
    projection = mixed_projection(p, reference, mask, poset, tol=tol, max_iter=max_iter)
    n_params = n_params_of(poset, mask, reference)
    dof = int(where_it_can_occur(poset, reference).sum()) - 1 - n_params
    q, adjusted = without_unfilled(counts, projection, mask, poset, reference, dof)
    with np.errstate(divide="ignore"):
        squares = np.divide((p - q) ** 2, q, out=np.zeros_like(q), where=p != q)
    return GoodnessOfFit(
        expected=q * total,
        total=total,
        deviance=2 * total * kl_divergence(p, q),
        pearson=total * squares.sum(),
        log_likelihood=xlogy(counts, q).sum(),
        n_params=n_params,
        dof=dof,
        adjusted_dof=adjusted,
        residual=projection.residual,
        n_iter=projection.n_iter,
        tol=tol,
    )


def theta_with_errors(
    p: ArrayLike,
    total: float,
    poset: PosetProtocol,
    order: ArrayLike = 1,
    reference: ArrayLike | None = None,
) -> tuple[NDArray, NDArray]:
    """Compute free coordinates of a fitted distribution, and their standard errors.

    The errors are the square roots of the diagonal of ``inverse(G) / N``, where ``G``
    is the Fisher information of the free coordinates. A coordinate and its error are
    NaN if empty cells leave the coordinate unidentified.

    Parameters
    ----------
    p : array-like of shape ``poset.shape``
        A distribution of the model, for example ``fit.expected / fit.total``.
    total : float
        Total count ``N``. Errors decrease with its square root.
    poset : Poset or TensorPoset
        Poset of the cells.
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level of the model, as in :func:`goodness_of_fit`.
    reference : array-like of shape ``poset.shape``, default=None
        The reference of :func:`goodness_of_fit`. theta belongs to ``p / reference``.

    Returns
    -------
    theta, errors : ndarray of shape (n_params,)
        Coordinates and standard errors, in the order of the cells.

    See Also
    --------
    fisher_information : Compute the matrix G.
    theta_from_prob : Compute all coordinates of a positive distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, theta_with_errors
    >>> p = np.outer([0.5, 0.5], [0.2, 0.8])
    >>> theta, errors = theta_with_errors(p, 100, TensorPoset((2, 2)))
    >>> theta.round(3) + 0.0, errors
    (array([1.386, 0.   ]), array([0.25, 0.2 ]))
    """
    (q,), lead = distributions(poset, p=p)
    if lead:
        raise ValueError(
            f"p must be one distribution of shape {poset.shape}; got leading axes "
            f"{lead}. Pass one table at a time."
        )
    q = to_host(q)[0]
    reference = check_reference(reference, q.reshape(poset.shape), poset)
    r = 1.0 if reference is None else np.ravel(reference)
    logs = np.log(np.divide(q, r, out=np.ones(len(q)), where=q > 0))
    mask = poset.level_mask(order)
    found = _by_cholesky(q, logs, poset, mask)
    theta, errors = _by_svd(q, logs, poset, mask) if found is None else found
    # The first coordinate is -psi. Without its row, the inverse of the information is
    # the inverse of G.
    return theta[1:], errors[1:] / np.sqrt(total)


def _by_cholesky(q, logs, poset, mask):
    """Compute theta and its errors for one count, or None if some are not identified.

    Both include the bottom. theta solves the weighted least-squares problem of the logs
    and the functions of the model.
    """
    elements = np.r_[poset.bottom, np.flatnonzero(mask)]
    table, weighted = q.reshape(1, *poset.shape), (q * logs).reshape(poset.shape)
    information = poset.fisher_gram(table, elements)[0]
    variances = np.diag(information)
    if not variances.min() > 0:
        return None
    scale = 1 / np.sqrt(variances)
    factor, failed = dpotrf(information * scale * scale[:, None], lower=1)
    # A smaller pivot may be the rounding error of a function that depends on others.
    if failed or np.diag(factor).min() < 1e-4:
        return None
    inverse = scale * dtrtri(factor, lower=1)[0]
    moments = poset.eta(weighted).reshape(-1)[elements]
    return inverse.T @ (inverse @ moments), np.linalg.norm(inverse, axis=0)


def _by_svd(q, logs, poset, mask):
    """Compute :func:`_by_cholesky`, with NaN for unidentified coordinates."""
    root = np.sqrt(q)
    design = root[:, None] * model_design(poset, mask).toarray()
    # Smaller singular values are rounding errors of empty cells.
    inverse = pinv(design, rtol=1e-11)
    theta, errors = inverse @ (root * logs), np.linalg.norm(inverse, axis=1)
    estimable = np.abs(1 - np.einsum("ij,ji->i", inverse, design)) < 1e-6
    return tuple(np.where(estimable, x, np.nan) for x in (theta, errors))


def statistics_table(term, statistic, names, values, dofs, width):
    """Write the lines of a table of statistics, with a header."""
    yield f"{term:{width}}{statistic:>12}{'df':>6}{'p':>12}"
    for name, value, dof in zip(names, values, dofs, strict=True):
        p = p_values(value, dof)
        yield f"{name!s:{width}}{value:12.4f}{dof:6}{p:12.4g}"


def p_values(statistic, dof):
    """Compute upper tails of chi-square distributions; 1 for 0 degrees of freedom."""
    dof = np.asarray(dof)
    return np.where(dof > 0, chi2.sf(statistic, np.maximum(dof, 1)), 1.0)[()]


# --- counts, and the cells that can occur or be filled ----------------------------


def check_counts(counts, poset):
    """Validate counts; return counts as floats, their total and their distribution."""
    counts = non_negative(counts, "counts")
    if counts.shape != poset.shape or not counts.any():
        raise ValueError(
            f"counts must have shape {poset.shape} and a positive sum; got shape "
            f"{counts.shape} and sum {counts.sum():g}."
        )
    total = counts.sum()
    return counts, total, counts / total


def check_reference(reference, counts, poset):
    """Validate a reference, which must be positive at counts; return its shares."""
    if reference is None:
        return None
    reference = non_negative(reference, "reference")
    if reference.shape != poset.shape or not reference.any():
        raise ValueError(
            f"reference must have shape {poset.shape} and a positive sum; got shape "
            f"{reference.shape} and sum {reference.sum():g}."
        )
    bad = np.argwhere((counts > 0) & (reference == 0))
    if len(bad):
        cell = tuple(bad[0].tolist())
        raise ValueError(
            f"reference must be positive at cells with counts; at index {cell} the "
            f"count is {counts[cell]:g} and the reference is 0. Use a positive "
            "reference for the cell, or set its count to 0."
        )
    return reference / reference.sum()


def n_params_of(poset, mask, reference):
    """Compute the dimension of a model on the cells that can occur."""
    cells = where_it_can_occur(poset, reference)
    if cells.all():
        return int(mask.sum())
    return _rank(model_design(poset, mask)[cells]) - 1


def where_it_can_occur(poset, reference):
    """Return the mask (D,) of the cells whose reference is not 0."""
    return np.ravel(np.ones(poset.shape) if reference is None else reference) > 0


def _rank(design):
    return int(np.linalg.matrix_rank((design.T @ design).toarray(), hermitian=True))


def without_unfilled(counts, projection, mask, poset, reference, dof):
    """Set cells that the model cannot fill to 0; return also the adjusted df."""
    q, can_occur = projection.prob.reshape(-1), where_it_can_occur(poset, reference)
    row = can_occur[None], counts.reshape(1, -1) == 0, q[None]
    unfillable = unfillable_cells(poset, mask, *row, projection.tol)[0]
    if unfillable.any():
        left = can_occur & ~unfillable
        dof = int(left.sum()) - _rank(model_design(poset, mask)[left])
    return np.where(unfillable, 0.0, q).reshape(poset.shape), dof
