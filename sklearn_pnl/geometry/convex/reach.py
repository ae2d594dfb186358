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
    # Positive and negative parts, from halves, which do not overflow.
    plus = coefficients / 2 + abs(coefficients) / 2
    minus = coefficients - plus
    infinite = np.isinf(ceiling)
    finite = np.where(infinite, 0.0, ceiling)
    least = floor @ plus.T + finite @ minus.T
    most = finite @ plus.T + floor @ minus.T
    if infinite.any():
        endless = infinite.astype(float)
        least = np.where(endless @ minus.T < 0, -np.inf, least)
        most = np.where(endless @ plus.T > 0, np.inf, most)
    return least, most
