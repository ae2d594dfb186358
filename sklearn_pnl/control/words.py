"""Linear equations in words."""

import numpy as np

# Features written out in the description of an equation.
_WRITTEN = 12


def linear_form(a, names):
    """``2 a - b`` in words."""
    return _terms(a, np.flatnonzero(a), names)


def in_words(a, b, names):
    """``total = a + b``: alone what has a sign of its own, if anything has."""
    features = np.flatnonzero(a)
    positive = features[a[features] > 0]
    negative = features[a[features] < 0]
    if len(negative) == 1 and len(positive) != 1:
        a, b, positive, negative = -a, -b, negative, positive
    if not len(negative):
        return f"{_terms(a, positive, names)} = {b:.12g}"
    if len(positive) == 1:
        # Of two features the one that makes shorter words; the later one is the copy.
        alone = features[::-1] if len(negative) == 1 else positive
        return min((_solved_for(a, b, k, names) for k in alone), key=len)
    return f"{_terms(a, features, names)} = {b:.12g}"


def between(a, lower, upper, names):
    """``1 <= a + b <= 2``, or an equation, in words."""
    if lower == upper:
        return in_words(a, lower, names)
    left = "" if np.isinf(lower) else f"{lower:.12g} <= "
    right = "" if np.isinf(upper) else f" <= {upper:.12g}"
    return f"{left}{linear_form(a, names)}{right}"


def _solved_for(a, b, k, names):
    a, b = a / a[k], b / a[k]
    others = np.flatnonzero(a)
    right = _terms(-a, others[others != k], names)
    end = f" {'+' if b > 0 else '-'} {abs(b):.12g}" if b else ""
    return f"{names[k]} = {right}{end}"


def _terms(a, features, names):
    parts = []
    shown = features if len(features) <= _WRITTEN else features[: _WRITTEN - 2]
    for j in shown:
        size = "" if abs(a[j]) == 1 else f"{abs(a[j]):.12g} "
        sign = ("- " if a[j] < 0 else "+ ") if parts else "-" * int(a[j] < 0)
        parts.append(f"{sign}{size}{names[j]}")
    if len(shown) < len(features):
        parts.append(f"+ ... + {names[features[-1]]} ({len(features)} features)")
    return " ".join(parts)
