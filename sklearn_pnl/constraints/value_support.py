"""What values a column can have: decimals, whole numbers, atoms; rounding to them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._runtime.arrays import slices
from .linear import ALMOST


@dataclass(frozen=True, repr=False)
class ValueSupport:
    """Steps and atoms of columns; printed, in words.

    Parameters
    ----------
    names : tuple of str of length D
    steps : ndarray of shape (D,)
        What values are multiples of: 1 for whole numbers, .01 for cents, 0 for any.
    atoms : dict of int to ndarray
        By column, values that many rows share, 0 first.

    See Also
    --------
    PNLAugmenter : New rows keep it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.constraints.value_support import ValueSupport
    >>> print(ValueSupport(("price", "rooms"), np.array([0.01, 1]), {0: np.zeros(1)}))
    value support of 2 of 2 columns
      price: multiples of 0.01; often 0
      rooms: whole numbers
    """

    names: tuple
    steps: NDArray
    atoms: dict = field(default_factory=dict)

    def __repr__(self):
        lines = []
        for j, name in enumerate(self.names):
            step, words = self.steps[j], []
            if step:
                words.append("whole numbers" if step == 1 else f"multiples of {step:g}")
            if j in self.atoms:
                words.append("often " + ", ".join(f"{v:.6g}" for v in self.atoms[j]))
            if words:
                lines.append(f"  {name}: {'; '.join(words)}")
        head = f"value support of {len(lines)} of {len(self.names)} columns"
        return "\n".join([head, *lines])


def find_value_support(numbers, table):
    """Search the columns of a table for steps and atoms.

    Parameters
    ----------
    numbers : ndarray of shape (n, D)
        Of the training rows, NaN where a cell is missing.
    table : Table
        Types of the columns.

    Returns
    -------
    support : ValueSupport
    """
    steps, precision = table.steps.astype(np.float64), table.precision
    # A few rows tell most of the columns without.
    may_have = (steps == 0) & (_steps_of(numbers[:8], precision) > 0)
    for j in np.flatnonzero(may_have & ~np.isnan(numbers).all(axis=0)):
        steps[j] = _steps_of(numbers[:, [j]], precision[[j]])[0]
    atoms = {}
    for part in slices(numbers.shape[1], 256):
        # NaN, which is last, equals nothing.
        ordered = np.sort(numbers[:, part], axis=0)
        for j in np.flatnonzero((ordered[4:] == ordered[:-4]).any(axis=0)):
            shared = _atoms_of(ordered[~np.isnan(ordered[:, j]), j])
            if len(shared):
                atoms[part.start + j] = shared
    return ValueSupport(table.feature_names, steps, atoms)


def _steps_of(rows, precision):
    """The powers of ten (D,), 1 to .0001, that all values are multiples of; else 0."""
    rows, steps = rows.astype(np.float64), np.zeros(rows.shape[1])
    room = 2 * precision * np.abs(rows)
    # Steps that the type itself rounds to say nothing.
    finest = 8 * np.fmax.reduce(room, axis=0, initial=0.0)
    for decimals in range(5):
        step = 10.0**-decimals
        with np.errstate(over="ignore", invalid="ignore"):
            off = (np.abs(rows - np.round(rows, decimals)) > room).any(axis=0)
        steps[(steps == 0) & ~off & (step >= finest)] = step
        if steps.all():
            break
    return steps


def _atoms_of(values):
    """Up to three values that stick out by how many rows share them, 0 first.

    An atom has 3% of the values, five rows at least, and four times the rows of the
    fourth commonest value: in a column of few values none sticks out.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 5:
        return distinct[:0]
    least = max(5, 0.03 * len(values), 4 * np.sort(counts)[-4])
    shared = distinct[counts >= least]
    return shared[np.argsort(shared != 0, kind="stable")]


# --- values on steps --------------------------------------------------------------


def on_steps(values, steps, to=np.rint):
    """Values (n, D) on the steps of their columns."""
    return multiples(to(values / steps), steps)


def steps_between(low, high, steps):
    """Least and most numbers of steps (n, D) within limits; crossed if there are none.

    Steps may be missed by rounding.
    """
    return np.ceil(low / steps - ALMOST), np.floor(high / steps + ALMOST)


def least_change(lower, upper):
    """The smallest whole numbers (n,) in intervals; in one without any, its middle."""
    low, high = steps_between(lower, upper, 1)
    is_empty = low > high
    low[is_empty] = high[is_empty] = np.rint((lower[is_empty] + upper[is_empty]) / 2)
    return np.clip(0, low, high)


def off_steps(values, steps):
    """How far values (n, D) are from the steps of their columns, as shares of these."""
    places = values / steps
    return np.abs(places - np.rint(places))


def multiples(counts, steps):
    """Multiples of steps, to the nearest float of their decimals."""
    inverse = np.maximum(np.rint(1 / steps), 1)
    is_fraction = (steps < 1) & (np.abs(inverse * steps - 1) < 1e-12)
    return np.where(is_fraction, counts / inverse, counts * steps)
