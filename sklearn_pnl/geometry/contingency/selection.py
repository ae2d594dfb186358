"""Selection of the interactions of a log-linear model by an information criterion."""

from __future__ import annotations

from itertools import combinations
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from ..divergences import kl_divergence
from ..many_body.projections import mixed_projection
from ..posets.elements import non_negative
from ..posets.tensor import TensorPoset
from .fit import check_reference, n_params_of


class SelectionStep(NamedTuple):
    """Step of :func:`select_interactions`.

    Attributes
    ----------
    interaction : tuple of int
        Set of modes that the step adds or removes, and () for the first model.
    is_added : bool
        Whether the step adds the interaction.
    kl : float
        Mean of ``KL(p, q)`` over the counts, in nats.
    criterion : float
        Criterion of the model after the step.
    """

    interaction: tuple
    is_added: bool
    kl: float
    criterion: float


class InteractionSelection(NamedTuple):
    """Result of :func:`select_interactions`.

    Attributes
    ----------
    interactions : list of tuple of int
        Largest sets of modes of the model, in the form of the parameter ``order``.
    steps : list of SelectionStep
        Models of the search, from the first model to the result.

    See Also
    --------
    select_interactions : Choose the interactions of a log-linear model.
    """

    interactions: list
    steps: list


def select_interactions(
    X: ArrayLike,
    max_order: int = 2,
    criterion: Literal["bic", "aic"] = "bic",
    *,
    reference: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> InteractionSelection:
    r"""Choose the interactions of a log-linear model by stepwise search.

    The search starts with the model of independence. Each step adds the set of modes,
    with all its subsets, that decreases the criterion most. After each addition, sets
    whose removal decreases the criterion are removed again. The search ends when no
    addition decreases the criterion.

    Adding a set decreases the divergence of the counts from the model by
    ``KL(q_new, q_old)``, by the Pythagorean theorem. This part of the divergence is due
    to the interaction.

    Parameters
    ----------
    X : array-like of shape (n, *shape)
        Non-negative counts. All rows have the same interactions, and each row has
        parameters of its own. For one model of all rows, pass
        ``X.sum(axis=0, keepdims=True)``.
    max_order : int, default=2
        Largest number of modes of an interaction. With 1, the result is independence.
    criterion : {"bic", "aic"}, default="bic"
        Criterion to minimise: the sum over the rows of ``-2 log-likelihood`` and of
        ``log(N)`` ("bic") or 2 ("aic") for each free coordinate, where N is the sum of
        the row. For one row, see :class:`GoodnessOfFit`.
    reference : array-like of shape ``shape``, default=None
        Reference of all rows, as in :func:`goodness_of_fit`. None means 1 in all cells.
    tol, max_iter
        See :func:`mixed_projection`.

    Returns
    -------
    InteractionSelection
        Named tuple of the interactions and the steps of the search.

    Raises
    ------
    ValueError
        If a count is negative or not finite, or if the sum of a row is 0.
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    deviance_tests : Compute the deviance that each interaction explains.
    energy_decomposition : Divide a divergence among nested levels.

    References
    ----------
    J. Enouen, M. Sugiyama, "A complete decomposition of KL error using refined
    information and mode interaction selection", arXiv:2410.11964, 2024.

    G. Schwarz, "Estimating the dimension of a model", Annals of Statistics, 1978.

    Examples
    --------
    Use of alcohol, cigarettes and marijuana (modes) by 2,276 pupils (Agresti, 2013):

    >>> from sklearn_pnl.geometry import select_interactions
    >>> counts = [[[911, 538], [44, 456]], [[3, 43], [2, 279]]]
    >>> selection = select_interactions([counts])
    >>> selection.interactions
    [(0, 1), (0, 2), (1, 2)]
    >>> for step in selection.steps:
    ...     print(step.interaction, round(step.kl, 4), round(step.criterion, 1))
    () 0.2825 7923.4
    (1, 2) 0.1174 7179.3
    (0, 1) 0.0202 6744.8
    (0, 2) 0.0001 6660.9
    """
    if not isinstance(max_order, Integral) or max_order < 1:
        raise ValueError(
            f"max_order must be an integer of at least 1; got {max_order!r}."
        )
    search = _Search(X, criterion, reference, {"tol": tol, "max_iter": max_iter})
    shape = search.poset.shape
    modes = [k for k, length in enumerate(shape) if length > 1]
    sizes = range(2, max_order + 1)
    candidates = {frozenset(s) for size in sizes for s in combinations(modes, size)}
    family = frozenset(frozenset([k]) for k in range(len(shape)))
    steps = [SelectionStep((), True, *search.scores(family))]

    def improve(families, is_added):
        """Move to the best of the families if its criterion is lower."""
        nonlocal family
        found = {s: search.scores(new) for s, new in families.items()}
        best = min(found, key=lambda s: (found[s][1], sorted(s)), default=None)
        if best is None or not found[best][1] < steps[-1].criterion:
            return False
        family = families[best]
        steps.append(SelectionStep(tuple(sorted(best)), is_added, *found[best]))
        return True

    while improve({s: family | _subsets(s) for s in candidates - family}, True):
        while improve(_without_one(family), False):
            pass
    interactions = sorted(tuple(sorted(s)) for s in _maximal(family))
    return InteractionSelection(interactions, steps)


class _Search:
    """Divergences and criteria of the models of a search."""

    def __init__(self, X, criterion, reference, settings):
        if criterion not in ("bic", "aic"):
            raise ValueError(f"criterion must be 'bic' or 'aic'; got {criterion!r}.")
        counts = non_negative(X, "X")
        if counts.ndim < 2 or not len(counts):
            raise ValueError(
                f"X must have the shape (n, *shape); got {counts.shape}. For one "
                "table, pass X[None]."
            )
        self.total = counts.reshape(len(counts), -1).sum(axis=1)
        for row in np.flatnonzero(self.total == 0)[:1]:
            raise ValueError(f"The sum of row {row} of X is 0. Drop the row.")
        self.poset = TensorPoset(counts.shape[1:])
        self._reference = check_reference(reference, counts.sum(axis=0), self.poset)
        self._p = counts / self.total.reshape(-1, *[1] * len(self.poset.shape))
        # -2 log-likelihood of the counts themselves.
        self._saturated = -2 * xlogy(counts, self._p).sum()
        is_bic = criterion == "bic"
        self._penalty = np.log(self.total).sum() if is_bic else 2 * len(counts)
        self._settings, self._scores = settings, {}

    def scores(self, family):
        """Return the mean KL divergence and the criterion of a family of sets."""
        if family not in self._scores:
            self._scores[family] = self._fit(family)
        return self._scores[family]

    def _fit(self, family):
        mask = self.poset.level_mask([tuple(s) for s in family])
        given = self._p, self._reference, mask, self.poset
        projection = mixed_projection(*given, **self._settings)
        if not np.all(projection.converged):
            raise RuntimeError(
                "A projection did not converge: the largest residual is "
                f"{np.max(projection.residual):.1e} > tol={projection.tol:g}. Increase "
                "tol or max_iter, or add an offset to X."
            )
        axes = tuple(range(1, self._p.ndim))
        kl = kl_divergence(self._p, projection.prob, axis=axes) @ self.total
        n_params = n_params_of(self.poset, mask, self._reference)
        criterion = self._saturated + 2 * kl + self._penalty * n_params
        return float(kl / self.total.sum()), float(criterion)


def _subsets(interaction):
    """Return the non-empty subsets of a set of modes."""
    sizes = range(1, len(interaction) + 1)
    return {frozenset(s) for size in sizes for s in combinations(interaction, size)}


def _maximal(family):
    """Return the sets that no other set of the family contains."""
    return [s for s in family if not any(s < other for other in family)]


def _without_one(family):
    """Return the families without one maximal set of two or more modes."""
    return {s: family - {s} for s in _maximal(family) if len(s) > 1}
