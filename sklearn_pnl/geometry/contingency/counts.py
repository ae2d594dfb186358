"""Tables of counts: which of their cells can occur, and which a model can fill."""

import numpy as np

from ..._runtime.masked import check_unmasked
from ..many_body.fillable import fillable_cells, model_design, nearly_empty
from ..posets.elements import leading_shape, non_negative


def check_counts(counts, poset):
    """Counts as floats, totals and distributions; a ValueError if not valid."""
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
    return _rank(model_design(poset, mask)[cells]) - 1


def where_it_can_occur(poset, reference):
    """Flat indices of the cells whose reference is not 0."""
    return np.flatnonzero(np.ones(poset.shape) if reference is None else reference)


def _rank(design):
    return int(np.linalg.matrix_rank((design.T @ design).toarray(), hermitian=True))


def without_unfilled(counts, projection, mask, poset, reference, dof):
    """Distributions without cells that cannot be filled, and adjusted df."""
    q = projection.prob.reshape(-1, poset.n_elements).copy()
    can_occur, adjusted = np.zeros(q.shape, bool), np.full(len(q), dof)
    can_occur[:, where_it_can_occur(poset, reference)] = True
    masks = counts.reshape(q.shape) == 0, nearly_empty(q, projection.tol)
    left = fillable_cells(poset, mask, can_occur, *masks)
    q[can_occur & ~left] = 0
    rows = np.flatnonzero((can_occur & ~left).any(axis=1))
    design = model_design(poset, mask) if len(rows) else None
    for row in rows:
        cells = np.flatnonzero(left[row])
        adjusted[row] = len(cells) - _rank(design[cells])
    return q.reshape(counts.shape), adjusted.reshape(projection.residual.shape)
