"""Terms of a log-linear model.

A *term* is a set of modes of a tensor, and stands for the elements whose index is not
zero in just these; of another poset, an element.
"""

from functools import reduce

import numpy as np
from scipy.sparse import csr_array, hstack, kron

from .interactions import maximal_mode_sets, merged
from .posets import TensorPoset


def modes_of(poset):
    """Modes with more than one level."""
    return [k for k, length in enumerate(poset.shape) if length > 1]


def cells_of(poset, term):
    """Elements of a term, flat."""
    if not isinstance(poset, TensorPoset):
        return np.atleast_1d(term)
    modes = range(len(poset.shape))
    inside = tuple(slice(1, None) if k in term else slice(1) for k in modes)
    return np.arange(poset.n_elements).reshape(poset.shape)[inside].reshape(-1)


def changed(mask, cells, value):
    """The mask with some elements freed, or no longer."""
    mask = mask.copy()
    mask.reshape(-1)[cells] = value
    return mask


def missing_terms(poset, mask):
    """Terms that a model lacks, but none of what is below them."""
    if not isinstance(poset, TensorPoset):
        free = changed(mask, poset.bottom, True)
        return np.flatnonzero(~free).tolist()
    kept = _kept_terms(poset, mask)
    missing = ~kept
    for k in modes_of(poset):
        np.moveaxis(missing, k, 0)[1] &= np.moveaxis(kept, k, 0)[0]
    terms = (tuple(map(int, np.flatnonzero(x))) for x in np.argwhere(missing))
    return sorted(terms, key=lambda term: (len(term), term))


def maximal_terms(poset, mask):
    """Terms of a hierarchical model on a tensor that are inside of no other."""
    return maximal_mode_sets(poset.family(mask) or [], modes_of(poset))


def level_functions(poset, elements):
    """The constant and the indicators of what is above each element, (D, 1 + m)."""
    # The bottom is below all: its column is the constant.
    elements = np.r_[poset.bottom, elements]
    return poset.columns(elements).synthesis(np.eye(len(elements))).T


def indicators(poset, mask):
    """As many functions that span the same ones, sparse.

    If the model is one of interactions, these are the indicators of the cells with
    given levels in the modes of each term, the first levels left out.
    """
    if poset.family(mask) is None:
        return csr_array(level_functions(poset, np.flatnonzero(mask)))
    levels = [csr_array(np.eye(length)[:, 1:]) for length in poset.shape]
    whole = [csr_array(np.ones((length, 1))) for length in poset.shape]
    pairs = list(zip(whole, levels, strict=True))
    columns = [
        reduce(kron, [pair[inside] for pair, inside in zip(pairs, x, strict=True)])
        for x in np.argwhere(_kept_terms(poset, mask))
    ]
    return hstack(columns, format="csr")


def _kept_terms(poset, mask):
    """Whether each set of modes is kept, two levels a mode: in the set or not."""
    kept = changed(mask, poset.bottom, True)
    for k in modes_of(poset):
        kept = merged(kept, k, np.all)
    return kept
