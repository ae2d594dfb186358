"""Tables of counts: which of their cells can occur, and which a model can fill."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import vstack

from .masks import check_unmasked
from .posets import leading_shape, non_negative
from .terms import indicators

# An empty cell of less probability than this, or so many times the tolerance, raises
# the question whether the model can fill it at all.
_SUSPICIOUS, _TIMES_TOL = 1e-8, 100


def check_counts(counts, poset):
    """Counts as floats, totals and distributions; a ValueError if they are none."""
    lead = leading_shape(np.asarray(counts), poset)
    counts = non_negative(counts, "Counts")
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
    reference = non_negative(reference, "A reference")
    if reference.shape != poset.shape or not reference.any():
        wrong = reference.shape != poset.shape
        why = f"got shape {reference.shape}" if wrong else "it is 0 in all cells"
        raise ValueError(
            f"A reference must be positive somewhere and of shape {poset.shape}; {why}."
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
    q = found.prob.reshape(-1, poset.n_elements).copy()
    can_occur, adjusted = np.zeros(q.shape, bool), np.full(len(q), dof)
    can_occur[:, where_it_can_occur(poset, reference)] = True
    given = counts.reshape(q.shape) == 0, nearly_empty(q, found.tol)
    left = fillable_cells(poset, mask, can_occur, *given)
    q[can_occur & ~left] = 0
    rows = np.flatnonzero((can_occur & ~left).any(axis=1))
    design = indicators(poset, mask) if len(rows) else None
    for row in rows:
        cells = np.flatnonzero(left[row])
        adjusted[row] = len(cells) - _rank(design[cells])
    return q.reshape(counts.shape), adjusted.reshape(found.residual.shape)


def fillable_cells(poset, mask, cells, empty, light):
    """Those of some cells (n, D) that a model can fill, given which hold nothing.

    Only those that are empty, and ``light`` in a fit, are in question.
    """
    suspicious, left = cells & empty & light, cells.copy()
    rows = np.flatnonzero(suspicious.any(axis=1))
    design = indicators(poset, mask) if len(rows) else None
    for row in rows:
        own = np.flatnonzero(cells[row])
        given = empty[row, own], suspicious[row, own]
        left[row, own] = _possible_cells(design[own], *given)
    return left


def nearly_empty(q, tol):
    """Cells so light that a fit may be on its way to empty them."""
    return q < max(_SUSPICIOUS, _TIMES_TOL * tol)


def _possible_cells(design, empty, suspicious):
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
