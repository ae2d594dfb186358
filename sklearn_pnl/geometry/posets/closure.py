"""Relations between elements: validation, cycles, the transitive closure."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components


def check_pairs(pairs, n_elements):
    """Pairs as integers (n_pairs, 2) without reflexive ones; a ValueError if bad."""
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        return np.empty((0, 2), int)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            "Relations must be pairs (a, b) of integers, meaning a <= b; got an array "
            f"of shape {pairs.shape} and type {pairs.dtype}."
        )
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n_elements)).any(axis=1))
    if len(outside):
        a, b = pairs[outside[0]]
        raise ValueError(
            f"Relation {outside[0]}, ({a}, {b}), names an element out of range: the "
            f"poset has elements 0 to {n_elements - 1}."
        )
    return pairs[pairs[:, 0] != pairs[:, 1]].astype(int)


def check_acyclic(covers):
    """A ValueError that names a cycle, if there is one."""
    n_components, component = connected_components(covers, connection="strong")
    if n_components == covers.shape[0]:
        return
    on_cycle = np.flatnonzero(np.bincount(component)[component] > 1)[0]
    path = _cycle_through(covers, on_cycle)
    raise ValueError(
        "The relations contain a cycle: " + " <= ".join(map(str, path)) + ". "
        "Remove one of these relations; in a partial order distinct elements cannot "
        "be below each other."
    )


def _cycle_through(covers, start):
    """A shortest cycle through ``start``, upwards."""
    order, parent = breadth_first_order(covers.T.tocsr(), start)
    right_below = covers.indices[covers.indptr[start] : covers.indptr[start + 1]]
    path = [start, order[np.isin(order, right_below)][0]]
    while path[-1] != start:
        path.append(parent[path[-1]])
    return list(map(int, reversed(path)))


def transitive_closure(covers):
    """Zeta matrix from relations, by a graph search from each element."""
    n = covers.shape[0]
    # Converted once to the type that each search needs.
    covers = covers.astype(np.float64)
    below = [
        breadth_first_order(covers, x, return_predecessors=False) for x in range(n)
    ]
    indices, indptr = np.concatenate(below), np.cumsum([0, *map(len, below)])
    closure = csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))
    closure.sort_indices()
    return closure
