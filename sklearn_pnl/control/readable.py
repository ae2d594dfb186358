"""Equations as people write them: small fractions, few features, and in words."""

from math import floor, isfinite, log10

import numpy as np

# Denominators of coefficients that are taken for fractions.
_DENOMINATORS = np.array(
    [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 25, 50, 60, 100, 1000]
)[:, None]
# Factors of coefficients that are tried for whole numbers.
_FACTORS = np.array([*range(1, 13), 20, 50, 100])[:, None]
# Features written out in the description of an equation.
_WRITTEN = 12
# Places less than noise tells that a number may have.
_COARSER = 6
# So few equations are faster one by one than as a matrix.
_FEW = 4
# Of more cells those of a few columns are faster taken out first.
_MANY = 2**15


def as_fractions(equations, ranges, tol, rounding):
    """Coefficients as the simplest fraction that the rows cannot tell from them.

    The first one that is 1 stays so.
    """
    own = scales(equations, ranges, np.zeros(len(equations)))[:, None]
    # By how much a coefficient can change unseen.
    room = tol * own + rounding[:, None]
    room = np.divide(room, ranges, out=np.zeros_like(equations), where=ranges > 0)
    found, used = equations.copy(), equations != 0
    own, room = equations[used], room[used]
    simple = np.round(own * _DENOMINATORS) / _DENOMINATORS
    near = np.abs(simple - own) <= np.maximum(room, 1e-12 * np.abs(own))
    first = simple[near.argmax(axis=0), np.arange(len(own))]
    found[used] = np.where(near.any(axis=0), first, own)
    return found


def fewer_features(equations):
    """Subtract equations from each other as long as that makes them simpler."""
    equations, done = equations.copy(), set()
    while len(equations) > max(1, len(done)):
        for i in np.argsort(-np.count_nonzero(equations, axis=1), kind="stable"):
            shorter = None if i in done else _shortened(equations, i)
            if shorter is None:
                done.add(i)
            else:
                equations[i], done = shorter, set()
    return equations


def _shortened(equations, i):
    own = equations[i]
    both = (equations != 0) & (own != 0)
    both[i] = False
    others = np.flatnonzero(both.any(axis=1))
    if not len(others):
        return None
    first = both[others].argmax(axis=1)
    last = both.shape[1] - 1 - both[others, ::-1].argmax(axis=1)
    others, at = np.concatenate([others, others]), np.concatenate([first, last])
    ratio = (own[at] / equations[others, at])[:, None]
    trial = own - ratio * equations[others]
    # What is left of two terms is rounding, in whatever units they are.
    trial[np.abs(trial) < 1e-9 * (np.abs(own) + np.abs(ratio * equations[others]))] = 0
    costs = _costs(np.vstack([own, trial]))
    best = int(np.argmin(costs[1:]))
    return trial[best] if costs[1 + best] < costs[0] else None


def _costs(equations):
    """Fewest features first, then plain sums, then columns that come early."""
    used, size, d = equations != 0, np.abs(equations), equations.shape[1]
    least = np.where(used, size, np.inf).min(axis=1, keepdims=True)
    uneven = size > (1 + 1e-9) * least
    return used @ (d**3 + np.arange(d)) + uneven.sum(axis=1) * d**2


def whole(equations):
    """Multiples with whole coefficients where small ones exist; else largest 1."""
    out = equations.copy()
    for k, a in enumerate(equations):
        positive, negative = np.count_nonzero(a > 0), np.count_nonzero(a < 0)
        # What is alone on its side is a total; shares are positive.
        if positive == 0 or (negative == 1 and positive > 1):
            a = -a
        a = a / np.abs(a[a != 0]).min()
        trial = _FACTORS * a
        near = np.all(np.abs(trial - np.round(trial)) < 1e-9 * _FACTORS, axis=1)
        if near.any():
            out[k] = np.round(trial[near.argmax()])
    return out


def shortest(value, noise):
    """The decimal number of fewest places that is nearer than the noise."""
    if noise <= 0 or not isfinite(value):
        return value
    finest = -floor(log10(noise))
    tried = (round(float(value), p) for p in range(finest - _COARSER, finest))
    near = (number for number in tried if abs(number - value) < noise)
    return next(near, round(float(value), finest)) + 0.0


def values_of(equations, rows):
    """What equations (c, D) are about, in each of some rows (n, D): (c, n)."""
    used = np.flatnonzero(equations.any(axis=0)) if rows.size > _MANY else ()
    if 0 < len(used) < rows.shape[1] / _FEW:
        equations, rows = equations[:, used], rows[:, used]
    if len(equations) > _FEW:
        return equations @ rows.T
    values = np.empty((len(equations), len(rows)))
    for equation, own in zip(equations, values, strict=True):
        np.matmul(rows, equation, out=own)
    return values


def scales(equations, ranges, values):
    """Range of the largest term of each equation, or its size if none varies."""
    scale = (np.abs(equations) * ranges).max(axis=1, initial=0.0)
    if (scale > 0).all():
        return scale
    size = np.maximum(np.abs(values), np.abs(equations).max(axis=1, initial=0.0))
    return np.where(scale > 0, scale, np.where(size > 0, size, 1.0))


def in_words(a, b, rounding, names):
    """``total = a + b``: alone what has a sign of its own, if anything has.

    And up to which ``rounding``.
    """
    if np.count_nonzero(a < 0) == 1 and np.count_nonzero(a > 0) != 1:
        a, b = -a, -b
    features, positive = np.flatnonzero(a), np.flatnonzero(a > 0)
    if len(positive) == 1 < len(features):
        # Of two features the one that makes shorter words; the later one is the copy.
        alone = features[::-1] if len(features) == 2 else positive
        return min((_solved_for(a, b, k, names, rounding) for k in alone), key=len)
    return f"{linear_form(a, names)} = {b:.12g}{_up_to(rounding)}"


def between(a, lower, upper, rounding, names):
    """``1 <= a + b <= 2``, or an equation, in words."""
    if lower == upper:
        return in_words(a, lower, rounding, names)
    left = "" if np.isinf(lower) else f"{lower:.12g} <= "
    right = "" if np.isinf(upper) else f" <= {upper:.12g}"
    return f"{left}{linear_form(a, names)}{right}"


def _up_to(rounding):
    return f", up to {rounding:.6g}" if rounding else ""


def _solved_for(a, b, k, names, rounding):
    a, b, rounding = a / a[k], b / a[k], rounding / abs(a[k])
    right = linear_form(np.where(np.arange(len(a)) == k, 0, -a), names)
    end = f" {'+' if b > 0 else '-'} {abs(b):.12g}" if b else ""
    return f"{names[k]} = {right}{end}{_up_to(rounding)}"


def linear_form(a, names):
    """``2 a - b`` in words."""
    features, parts = np.flatnonzero(a), []
    shown = features if len(features) <= _WRITTEN else features[: _WRITTEN - 2]
    for j in shown:
        size = "" if abs(a[j]) == 1 else f"{abs(a[j]):.12g} "
        sign = ("- " if a[j] < 0 else "+ ") if parts else "-" * int(a[j] < 0)
        parts.append(f"{sign}{size}{names[j]}")
    if len(shown) < len(features):
        parts.append(f"+ ... + {names[features[-1]]} ({len(features)} features)")
    return " ".join(parts)
