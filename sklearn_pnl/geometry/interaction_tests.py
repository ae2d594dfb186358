r"""Which interactions counts ask for: deviances and score tests.

The score of terms A that a fitted model lacks is ``u = eta_p - eta_q`` on A. By Rao's
test, which needs no further fit,

.. math:: N u^T (G_{AA} - G_{AB} G_{BB}^{-1} G_{BA})^{-1} u

is about chi-square with ``|A|`` degrees of freedom where theta is 0 on A. It is found
as the part of ``X^2`` that A explains: with ``r = (p - q) / sqrt(q)`` it is
``N |P r|^2``, and P projects on the functions of A times ``sqrt(q)``, less their part
in those of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orth

from .counts import check_counts, check_reference, n_params_of
from .energies import energy_decomposition
from .fit import MAX_ITER, TOL, goodness_of_fit, model_mask, p_values, statistics_table
from .interactions import check_mode_set
from .posets import PosetProtocol, TensorPoset, flat_elements
from .terms import (
    cells_of,
    changed,
    level_functions,
    maximal_terms,
    missing_terms,
    modes_of,
)

# Directions of functions shorter than this share are rounding.
_RANK = 1e-9
# More nested fits than this are not asked for by a word.
_MOST_LEVELS = 2**7


@dataclass(frozen=True, kw_only=True)
class InteractionTests:
    """A statistic for each term, about chi-square if the counts do not ask for it.

    Attributes
    ----------
    statistic : {"G^2", "score"}
    terms : tuple
        Sets of modes, elements, or what the levels were called.
    values : ndarray of shape (..., n_terms)
    dof : ndarray of int of shape (n_terms,)

    See Also
    --------
    deviance_tests : What each interaction explains.
    score_tests : Interactions that a model lacks.
    """

    statistic: str
    terms: tuple
    values: np.ndarray
    dof: np.ndarray

    @property
    def p_value(self) -> NDArray:
        """Chance of larger values by chi-square with ``dof``."""
        return p_values(self.values, self.dof)

    def columns(self) -> dict[str, Any]:
        """The table by column, ready for ``pandas.DataFrame``; of one table of counts.

        Returns
        -------
        columns : dict of str to sequence
        """
        return {
            "term": list(self.terms),
            self.statistic: self.values,
            "df": self.dof,
            "p": self.p_value,
        }

    def __str__(self):
        if self.values.ndim > 1:
            return f"{self.statistic} of {len(self.terms)} terms in several tables."
        width = max((len(str(term)) for term in self.terms), default=4)
        columns = self.terms, self.values, self.dof
        return "\n".join(statistics_table("term", self.statistic, *columns, width))


def deviance_tests(
    counts: ArrayLike,
    poset: PosetProtocol,
    levels: Literal["interactions", "orders"] | list = "interactions",
    *,
    reference: ArrayLike | None = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
) -> InteractionTests:
    """How ``G^2`` of the reference divides among terms added one by one.

    Each value is ``2 N KL(q_k, q_{k-1})`` of two nested models next to each other, the
    likelihood ratio of the one against the other; they sum to ``2 N KL(p, reference)``
    (the Pythagorean theorem). The last level is the counts themselves.

    Parameters
    ----------
    counts : array-like of shape (..., *poset.shape)
        Non-negative.
    poset : Poset or TensorPoset
    levels : {"interactions", "orders"} or list, default="interactions"
        "interactions" adds the sets of modes of a tensor one by one, small ones
        first, in the order of their modes. "orders" adds orders. Or levels as in
        :func:`energy_decomposition`, each inside the next; what is beyond the last is
        called "rest".
    reference : array-like of shape ``poset.shape``, default=None
        As in :func:`goodness_of_fit`, 0 where cells cannot occur.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    InteractionTests

    Raises
    ------
    ValueError
        If the levels are not nested, or if there are too many sets of modes.
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    energy_decomposition : The same of distributions, in nats.
    score_tests : Interactions that a model lacks.
    goodness_of_fit : Statistics of one model.

    Examples
    --------
    >>> from sklearn_pnl.geometry import TensorPoset, deviance_tests
    >>> print(deviance_tests([[20, 10], [15, 30]], TensorPoset((2, 2))))
    term           G^2    df           p
    (0,)        3.0203     1     0.08223
    (1,)        0.3336     1      0.5636
    (0, 1)      8.1614     1    0.004279
    """
    counts, total, p = check_counts(counts, poset)
    reference = check_reference(reference, counts, poset)
    terms, levels = _named_levels(poset, levels)
    parts = energy_decomposition(
        p, poset, levels, reference=reference, tol=tol, max_iter=max_iter
    )
    masks = [poset.level_mask(level) for level in [0, *levels, poset.max_order]]
    dof = np.diff([n_params_of(poset, mask, reference) for mask in masks])
    # A table of one cell has no terms, and one part, which is 0.
    some = slice(len(terms))
    return InteractionTests(
        statistic="G^2",
        terms=tuple(terms),
        values=(2 * total[..., None] * parts)[..., some],
        dof=dof[some],
    )


def score_tests(
    counts: ArrayLike,
    poset: PosetProtocol,
    order: ArrayLike = 1,
    candidates: list | None = None,
    *,
    reference: ArrayLike | None = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
) -> InteractionTests:
    """Rao's test of each of some terms that a model lacks, from one fit.

    Near the likelihood ratio of the model with the term, for which each would have to
    be fitted, and never above ``X^2`` of the model without.

    Parameters
    ----------
    counts : array-like of shape ``poset.shape``
        Non-negative; one table.
    poset : Poset or TensorPoset
    order : int, list of tuple of int, or ndarray of bool, default=1
        The model: a level as in :func:`goodness_of_fit`.
    candidates : list, default=None
        Sets of modes of a tensor, elements of another poset. None is every set of modes
        whose smaller sets the model has, or every element that it does not free.
    reference : array-like of shape ``poset.shape``, default=None
        As in :func:`goodness_of_fit`, 0 where cells cannot occur.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    InteractionTests
        Degrees of freedom count directions that the fitted cells can tell: fewer than
        ``|A|`` where cells cannot occur or be filled.

    Raises
    ------
    RuntimeError
        If the fit does not converge.

    See Also
    --------
    search_interactions : The interactions that counts ask for.
    deviance_tests : What each interaction explains.

    References
    ----------
    C. R. Rao, Proceedings of the Cambridge Philosophical Society 44, 1948.

    Examples
    --------
    >>> from sklearn_pnl.geometry import TensorPoset, score_tests
    >>> print(score_tests([[20, 10], [15, 30]], TensorPoset((2, 2)), 1))
    term         score    df           p
    (0, 1)      8.0357     1    0.004586
    """
    mask = model_mask(poset, order)
    fit = fit_one(counts, poset, mask, reference, tol, max_iter)
    if candidates is None:
        candidates = missing_terms(poset, mask)
    elif isinstance(poset, TensorPoset):
        candidates = [check_mode_set(term, len(poset.shape)) for term in candidates]
    else:
        candidates = flat_elements(poset, candidates).tolist()
    return scores_of(check_counts(counts, poset)[0], fit, poset, mask, candidates)


def scores_of(counts, fit, poset, mask, terms):
    """Score tests of terms that the model of a fit lacks."""
    root = np.sqrt(fit.expected.reshape(-1))
    misfit = counts.reshape(-1) - fit.expected.reshape(-1)
    residuals = np.divide(misfit, root, out=np.zeros_like(root), where=root > 0)
    left = orth(root[:, None] * level_functions(poset, np.flatnonzero(mask)), _RANK)
    values, dof = np.zeros(len(terms)), np.zeros(len(terms), int)
    for k, term in enumerate(terms):
        cells = cells_of(poset, term)
        own = root[:, None] * poset.columns(cells).synthesis(np.eye(len(cells))).T
        # Twice: what is left of nearly the same functions is rounding the first time.
        beyond = own - left @ (left.T @ own)
        beyond -= left @ (left.T @ beyond)
        directions, lengths, _ = np.linalg.svd(beyond, full_matrices=False)
        known = lengths > _RANK * np.sqrt(fit.total)
        values[k] = np.sum((directions[:, known].T @ residuals) ** 2)
        dof[k] = known.sum()
    return InteractionTests(
        statistic="score", terms=tuple(terms), values=values, dof=dof
    )


def _named_levels(poset, levels):
    """Names of terms, and the nested levels but the last, which is the counts."""
    if isinstance(levels, str) and levels == "orders":
        levels = list(range(1, poset.max_order))
        return [*levels, poset.max_order], levels
    if not isinstance(levels, str):
        levels = list(levels)
        return [*(_name(level) for level in levels), "rest"], levels
    if levels != "interactions" or not isinstance(poset, TensorPoset):
        raise ValueError(
            "levels must be 'interactions' (of a tensor), 'orders' or a list of "
            f"levels; got {levels!r} for {poset!r}."
        )
    modes = modes_of(poset)
    if 2 ** len(modes) > _MOST_LEVELS:
        raise ValueError(
            f"{len(modes)} modes have {2 ** len(modes) - 1} sets of modes: give "
            "levels='orders', or the levels of interest as a list."
        )
    sizes = range(1, len(modes) + 1)
    terms = [term for size in sizes for term in combinations(modes, size)]
    return terms, [terms[: k + 1] for k in range(len(terms) - 1)]


def _name(level):
    return f"mask of {int(level.sum())}" if isinstance(level, np.ndarray) else level


def fit_one(counts, poset, mask, reference, tol, max_iter):
    """One fit of one table; a RuntimeError if it did not converge."""
    if np.shape(counts) != poset.shape:
        raise ValueError(
            f"One table of shape {poset.shape} is needed; got {np.shape(counts)}."
        )
    fit = goodness_of_fit(
        counts, poset, mask, reference=reference, tol=tol, max_iter=max_iter
    )
    return fit.or_error(f"The fit of {fit.n_params} parameters")


@dataclass(frozen=True, kw_only=True)
class InteractionSearch:
    """Where a search for interactions came to.

    Attributes
    ----------
    order : list of tuple of int
        The largest sets of modes that are kept, as all that takes an ``order`` reads
        them.
    criterion : {"bic", "aic"}
    value : float
        The criterion of the model found.
    steps : tuple of tuple
        ``("add" or "drop", term, criterion after it)`` for each step; the first is
        ``("start", None, criterion)``.

    See Also
    --------
    search_interactions : The interactions that counts ask for.
    """

    order: list
    criterion: str
    value: float
    steps: tuple

    def __str__(self):
        lines = [
            f"{what:6}{'' if term is None else str(term):16}"
            f"{self.criterion.upper()} {value:.2f}"
            for what, term, value in self.steps
        ]
        return "\n".join([*lines, f"order={self.order}"])


def search_interactions(
    counts: ArrayLike,
    poset: TensorPoset,
    start: ArrayLike = 1,
    *,
    criterion: Literal["bic", "aic"] = "bic",
    reference: ArrayLike | None = None,
    tol: float = TOL,
    max_iter: int = MAX_ITER,
) -> InteractionSearch:
    """Hierarchical model found by adding and dropping interactions one at a time.

    Of the sets of modes whose smaller sets are kept, in the order of ``score
    statistic - penalty |A|``, the first is added that lowers the criterion, as its fit
    tells; when none does, the one whose loss lowers it most is dropped, if any;
    and again, until neither does. The criterion falls at each step, so that the search
    ends, in an optimum for single steps, which need not be the best model of all.

    Parameters
    ----------
    counts : array-like of shape ``poset.shape``
        Non-negative; one table.
    poset : TensorPoset
    start : int or list of tuple of int, default=1
        Level to start from; it is never left below.
    criterion : {"bic", "aic"}, default="bic"
        Penalty of a parameter: ``log(N)`` or 2.
    reference : array-like of shape ``poset.shape``, default=None
        As in :func:`goodness_of_fit`, 0 where cells cannot occur.
    tol, max_iter
        As for :func:`mixed_projection`.

    Returns
    -------
    InteractionSearch
        ``order`` is the model found.

    Raises
    ------
    ValueError
        If the poset is no tensor, or the criterion is not known.
    RuntimeError
        If a fit does not converge.

    See Also
    --------
    score_tests : Interactions that a model lacks.
    goodness_of_fit : Statistics of one model.

    References
    ----------
    G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.geometry import TensorPoset, search_interactions
    >>> counts = np.multiply.outer([[40, 10], [15, 35]], [2, 3])
    >>> print(search_interactions(counts, TensorPoset((2, 2, 2))))
    start                 BIC 2072.94
    add   (0, 1)          BIC 1946.65
    order=[(0, 1), (2,)]
    """
    if not isinstance(poset, TensorPoset):
        raise ValueError(f"Interactions are sets of modes of a tensor; got {poset!r}.")
    if criterion not in ("bic", "aic"):
        raise ValueError(f"criterion must be 'bic' or 'aic'; got {criterion!r}.")
    counts, settings = np.asarray(counts, dtype=np.float64), (reference, tol, max_iter)
    search = _Search(counts, poset, criterion, settings)
    lowest = model_mask(poset, start)
    mask, value = lowest, search.value(lowest)
    steps = [("start", None, value)]
    while found := search.addition(mask, value) or search.removal(mask, value, lowest):
        *step, mask, value = found
        steps.append((*step, value))
    order = maximal_terms(poset, mask)
    return InteractionSearch(
        order=order, criterion=criterion, value=value, steps=tuple(steps)
    )


class _Search:
    """Single steps of a search: fits, and the criterion."""

    def __init__(self, counts, poset, criterion, settings):
        self._counts, self._poset, self._settings = counts, poset, settings
        self._criterion, self._fits = criterion, {}

    def fit(self, mask):
        """The fit of a model, made once."""
        key = mask.tobytes()
        if key not in self._fits:
            fit = fit_one(self._counts, self._poset, mask, *self._settings)
            self._fits[key] = fit
        return self._fits[key]

    def value(self, mask):
        """The criterion of a model."""
        return float(getattr(self.fit(mask), self._criterion))

    def addition(self, mask, value):
        """The term whose score promises most, of those that a fit confirms."""
        fit, terms = self.fit(mask), missing_terms(self._poset, mask)
        tests = scores_of(self._counts, fit, self._poset, mask, terms)
        penalty = 2.0 if self._criterion == "aic" else np.log(fit.total)
        larger = [changed(mask, cells_of(self._poset, term), True) for term in terms]
        sizes = [n_params_of(self._poset, one, self._settings[0]) for one in larger]
        gains = tests.values - penalty * (np.array(sizes) - fit.n_params)
        for k in np.argsort(-gains, kind="stable"):
            if self.value(larger[k]) < value:
                return "add", terms[k], larger[k], self.value(larger[k])
        return None

    def removal(self, mask, value, lowest):
        """The term whose loss lowers the criterion most, if any does."""
        best = None
        for term in maximal_terms(self._poset, mask):
            cells = cells_of(self._poset, term)
            smaller = changed(mask, cells, False)
            if lowest.reshape(-1)[cells].any() or self.value(smaller) >= value:
                continue
            value = self.value(smaller)
            best = "drop", term, smaller, value
        return best
