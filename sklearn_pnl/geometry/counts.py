"""Tables of counts: which of their cells can occur, and which a model can fill."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import vstack

from .masks import check_unmasked
from .posets import leading_shape
from .terms import indicators

# An empty cell of less probability than this, or so many times the tolerance, raises
# the question whether the model can fill it at all.
_SUSPICIOUS, _TIMES_TOL = 1e-8, 100


def check_counts(counts, poset):
    """Counts as floats, totals and distributions; a ValueError if they are none."""
    counts = np.asarray(counts, dtype=np.float64)
    lead = leading_shape(counts, poset)
    bad = np.argwhere(~((counts >= 0) & np.isfinite(counts)))
    if len(bad):
        cell = tuple(bad[0].tolist())
        raise ValueError(
            f"Counts are finite and not negative; that at index {cell} is "
            f"{counts[cell]}."
        )
    if counts.max(initial=0) > np.finfo(float).max / max(1, counts.size):
        raise ValueError("Counts must have a finite sum; choose a larger unit.")
    total = np.asarray(counts.reshape(*lead, -1).sum(axis=-1))
    if not total.all():
        table = tuple(np.argwhere(total == 0)[0].tolist())
        raise ValueError(
            f"The counts{f' of table {table}' if table else ''} are all 0: there is "
            "nothing to fit. Leave such tables out."
        )
    return counts, total, counts / total.reshape(*lead, *(1 for _ in poset.shape))


def check_reference(reference, counts, poset):
    """A reference as a distribution; a ValueError if counts are where it is 0."""
    if reference is None:
        return None
    check_unmasked(reference, "reference")
    reference = np.asarray(reference, dtype=np.float64)
    if why := _no_reference(reference, poset):
        raise ValueError(
            "A reference is finite, not negative, somewhere positive, and of shape "
            f"{poset.shape}; {why}."
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


def _no_reference(reference, poset):
    """Why an array is no reference; None if it is one."""
    if reference.shape != poset.shape:
        return f"got shape {reference.shape}"
    bad = np.argwhere(~(np.isfinite(reference) & (reference >= 0)))
    if len(bad):
        cell = tuple(bad[0].tolist())
        return f"that at index {cell} is {reference[cell]:g}"
    if reference.max() > np.finfo(float).max / reference.size:
        return "its sum overflows, so that a larger unit is needed"
    return None if reference.any() else "it is 0 in all cells"


def n_params_of(poset, mask, reference):
    """Dimension of a model on the cells that can occur, without the total."""
    cells = where_it_can_occur(poset, reference)
    if len(cells) == poset.n_elements:
        return int(mask.sum())
    return _rank(indicators(poset, mask)[cells]) - 1


def where_it_can_occur(poset, reference):
    """Flat indices of the cells whose reference is not 0."""
    return np.flatnonzero(np.ones(poset.shape) if reference is None else reference)


def _rank(design):
    return int(np.linalg.matrix_rank((design.T @ design).toarray(), hermitian=True))


def without_unfilled(counts, found, mask, poset, reference, dof):
    """Distributions without cells that cannot be filled, and adjusted df."""
    lead, can_occur = found.residual.shape, where_it_can_occur(poset, reference)
    q = found.prob.reshape(-1, poset.n_elements).copy()
    adjusted, empty = np.full(len(q), dof), counts.reshape(q.shape)[:, can_occur] == 0
    suspicious = empty & nearly_empty(q[:, can_occur], found.tol)
    rows = np.flatnonzero(suspicious.any(axis=1))
    design = indicators(poset, mask)[can_occur] if len(rows) else None
    for row in rows:
        possible = possible_cells(design, empty[row], suspicious[row])
        if not possible.all():
            q[row, can_occur[~possible]] = 0
            adjusted[row] = possible.sum() - _rank(design[np.flatnonzero(possible)])
    return q.reshape(counts.shape), adjusted.reshape(lead)


def nearly_empty(q, tol):
    """Cells so light that a fit may be on its way to empty them."""
    return q < max(_SUSPICIOUS, _TIMES_TOL * tol)


def possible_cells(design, empty, suspicious):
    """Cells positive in some distribution with the expectations of the data.

    The most cells that a change of the counts can fill, which keeps all expectations
    and may take away from cells that are not empty alone: a linear programme, with a
    share of at most 1 of each cell to be filled counted.
    """
    cells = np.flatnonzero(suspicious)
    n, k = len(empty), len(cells)
    cost = np.concatenate([np.zeros(n), -np.ones(k)])
    # Change = share + more of it, so that no cap keeps others from being filled.
    system = vstack([design, design[cells]]).T
    bounds = [(0 if e else None, None) for e in empty] + [(0, 1)] * k
    found = linprog(
        cost, A_eq=system, b_eq=np.zeros(design.shape[1]), bounds=bounds, method="highs"
    )
    if found.status != 0:
        raise RuntimeError(
            f"Which of {k} empty cells the model can fill could not be found out: "
            f"{found.message}"
        )
    possible = np.ones(n, bool)
    possible[cells] = found.x[n:] > 0.5
    return possible
