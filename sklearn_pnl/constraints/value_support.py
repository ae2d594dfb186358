"""What values a column can have: decimals, whole numbers, atoms, missing cells."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .rounding import multiples

# Most decimals that are looked for.
_MAX_DECIMALS = 4
# An atom has this share of the values, five rows at least, and four times the rows of
# the fourth commonest value: in a column of few values none sticks out.
_ATOM_SHARE, _ATOM_ROWS, _ATOM_FACTOR, _MAX_ATOMS = 0.03, 5, 4, 3


@dataclass(frozen=True)
class ValueSupport:
    """Steps and atoms of columns; printed, in words.

    Parameters
    ----------
    names : tuple of str of length D
    steps : ndarray of shape (D,)
        What values are multiples of: 1 for whole numbers, .01 for cents, 0 for any.
    atoms : dict of int to ndarray
        By column, values that many rows share, 0 first.
    missing : dict of int to float
        By column, the share of rows without a value.

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
    missing: dict = field(default_factory=dict)

    def __str__(self):
        lines = []
        for j, name in enumerate(self.names):
            words = []
            if self.steps[j] == 1:
                words.append("whole numbers")
            elif self.steps[j]:
                words.append(f"multiples of {self.steps[j]:g}")
            if j in self.atoms:
                shared = ", ".join(f"{value:.6g}" for value in self.atoms[j])
                words.append(f"often {shared}")
            if j in self.missing:
                words.append(f"missing in {self.missing[j]:.0%} of rows")
            if words:
                lines.append(f"  {name}: {'; '.join(words)}")
        head = f"value support of {len(lines)} of {len(self.names)} columns"
        return "\n".join([head, *lines])

    def apply(self, rows: NDArray, donors: NDArray) -> NDArray:
        """Take atoms and missing cells from donors, and round the others to steps.

        Parameters
        ----------
        rows, donors : ndarray of shape (n, D)
            New rows, and a training row for each. A new value that is an atom by
            chance stays.

        Returns
        -------
        rows : ndarray of shape (n, D)
        """
        rows = rows.copy()
        columns = np.flatnonzero(self.steps)
        unit = self.steps[columns]
        rows[:, columns] = multiples(np.rint(rows[:, columns] / unit), unit)
        for j, values in self.atoms.items():
            given = np.isin(donors[:, j], values)
            rows[given, j] = donors[given, j]
        for j in self.missing:
            rows[np.isnan(donors[:, j]), j] = np.nan
        return rows


def find_value_support(numbers, table):
    """Search the columns of a table for steps, atoms and missing cells.

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
    d = numbers.shape[1]
    steps = np.array(np.broadcast_to(table.steps, d), dtype=np.float64)
    precision = np.broadcast_to(table.precision, d)
    atoms, missing = {}, {}
    for j in range(d):
        values = numbers[:, j]
        gaps = np.isnan(values)
        if gaps.any():
            missing[j] = float(gaps.mean())
            values = values[~gaps]
        if steps[j] == 0 and len(values):
            steps[j] = _step_of(values.astype(np.float64), precision[j])
        shared = _atoms_of(values)
        if len(shared):
            atoms[j] = shared
    return ValueSupport(tuple(map(str, table.feature_names)), steps, atoms, missing)


def _step_of(values, precision):
    """The power of ten, from 1 to .0001, that all values are multiples of; else 0."""
    size = np.abs(values)
    room = 2 * precision * size
    for decimals in range(_MAX_DECIMALS + 1):
        step = 10.0**-decimals
        # Steps that the type itself rounds to say nothing.
        if step < 8 * room.max(initial=0):
            return 0.0
        if np.all(np.abs(values - np.round(values, decimals)) <= room):
            return step
    return 0.0


def _atoms_of(values):
    """Values that stick out by how many rows share them, 0 first."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _MAX_ATOMS + 1 or counts.max() < _ATOM_ROWS:
        return distinct[:0]
    beside = np.sort(counts)[-_MAX_ATOMS - 1]
    least = max(_ATOM_ROWS, _ATOM_SHARE * len(values), _ATOM_FACTOR * beside)
    shared = distinct[counts >= least]
    return shared[np.argsort(shared != 0, kind="stable")]
