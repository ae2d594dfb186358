"""Terms of a log-linear model.

A *term* is a set of modes of a tensor, and stands for the elements whose index is not
zero in just these; of another poset, an element.
"""

import numpy as np

from .posets import TensorPoset


def modes_of(poset):
    """Modes with more than one level."""
    return [k for k, length in enumerate(poset.shape) if length > 1]


def cells_of(poset, term):
    """Elements of a term, flat: those not zero in just these modes."""
    if not isinstance(poset, TensorPoset):
        return np.atleast_1d(term)
    inside = np.ix_(*(_levels(k in term, n) for k, n in enumerate(poset.shape)))
    return np.arange(poset.n_elements).reshape(poset.shape)[inside].reshape(-1)


def _levels(own, length):
    return np.arange(1, length) if own else np.arange(1)


def changed(mask, cells, value):
    """The mask with some elements freed, or no longer."""
    mask = mask.copy()
    mask.reshape(-1)[cells] = value
    return mask


def _kept_terms(poset, mask):
    """Whether each set of modes is kept, of shape (2, .., 2) in the modes used."""
    kept = np.ones((2,) * len(modes_of(poset)), bool)
    for place in np.argwhere(kept)[1:]:
        cells = cells_of(poset, _term(poset, place))
        kept[tuple(place)] = mask.reshape(-1)[cells].all()
    return kept


def _term(poset, place):
    return tuple(mode for mode, own in zip(modes_of(poset), place, strict=True) if own)


def missing_terms(poset, mask):
    """Terms that a model lacks, but none of what is below them."""
    if not isinstance(poset, TensorPoset):
        free = mask.reshape(-1).copy()
        free[poset.bottom] = True
        return np.flatnonzero(~free).tolist()
    kept = _kept_terms(poset, mask)
    missing = ~kept
    for k in range(kept.ndim):
        np.moveaxis(missing, k, 0)[1] &= np.moveaxis(kept, k, 0)[0]
    return _ordered(poset, missing)


def maximal_terms(poset, mask):
    """Terms of a model that are inside of no other."""
    kept = _kept_terms(poset, mask)
    maximal = kept.copy()
    for k in range(kept.ndim):
        np.moveaxis(maximal, k, 0)[0] &= ~np.moveaxis(kept, k, 0)[1]
    return _ordered(poset, maximal)


def _ordered(poset, places):
    terms = (_term(poset, place) for place in np.argwhere(places) if place.any())
    return sorted(terms, key=lambda term: (len(term), term))
