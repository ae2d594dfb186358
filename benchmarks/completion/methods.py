"""Ways to fill a tensor: candidates of each method, between which hidden cells choose.

A candidate is a function from a tensor with NaN to one without.
"""

from functools import partial
from itertools import product

import numpy as np
import tensorly as tl
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from tensorly.decomposition import (
    non_negative_parafac,
    non_negative_parafac_hals,
    non_negative_tucker,
)

from sklearn_pnl import ManyBodyImputer

ALPHAS = (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# Ranks; the updates with a mask are cheap enough for one more.
CP_RANKS, MASKED_RANKS, TUCKER_RANKS = (2, 4, 8), (2, 4, 8, 16), (2, 4, 8)
NEIGHBORS = (3, 10)
# Rounds of filling and fitting, for decompositions without a mask. Multiplicative
# updates with a mask often diverge, so that both are candidates.
ROUNDS, STEPS = 20, 10


def many_body(tensor, ordered_modes):
    """Return imputers for each order from 2, with and without ordered modes."""
    orders = range(2, tensor.ndim + 1)
    return [
        partial(_many_body, order=order, ordered_modes=modes, alpha=alpha)
        for order, modes, alpha in product(orders, ((), ordered_modes), ALPHAS)
    ]


def parafac(tensor, ordered_modes):
    """Return non-negative CP decompositions of each rank."""
    masked = [partial(_masked_parafac, rank=rank) for rank in MASKED_RANKS]
    return masked + [partial(_parafac, rank=rank) for rank in CP_RANKS]


def tucker(tensor, ordered_modes):
    """Return non-negative Tucker decompositions of each rank."""
    return [partial(_tucker, rank=rank) for rank in TUCKER_RANKS]


def knn(tensor, ordered_modes):
    """Return imputers by nearest rows of each unfolding."""
    return [
        partial(_unfolded, imputer=KNNImputer(n_neighbors=k, keep_empty_features=True,
                                              weights="distance"), axes=axes)
        for k, axes in product(NEIGHBORS, _unfoldings(tensor.ndim))
    ]  # fmt: skip


def iterative(tensor, ordered_modes):
    """Return regressions of each level on the other levels, for each mode."""
    imputer = IterativeImputer(
        min_value=0, max_iter=10, random_state=0, keep_empty_features=True
    )
    return [
        partial(_unfolded, imputer=imputer, axes=((*others, k), tensor.ndim - 1))
        for k in range(tensor.ndim)
        for others in [[j for j in range(tensor.ndim) if j != k]]
    ]


METHODS = {
    "many-body": many_body,
    "CP": parafac,
    "Tucker": tucker,
    "KNNImputer": knn,
    "IterativeImputer": iterative,
}


def _many_body(given, order, ordered_modes, alpha):
    imputer = ManyBodyImputer(order, ordered_modes=ordered_modes, alpha=alpha)
    return imputer.fit_transform(given[None])[0]


def _masked_parafac(given, rank):
    missing = np.isnan(given)
    filled = np.where(missing, np.nanmean(given), given)
    settings = {"n_iter_max": 200, "init": "random", "random_state": 0}
    found = non_negative_parafac(filled, rank, mask=~missing, **settings)
    return np.where(missing, tl.cp_to_tensor(found), given)


def _parafac(given, rank):
    def fit(filled, init):
        settings = {"n_iter_max": STEPS, "init": init, "random_state": 0}
        found = non_negative_parafac_hals(filled, rank, **settings)
        return found, tl.cp_to_tensor(found)

    return _in_rounds(given, fit)


def _tucker(given, rank):
    ranks = [min(rank, length) for length in given.shape]

    def fit(filled, init):
        settings = {"n_iter_max": 5 * STEPS, "init": init, "random_state": 0}
        found = non_negative_tucker(filled, ranks, tol=1e-8, **settings)
        return found, tl.tucker_to_tensor(found)

    return _in_rounds(given, fit)


def _in_rounds(given, fit):
    """Alternate between fits and filling, where a fit starts from the last fit."""
    missing, init = np.isnan(given), "svd"
    filled = np.where(missing, np.nanmean(given), given)
    for _ in range(ROUNDS):
        init, model = fit(filled, init)
        filled = np.where(missing, model, given)
    return filled


def _unfoldings(d):
    """Yield orders of the axes, and how many axes of an unfolding count rows."""
    for k in range(d):
        others = [j for j in range(d) if j != k]
        yield (k, *others), 1
        yield (*others, k), d - 1


def _unfolded(given, imputer, axes):
    order, n_rows = axes
    turned = given.transpose(order)
    rows = turned.reshape(int(np.prod(turned.shape[:n_rows])), -1)
    filled = imputer.fit_transform(rows).reshape(turned.shape)
    return filled.transpose(np.argsort(order))
