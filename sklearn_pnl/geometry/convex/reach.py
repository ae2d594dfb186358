"""Ranges of linear functions of cells."""

from __future__ import annotations

import numpy as np


def span(low, high, digits=10):
    """Text of an interval."""
    low_text, high_text = f"{low:.{digits}g}", f"{high:.{digits}g}"
    if low_text == high_text:
        return low_text
    if np.isinf(high):
        return "any value" if np.isinf(low) else f"{low_text} or more"
    return f"{high_text} or less" if np.isinf(low) else f"{low_text} to {high_text}"


def box_reach(coefficients, floor, ceiling):
    """Least and most of each equation, (n, c), over ranges (n, D) of the cells."""
    # In place of infinity, of which 0 is no multiple.
    floor, ceiling = np.maximum(floor, -1e200), np.minimum(ceiling, 1e200)
    plus = (abs(coefficients) + coefficients) / 2
    minus = coefficients - plus
    least = floor @ plus.T + ceiling @ minus.T
    most = ceiling @ plus.T + floor @ minus.T
    least[least < -1e150], most[most > 1e150] = -np.inf, np.inf
    return least, most
