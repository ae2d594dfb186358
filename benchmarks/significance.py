"""Test the gains in the cells of a table, corrected for the number of cells."""

from typing import NamedTuple

import numpy as np
from scipy.stats import permutation_test, rankdata, wilcoxon

# Number of gains up to which all permutations of the signs are computed.
MOST_EXACT = 13


class Tested(NamedTuple):
    """A cell of a table: a text with "{}" in the place of p, and independent gains."""

    text: str
    gains: np.ndarray


def corrected(lines):
    """Replace tested cells by texts; p is corrected by Holm's method over all cells."""
    cells = [cell for line in lines for cell in line.values() if _is_tested(cell)]
    p_values = iter(holm([p_value(cell.gains) for cell in cells]))
    return [
        {
            name: cell.text.format(text(next(p_values))) if _is_tested(cell) else cell
            for name, cell in line.items()
        }
        for line in lines
    ]


def _is_tested(cell):
    return isinstance(cell, Tested)


def p_value(gains):
    """Return p of Wilcoxon's test; half of the ties count for each side."""
    if not np.any(gains):
        return 1.0
    if len(gains) > MOST_EXACT:
        return wilcoxon(gains, zero_method="zsplit").pvalue
    # The test of SciPy ranks the gains again for each permutation of the signs.
    signed = np.sign(gains) * rankdata(np.abs(gains))
    return permutation_test(
        (signed,), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue


def text(p):
    """Format a p-value."""
    return f"{p:.2g}" if p >= 0.001 else "<0.001"


def holm(p_values):
    """Correct p-values for several tests by Holm's method."""
    p_values = np.asarray(p_values, float)
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    result = np.empty(len(p_values))
    result[order] = np.maximum.accumulate(factors * p_values[order])
    return np.minimum(result, 1)


def over_families(values, families):
    """Return the means of the families, which are independent of each other."""
    families = np.asarray(families)
    names = dict.fromkeys(families)
    return np.array([values[families == name].mean() for name in names])
