"""Division of the deviance of counts among interactions."""

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
    """Result of :func:`deviance_tests`: ``G^2`` and degrees of freedom of each term.

    If a term is not needed to explain the counts, its ``G^2`` follows approximately a
    chi-square distribution.

    Attributes
    ----------
    terms : tuple
        Sets of modes, orders, or the levels given.
    values : ndarray of shape (n_terms,)
        ``G^2`` of each term.
    dof : ndarray of int of shape (n_terms,)
        Degrees of freedom of each term.

    See Also
    --------
    deviance_tests : Compute the deviance that each interaction explains.
    """

    terms: tuple
    values: np.ndarray
    dof: np.ndarray

    @property
    def p_value(self) -> NDArray:
        """P-values: upper tails of the chi-square distributions with ``dof``."""
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
    """Divide ``G^2`` of the reference among terms that are added one by one.

    Each value is the likelihood ratio ``2 N KL(q_k, q_{k-1})`` of two consecutive
    nested models. The last model is the table of counts itself. The values sum to
    ``2 N KL(p, reference)`` (the Pythagorean theorem).

    Parameters
    ----------
    counts : array-like of shape ``poset.shape``
        Non-negative counts.
    poset : Poset or TensorPoset
        Poset of the cells.
    levels : {"interactions", "orders"} or list, default="interactions"
        "interactions" adds the sets of modes of a tensor one by one, sorted by size and
        then by modes. "orders" adds one order at a time. A list contains nested levels
        as in :func:`energy_decomposition`; the term after the last level is "rest".
    reference : array-like of shape ``poset.shape``, default=None
        Expected proportions of the cells, as in :func:`goodness_of_fit`. Cells with
        reference 0 cannot occur.
    tol, max_iter
        See :func:`mixed_projection`.

    Returns
    -------
    InteractionTests
        Terms with ``G^2``, degrees of freedom and p-values.

    Raises
    ------
    ValueError
        If the levels are not nested, or if there are more than seven modes of length 2
        or more with ``levels="interactions"``.
    RuntimeError
        If a projection does not converge.

    See Also
    --------
    energy_decomposition : Divide the divergence of distributions, in nats.
    goodness_of_fit : Fit one model and compute its statistics.

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
    # For a table with one cell there are no terms, but one part, which is 0.
    n, values = len(terms), 2 * total * parts
    return InteractionTests(terms=tuple(terms), values=values[:n], dof=dof[:n])


def _named_levels(poset, levels):
    """Return names of terms, and all nested levels except the counts themselves."""
    if np.iterable(levels) and not isinstance(levels, str):
        levels = list(levels)
        return [*map(_name, levels), "rest"], levels
    if levels == "orders":
        orders = list(range(1, poset.max_order + 1))
        return orders, orders[:-1]
    if levels != "interactions" or not isinstance(poset, TensorPoset):
        raise ValueError(
            "levels must be 'interactions' (for a TensorPoset), 'orders' or a list of "
            f"levels; got {levels!r} for {poset!r}."
        )
    modes = [k for k, length in enumerate(poset.shape) if length > 1]
    # Each set of modes requires a fit.
    if len(modes) > 7:
        raise ValueError(
            "levels='interactions' is limited to 7 modes of length 2 or more; got "
            f"{len(modes)} modes. Use levels='orders', or a list of levels."
        )
    sizes = range(1, len(modes) + 1)
    terms = [term for size in sizes for term in combinations(modes, size)]
    return terms, [terms[: k + 1] for k in range(len(terms) - 1)]


def _name(level):
    return f"mask of {int(level.sum())}" if isinstance(level, np.ndarray) else level
