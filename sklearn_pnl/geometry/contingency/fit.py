r"""How well a log-linear model fits counts: G^2, X^2, degrees of freedom, errors.

Counts ``n`` with total ``N`` are read as the distribution ``p = n / N``; the model is
``q``, the m-projection of ``p`` on the distributions whose theta is 0 off a set B of
elements, which is the maximum-likelihood estimate under Poisson, multinomial and
product-multinomial sampling alike. Then

.. math:: G^2 = 2 N KL(p, q), \qquad X^2 = N \sum_x (p(x) - q(x))^2 / q(x),

each about chi-square with ``D - 1 - |B|`` degrees of freedom if the model is right and
the expected counts ``N q`` are not small. With a reference ``r`` theta is that of
``q / r``; cells where it is 0 cannot occur (structural zeros): ``D`` is then the number
of the others, and ``1 + |B|`` the rank of the model's functions on these, as for
quasi-independence. Cells that could occur but are 0 may leave cells that no
distribution of the model can fill, and theta that nothing is known about: the
*adjusted* degrees of freedom count what is left of both.

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
from scipy.special import xlogy
from scipy.stats import chi2

from ..._utils.arrays import to_host
from ..convex.optimize import Report
from ..coordinates import distributions
from ..divergences import kl_divergence
from ..many_body.observed import model_design, unfillable_cells
from ..many_body.projections import mixed_projection
from ..posets.elements import non_negative
from ..posets.protocol import PosetProtocol


@dataclass(frozen=True, kw_only=True)
class GoodnessOfFit(Report):
    """A log-linear model fitted to counts, and how far they are from it.

    Attributes
    ----------
    expected : ndarray of shape ``poset.shape``
        Expected counts ``N q``; 0 in cells that the model cannot fill.
    total : float
        ``N``, the sum of the counts.
    deviance, pearson : float
        ``G^2`` and ``X^2``.
    n_params : int
        ``|B|``, the dimension of the model on the cells that can occur, without the
        total.
    dof : int
        Cells that can occur less ``1 + n_params``, as R's ``loglin`` has it.
    adjusted_dof : int
        Cells that the model can fill less the rank of its functions there: the same as
        ``dof`` where no expected count is 0.
    log_likelihood : float
        ``sum n log q`` in nats, without the multinomial coefficient.
    residual, n_iter, tol, converged
        Of the projection, as in :class:`Projection`.

    See Also
    --------
    goodness_of_fit : Fit a model to counts.
    InteractionTests : A statistic for each interaction.
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
        """Chance of a larger ``G^2`` by chi-square with ``dof``; 1 if that is 0."""
        return p_values(self.deviance, self.dof)

    @property
    def aic(self) -> float:
        """``2 n_params - 2 log_likelihood``."""
        return 2 * self.n_params - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """``log(N) n_params - 2 log_likelihood``."""
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
    """Fit the log-linear model of an order to counts, with statistics of the fit.

    Minimises ``KL(n / N, q)`` over the ``q`` with theta of ``q / reference`` 0 beyond
    ``order``: the maximum-likelihood estimate.

    Parameters
    ----------
    counts : array-like of shape ``poset.shape``
        Non-negative; weights need not be whole. Cells may be 0.
    poset : Poset or TensorPoset
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level, as in :func:`interaction_energy`: for a tensor also the sets of modes
        kept, closed downward; 0 is the reference itself.
    reference : array-like of shape ``poset.shape``, default=None
        What cells are expected in proportion to, such as exposures; not negative. Those
        where it is 0 (or False) cannot occur: structural zeros. None is 1.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    GoodnessOfFit

    Raises
    ------
    ValueError
        If a count is negative or not finite, a table is empty, or counts are where the
        reference is 0.

    See Also
    --------
    deviance_tests : What each interaction explains.

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

    Quasi-independence: nobody is counted with himself.

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

    The errors are the roots of the diagonal of ``inverse(G) / N``, with ``G`` the
    Fisher information of the free coordinates. Both are nan where cells that cannot
    occur or be filled leave nothing to know theta by.

    Parameters
    ----------
    p : array-like of shape ``poset.shape``
        A distribution of the model, such as ``expected / total``.
    total : float
        ``N``.
    poset : Poset or TensorPoset
    order : int, list of tuple of int, or ndarray of bool, default=1
        Level, as in :func:`goodness_of_fit`.
    reference : array-like of shape ``poset.shape``, default=None
        As in :func:`goodness_of_fit`: theta is that of ``p / reference``.

    Returns
    -------
    theta, errors : ndarray of shape (n_params,)
        In the order of the cells.

    See Also
    --------
    fisher_information : The matrix G.
    theta_from_prob : All coordinates of a positive distribution.

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
        raise ValueError(f"p must be one distribution; got {lead} of them.")
    q = to_host(q)[0]
    reference = check_reference(reference, q.reshape(poset.shape), poset)
    r = 1.0 if reference is None else np.ravel(reference)
    functions = model_design(poset, poset.level_mask(order)).toarray()
    root = np.sqrt(q)
    # With a constant to stand for psi: its inverse, cut down to theta, is that of G.
    design = root[:, None] * functions
    log_ratio = root * np.log(np.divide(q, r, out=np.ones(len(q)), where=q > 0))
    # Smaller singular values are rounding of cells that are empty.
    inverse = pinv(design, rtol=1e-11)
    theta = inverse @ log_ratio
    errors = np.linalg.norm(inverse, axis=1) / np.sqrt(total)
    estimable = np.abs(1 - np.einsum("ij,ji->i", inverse, design)) < 1e-6
    theta, errors = (np.where(estimable, x, np.nan)[1:] for x in (theta, errors))
    return theta, errors


def statistics_table(term, statistic, names, values, dofs, width):
    """Lines of a table, the first of them heads."""
    yield f"{term:{width}}{statistic:>12}{'df':>6}{'p':>12}"
    for name, value, dof in zip(names, values, dofs, strict=True):
        p = p_values(value, dof)
        yield f"{name!s:{width}}{value:12.4f}{dof:6}{p:12.4g}"


def p_values(statistic, dof):
    """Upper tails of chi-square; 1 where there is no degree of freedom."""
    dof = np.asarray(dof)
    return np.where(dof > 0, chi2.sf(statistic, np.maximum(dof, 1)), 1.0)[()]


# --- counts, and the cells that can occur or be filled ----------------------------


def check_counts(counts, poset):
    """Counts as floats, their total and distribution; a ValueError if not valid."""
    counts = non_negative(counts, "counts")
    if counts.shape != poset.shape or not counts.any():
        raise ValueError(
            f"counts must be one table of shape {poset.shape} that counts something; "
            f"got shape {counts.shape}, of sum {counts.sum():g}."
        )
    total = counts.sum()
    return counts, total, counts / total


def check_reference(reference, counts, poset):
    """A reference as a distribution; a ValueError if counts are where it is 0."""
    if reference is None:
        return None
    reference = non_negative(reference, "reference")
    if reference.shape != poset.shape or not reference.any():
        raise ValueError(
            f"reference must be of shape {poset.shape} and positive somewhere; got "
            f"shape {reference.shape}, of sum {reference.sum():g}."
        )
    bad = np.argwhere((counts > 0) & (reference == 0))
    if len(bad):
        cell = tuple(bad[0].tolist())
        raise ValueError(
            f"The count at index {cell} is {counts[cell]:g} where the reference is 0, "
            "of a cell that cannot occur. Give it a positive reference, or leave its "
            "counts out."
        )
    return reference / reference.sum()


def n_params_of(poset, mask, reference):
    """Dimension of a model on the cells that can occur, without the total."""
    cells = where_it_can_occur(poset, reference)
    if cells.all():
        return int(mask.sum())
    return _rank(model_design(poset, mask)[cells]) - 1


def where_it_can_occur(poset, reference):
    """Mask (D,) of the cells whose reference is not 0."""
    return np.ravel(np.ones(poset.shape) if reference is None else reference) > 0


def _rank(design):
    return int(np.linalg.matrix_rank((design.T @ design).toarray(), hermitian=True))


def without_unfilled(counts, projection, mask, poset, reference, dof):
    """A distribution without cells that cannot be filled, and adjusted df."""
    q, can_occur = projection.prob.reshape(-1), where_it_can_occur(poset, reference)
    row = can_occur[None], counts.reshape(1, -1) == 0, q[None]
    unfillable = unfillable_cells(poset, mask, *row, projection.tol)[0]
    if unfillable.any():
        left = can_occur & ~unfillable
        dof = int(left.sum()) - _rank(model_design(poset, mask)[left])
    return np.where(unfillable, 0.0, q).reshape(poset.shape), dof
