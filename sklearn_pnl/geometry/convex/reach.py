"""Ranges of linear functions of cells, and explanations of infeasible equations."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

# Residuals below this share of the size of an equation do not prove infeasibility.
_CERTAIN = 1e-8


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


def why_missed(coefficients, lower, upper, floor, ceiling, max_iter, residual):
    """Explain why one row does not satisfy its equations."""
    least, most = (
        end[0] for end in box_reach(coefficients, floor[None], ceiling[None])
    )
    size = np.maximum(largest_of_rows(coefficients), 1e-300)
    slack = _CERTAIN * np.maximum(size, np.where(np.isinf(lower), 0, np.abs(lower)))
    alone = np.flatnonzero((lower > most + slack) | (upper < least - slack))
    if len(alone):
        i = alone[0]
        return (
            f"Equation {i} asks for {span(lower[i], upper[i])}; within the ranges "
            f"of its features it reaches {span(least[i], most[i])}."
        )
    return (
        "Each equation can be met alone, but together they are missed by "
        f"{residual:.1e} of their size after at most {max_iter} Newton steps: they "
        "may contradict each other. Drop or loosen one, or increase max_iter."
    )


def largest_of_rows(coefficients):
    """Largest size of a coefficient (c,) of each equation."""
    if not coefficients.shape[1]:
        return np.zeros(coefficients.shape[0])
    largest = abs(coefficients).max(axis=1)
    return largest.toarray().reshape(-1) if issparse(largest) else largest
