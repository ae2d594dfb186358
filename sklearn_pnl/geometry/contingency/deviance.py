"""How the deviance of counts divides among interactions, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..energies import energy_decomposition
from ..posets.protocol import PosetProtocol
from ..posets.tensor import TensorPoset
from .fit import check_counts, check_reference, n_params_of, p_values, statistics_table


@dataclass(frozen=True, kw_only=True)
class InteractionTests:
    """``G^2`` of each term, about chi-square if the counts do not ask for it.

    Attributes
    ----------
    terms : tuple
        Sets of modes, elements, or what the levels were called.
    values : ndarray of shape (n_terms,)
    dof : ndarray of int of shape (n_terms,)

    See Also
    --------
    deviance_tests : What each interaction explains.
    """

    terms: tuple
    values: np.ndarray
    dof: np.ndarray

    @property
    def p_value(self) -> NDArray:
        """Chance of larger values by chi-square with ``dof``."""
        return p_values(self.values, self.dof)

    def __str__(self):
        width = max((len(str(term)) for term in self.terms), default=4)
        columns = self.terms, self.values, self.dof
        return "\n".join(statistics_table("term", "G^2", *columns, width))


def deviance_tests(
    counts: ArrayLike,
    poset: PosetProtocol,
    levels: Literal["interactions", "orders"] | list = "interactions",
    *,
    reference: ArrayLike | None = None,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> InteractionTests:
    """Divide ``G^2`` of the reference among terms added one by one.

    Each value is ``2 N KL(q_k, q_{k-1})`` of two nested models next to each other, the
    likelihood ratio of the one against the other; they sum to ``2 N KL(p, reference)``
    (the Pythagorean theorem). The last level is the counts themselves.

    Parameters
    ----------
    counts : array-like of shape ``poset.shape``
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
    n, values = len(terms), 2 * total * parts
    return InteractionTests(terms=tuple(terms), values=values[:n], dof=dof[:n])


def _named_levels(poset, levels):
    """Names of terms, and the nested levels but the last, which is the counts."""
    if np.iterable(levels) and not isinstance(levels, str):
        levels = list(levels)
        return [*map(_name, levels), "rest"], levels
    if levels == "orders":
        orders = list(range(1, poset.max_order + 1))
        return orders, orders[:-1]
    if levels != "interactions" or not isinstance(poset, TensorPoset):
        raise ValueError(
            "levels must be 'interactions' (of a tensor), 'orders' or a list of "
            f"levels; got {levels!r} for {poset!r}."
        )
    modes = [k for k, length in enumerate(poset.shape) if length > 1]
    # Each set of modes is a fit.
    if len(modes) > 7:
        raise ValueError(
            f"{len(modes)} modes have {2 ** len(modes) - 1} sets of modes: give "
            "levels='orders', or the levels of interest as a list."
        )
    sizes = range(1, len(modes) + 1)
    terms = [term for size in sizes for term in combinations(modes, size)]
    return terms, [terms[: k + 1] for k in range(len(terms) - 1)]


def _name(level):
    return f"mask of {int(level.sum())}" if isinstance(level, np.ndarray) else level
