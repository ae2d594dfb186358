"""The search for the interactions that counts ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .counts import n_params_of
from .fit import MAX_ITER, TOL, model_mask
from .interaction_tests import fit_one, scores_of
from .posets import TensorPoset
from .terms import cells_of, changed, maximal_terms, missing_terms


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

    Of the sets of modes whose smaller sets are kept, the one that lowers ``-score
    statistic + penalty |A|`` most is added, if a fit confirms that it lowers the
    criterion; when none does, the one whose loss lowers it most is dropped, if any;
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
            if gains[k] <= 0:
                return None
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
