"""Linear equations that hold in every row: totals, shares, one-hot groups, copies."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor, lgamma, log, log10

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from ._threads import one_blas_thread

# Rows in which equations of any kind are looked for: so many times the features.
_ROWS_PER_FEATURE = 2
# Rows that the null space is taken from, per feature, before all rows are asked.
_SAMPLE = 1.25
_MAX_ROUNDS = 20
# Where rounding is a smaller share than this, rank is certain.
_CLEARLY = 1e-6
# Denominators of coefficients that are taken for fractions.
_DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 25, 50, 60, 100, 1000)
# An equation is taken if chance makes one of its kind less often than 2 ** -_BITS.
_BITS = 30
_SHUFFLED_ROWS = 500
_BITS_PER_COEFFICIENT = 2
# Most features for the search of four that balance, and candidates that are tried.
_FEW_FEATURES, _MOST_CANDIDATES = 300, 5000
# Features written out in the description of an equation.
_WRITTEN = 12


@dataclass(frozen=True, repr=False)
class Invariants:
    """Linear equations ``coefficients @ x = values`` that all rows satisfy.

    Attributes
    ----------
    coefficients : ndarray of shape (c, D)
    values : ndarray of shape (c,)
    feature_names : tuple of str
    ranges : ndarray of shape (D,)
        Largest less least value of each feature in the rows.
    one_hot_groups : tuple of tuple of int
        Columns of 0 and 1, one of which is 1 in every row.
    note : str
        What was not looked for, and why; empty if everything was.

    See Also
    --------
    find_invariants : The search for equations.
    PNLAugmenter : One set of rows, without classes.
    """

    coefficients: np.ndarray
    values: np.ndarray
    feature_names: tuple
    ranges: np.ndarray
    one_hot_groups: tuple = ()
    note: str = ""

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        lines = [f"{len(self)} invariant{'s' * (len(self) != 1)} of "
                 f"{len(self.feature_names)} features"]  # fmt: skip
        lines += [f"  {text}" for text in self.descriptions]
        return "\n".join(lines + [self.note] * bool(self.note))

    @property
    def descriptions(self) -> tuple[str, ...]:
        """The equations in words, such as ``"total = a + b"``."""
        return tuple(
            in_words(a, b, self.feature_names)
            for a, b in zip(self.coefficients, self.values, strict=True)
        )

    def violation(self, X: ArrayLike) -> NDArray:
        """Largest violation of each equation over the rows.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (c,)
            As a share of the range of the equation's largest term in the rows that
            it was found in, or of its size if all of them are constant.
        """
        X = np.asarray(X, dtype=np.float64)
        distance = np.abs(X @ self.coefficients.T - self.values)
        scale = _scales(self.coefficients, self.ranges, self.values)
        return distance.max(axis=0, initial=0.0) / scale


@one_blas_thread()
def find_invariants(
    X: ArrayLike, feature_names: Sequence[str] | None = None, *, tol: float = 1e-9
) -> Invariants:
    """Find the linear equations that hold in every row.

    Constant features, copies, totals, nested subtotals, balances, shares and one-hot
    groups: all of them vectors in the null space of the centred rows. With at least
    twice as many distinct rows as features that vary, equations with any coefficients
    are found there. With fewer, rows satisfy equations by chance, and only simple ones
    are looked for: copies, up to four features that balance (coefficients 1 and -1),
    and the sum of neighbouring columns that is constant or another feature. An equation
    is taken if it holds in all rows and shuffled features would not let chance make
    one of its size.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Finite rows; those of higher dimension flat.
    feature_names : sequence of str, default=None
        Names for the descriptions; None is ``x0``, ``x1``, ...
    tol : float, default=1e-9
        An equation holds if no row misses it by more than this share of the range of
        its largest term. Rows in single precision need about 1e-6.

    Returns
    -------
    Invariants
        The first ones are constants; others have as few features as could be found.

    See Also
    --------
    Invariants : The equations found.
    column_constraint : What is asked of new rows.
    PNLAugmenter : One set of rows, without classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.invariants import find_invariants
    >>> parts = np.random.default_rng(0).gamma(1.0, size=(50, 3))
    >>> X = np.column_stack([parts.sum(axis=1), parts, 2 * parts[:, 0] + 32])
    >>> find_invariants(X, ["total", "a", "b", "c", "d"])
    2 invariants of 5 features
      total = a + b + c
      d = 2 a + 32
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not np.isfinite(X.sum()):
        raise ValueError(
            f"X must have shape (n, D) and be finite; got shape {X.shape}."
        )
    names = _names(feature_names, X.shape[1])
    if not len(X):
        return _no_invariants(names)
    if clearly_full_rank(X):
        return _no_invariants(names)
    low, high = X.min(axis=0), X.max(axis=0)
    size = np.maximum(np.abs(low), np.abs(high))
    ranges = high - low
    varying = np.flatnonzero(ranges > 1e-12 * size)
    constant = np.setdiff1d(np.arange(X.shape[1]), varying)
    rows = _Rows(X, varying, ranges, size, tol)
    if rows.n_distinct >= _ROWS_PER_FEATURE * len(varying):
        found, values, note = *rows.null_space(), ""
    else:
        found, values = rows.simple_equations()
        note = (
            f"{rows.n_distinct} distinct rows are too few for {len(varying)} features "
            f"that vary (fewer than {_ROWS_PER_FEATURE} times as many): only copies, "
            "up to four features that balance and sums of neighbouring columns were "
            "looked for."
        )
    coefficients = np.vstack([np.eye(X.shape[1])[constant], found])
    values = np.concatenate([(low + ranges / 2)[constant], values])
    # What is left of theirs is rounding, which nothing is a share of.
    ranges[constant] = 0
    groups = [
        frozenset(map(int, np.flatnonzero(a)))
        for a, b in zip(coefficients, values, strict=True)
        if _is_one_hot(a, b, X, low, high)
    ]
    groups += _finer(groups, coefficients, values, X) if groups else []
    sorted_groups = tuple(tuple(sorted(group)) for group in groups)
    return Invariants(coefficients, values, names, ranges, sorted_groups, note)


class _Rows:
    """The rows that equations are looked for in, and must hold in."""

    def __init__(self, X, varying, ranges, size, tol):
        self.X, self.varying, self.ranges, self.size = X, varying, ranges, size
        self.tol = tol
        self._rng = np.random.default_rng(0)
        self._direction = self._rng.uniform(1, 2, size=X.shape[1])
        scaled = self._direction / np.where(ranges > 0, ranges, np.inf)
        self.n_distinct = len(np.unique(X @ scaled))

    # --- many rows: any equation ------------------------------------------------

    def null_space(self):
        """Equations of any kind, from a sample of rows that grows where they fail."""
        n = len(self.X)
        X = self.X[:, self.varying]
        some = np.linspace(0, n - 1, min(n, int(_SAMPLE * X.shape[1]) + 50)).astype(int)
        still = X[:, np.ptp(X[some], axis=0) == 0]
        some = np.concatenate([some, still.argmin(axis=0), still.argmax(axis=0)])
        for _ in range(_MAX_ROUNDS):
            some = np.unique(some)
            raw = self._dependent(some) if len(self.varying) else []
            if not len(raw):
                return self._none()
            holds, _, worst = self._check(raw)
            if holds.all() or len(some) == n:
                break
            some = np.concatenate([some, worst[~holds]])
        found, values = self._readable(raw[holds])
        likely = np.array([not self._by_chance(a, fitted=True) for a in found], bool)
        return found[likely], values[likely]

    def _dependent(self, some):
        """Equations (k, D) that give some features by others, in some rows.

        Features of small range come first: what depends on them are totals.
        """
        order = self.varying[np.argsort(self.ranges[self.varying], kind="stable")]
        Z = self.X[np.ix_(some, order)]
        Z = (Z - Z.mean(axis=0)) / self.ranges[order]
        norms = np.linalg.norm(Z, axis=0)
        noise = 100 * np.finfo(float).eps * self.size[order] / self.ranges[order]
        least = np.maximum(10 * self.tol, noise) * np.sqrt(len(some))
        triangle = _triangle(Z)
        diagonal = np.abs(np.diagonal(triangle))
        depends = diagonal <= np.maximum(least[: len(diagonal)], 1e-14 * norms.max())
        free, follow = np.flatnonzero(~depends), np.flatnonzero(depends)
        if not len(follow):
            return np.empty((0, self.X.shape[1]))
        triangle = _triangle(triangle[:, [*free, *follow]])
        k = len(free)
        weights = solve_triangular(triangle[:k, :k], triangle[:k, k:]).T
        weights[np.abs(weights) < self.tol / 10] = 0.0
        equations = np.zeros((len(follow), self.X.shape[1]))
        own = self.ranges[order[follow], None]
        equations[:, order[free]] = -weights * own / self.ranges[order[free]]
        equations[np.arange(len(follow)), order[follow]] = 1.0
        return equations

    def _readable(self, raw):
        """Small fractions for coefficients, few features, whole numbers."""
        exact = _as_fractions(raw, self.ranges, self.tol)
        equations = _whole(_fewer_features(exact))
        holds, rounded, _ = self._check(equations)
        if holds.all():
            return equations, rounded
        # Some coefficients are no such fractions.
        good, _, _ = self._check(exact)
        equations = np.vstack([_whole(_fewer_features(exact[good])), raw[~good]])
        holds, rounded, _ = self._check(equations)
        return equations[holds], rounded[holds]

    # --- few rows: simple equations ---------------------------------------------

    def simple_equations(self):
        """Copies, balances of up to four features, sums of neighbouring columns."""
        found = np.empty((0, self.X.shape[1]))
        if len(self.X) < 3 or not len(self.varying):
            return self._none()
        # One number a feature: equations between features hold between these.
        weights = self._rng.uniform(-1, 1, size=len(self.X))
        code = (weights - weights.mean()) @ self.X
        for make in (_balances, _runs):
            candidates = make(code, self.varying, self.tol)
            for equation in islice(candidates, _MOST_CANDIDATES):
                if np.abs(equation).max() != 1 or np.count_nonzero(equation) < 2:
                    continue
                holds, _, _ = self._check(equation[None])
                if not holds[0] or self._by_chance(equation, fitted=False):
                    continue
                more = np.vstack([found, equation])
                if np.linalg.matrix_rank(more) == len(more):
                    found = more
        found = _whole(_fewer_features(found))
        return found, self._check(found)[1]

    # --- both -------------------------------------------------------------------

    def _none(self):
        return np.empty((0, self.X.shape[1])), np.empty(0)

    def _check(self, equations):
        """Whether equations hold in all rows, their values, and the worst rows."""
        products = self.X @ equations.T
        low, high = products.min(axis=0), products.max(axis=0)
        values = low + (high - low) / 2
        scale = _scales(equations, self.ranges, values)
        rounding = 16 * np.finfo(float).eps * (np.abs(equations) @ self.size)
        values = np.array(
            [
                _rounded(v, max(half, eps, 1e-3 * self.tol * s))
                for v, half, eps, s in zip(
                    values, high - low, rounding, scale, strict=True
                )
            ]
        )
        distance = np.abs(products - values)
        holds = distance.max(axis=0, initial=0) <= self.tol * scale + rounding
        return holds, values, distance.argmax(axis=0)

    def _by_chance(self, equation, fitted):
        """Whether features drawn apart would make such an equation too.

        Shuffled features give its value in a row the chance that it takes its most
        frequent value; all rows, and all choices of as many features, make the rest.
        A fitted equation has spent a row on each coefficient.
        """
        features = np.flatnonzero(equation)
        n = min(len(self.X), _SHUFFLED_ROWS)
        value = np.zeros(_SHUFFLED_ROWS)
        for j in features:
            rows = self._rng.integers(len(self.X), size=_SHUFFLED_ROWS)
            value += equation[j] * self.X[rows, j]
        unit = self.tol * _scales(equation[None], self.ranges, value[:1])[0]
        _, counts = np.unique(np.round(value / (10 * unit)), return_counts=True)
        share = min(1.0, (counts.max() + 1) / _SHUFFLED_ROWS)
        bits = -log(share, 2) * (self.n_distinct - fitted * len(features))
        d, m = len(self.varying), len(features)
        choices = (lgamma(d + 1) - lgamma(m + 1) - lgamma(d - m + 1)) / log(2)
        if not fitted:
            choices = min(choices, 3 * log(d + 1, 2) + 2 * _BITS_PER_COEFFICIENT)
        return bits < choices + _BITS_PER_COEFFICIENT * m * fitted + _BITS or n < 3


def clearly_full_rank(X):
    """Whether some of the rows, and so all of them, clearly satisfy no equation."""
    some = X[:: max(1, int(len(X) // (_SAMPLE * X.shape[1] + 50)))]
    if len(some) <= some.shape[1]:
        return False
    Z = some / np.maximum(np.abs(some).max(axis=0), np.finfo(float).tiny)
    Z -= Z.mean(axis=0)
    norms = np.linalg.norm(Z, axis=0)
    if np.any(norms <= _CLEARLY * np.sqrt(len(some))):
        return False
    Z /= norms
    try:
        triangle = cholesky(Z.T @ Z, check_finite=False)
    except LinAlgError:
        return False
    return bool(np.diagonal(triangle).min() > np.sqrt(_CLEARLY))


def _triangle(Z):
    return qr(Z, mode="r", check_finite=False, overwrite_a=True)[0][: Z.shape[1]]


def _as_fractions(equations, ranges, tol):
    """Coefficients as the simplest fraction that the rows cannot tell from them.

    The first one that is 1 stays so.
    """
    exact = equations.copy()
    own = _scales(equations, ranges, np.zeros(len(equations)))[:, None]
    # By how much a coefficient can change unseen.
    room = np.divide(tol * own, ranges, out=np.zeros_like(equations), where=ranges > 0)
    room = np.maximum(room, 1e-12 * np.abs(equations))
    open_ = equations != 0
    for denominator in _DENOMINATORS:
        simple = np.round(equations * denominator) / denominator
        near = open_ & (np.abs(simple - equations) <= room)
        exact[near] = simple[near]
        open_ &= ~near
    return exact


def _fewer_features(equations):
    """Subtract equations from each other as long as that makes them simpler."""
    equations = equations.copy()
    going = True
    while going:
        going = False
        for i in np.argsort(-np.count_nonzero(equations, axis=1), kind="stable"):
            shorter = _shortened(equations, i)
            if shorter is not None:
                equations[i], going = shorter, True
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
    others, at = np.tile(others, 2), np.concatenate([first, last])
    ratio = own[at] / equations[others, at]
    trial = own - ratio[:, None] * equations[others]
    trial[np.abs(trial) < 1e-9 * np.abs(own).max()] = 0.0
    costs = _costs(np.vstack([own, trial]))
    best = int(np.argmin(costs[1:]))
    return trial[best] if costs[1 + best] < costs[0] else None


def _costs(equations):
    """Fewest features first, then plain sums, then columns that come early."""
    used = equations != 0
    n_features = used.shape[1]
    size = np.abs(equations)
    least = np.where(used, size, np.inf).min(axis=1, keepdims=True)
    uneven = (used & (size > (1 + 1e-9) * least)).sum(axis=1)
    columns = used @ np.arange(n_features)
    return (used.sum(axis=1) * n_features + uneven) * n_features**2 + columns


def _whole(equations):
    """Multiples with whole coefficients where small ones exist; else largest 1."""
    out = equations.copy()
    for k, a in enumerate(equations):
        positive, negative = np.count_nonzero(a > 0), np.count_nonzero(a < 0)
        # What is alone on its side is a total; shares are positive.
        if positive == 0 or (negative == 1 and positive > 1):
            a = -a
        a = a / np.abs(a[a != 0]).min()
        for factor in (*range(1, 13), 20, 50, 100):
            if np.all(np.abs(factor * a - np.round(factor * a)) < 1e-9 * factor):
                out[k] = np.round(factor * a)
                break
    return out


def _rounded(value, noise):
    """The shortest decimal number that is nearer than the noise."""
    if noise <= 0 or not np.isfinite(value):
        return value
    return round(value, -floor(log10(noise))) + 0.0


def _scales(equations, ranges, values):
    """Range of the largest term of each equation, or its size if none varies."""
    scale = (np.abs(equations) * ranges).max(axis=1, initial=0.0)
    size = np.maximum(np.abs(values), np.abs(equations).max(axis=1, initial=0.0))
    return np.where(scale > 0, scale, np.where(size > 0, size, 1.0))


def _balances(code, varying, tol):
    """Two, three and four features with sum 0, signs 1 and -1, by their codes."""
    own, d = code[varying], len(varying)
    noise = 10 * tol * np.abs(own).max(initial=0.0)
    both_signs = np.concatenate([own, -own])

    def single(k):
        return [(varying[k % d], 1.0 if k < d else -1.0)]

    for p, q in _equal(own, both_signs, noise):
        yield _equation(len(code), single(p), single(q))
    if d > _FEW_FEATURES:
        return
    i, j = np.triu_indices(d, 1)
    pairs = np.concatenate([own[i] + own[j], own[i] - own[j]])

    def pair(p):
        k = p % len(i)
        return [(varying[i[k]], 1.0), (varying[j[k]], 1.0 if p < len(i) else -1.0)]

    for p, q in _equal(pairs, both_signs, noise):
        yield _equation(len(code), pair(p), single(q))
    order = np.argsort(np.abs(pairs), kind="stable")
    for k in np.flatnonzero(np.diff(np.abs(pairs)[order]) <= noise):
        p, q = order[k : k + 2]
        sign = 1.0 if pairs[p] * pairs[q] > 0 else -1.0
        yield _equation(len(code), pair(p), [(f, sign * w) for f, w in pair(q)])


def _runs(code, varying, tol):
    """Sums of neighbouring columns that are constant, or another feature.

    Longest first: a total of all columns rather than what follows from it.
    """
    until = np.concatenate([[0.0], np.cumsum(code)])
    noise = 10 * tol * max(np.abs(code).max(), np.abs(until).max())
    first, last = np.triu_indices(len(code) + 1, 2)
    order = np.argsort(first - last, kind="stable")
    first, last = first[order], last[order]
    singles = np.concatenate([code[varying], [0.0]])
    varies = np.isin(np.arange(len(code)), varying)
    for p, q in _equal(until[last] - until[first], singles, noise):
        columns = np.arange(first[p], last[p])
        terms = [(j, 1.0) for j in columns[varies[columns]]]
        single = [(varying[q], 1.0)] if q < len(varying) else []
        yield _equation(len(code), terms, single)


def _equal(left, right, noise):
    """Pairs of numbers of entries of both that agree within the noise."""
    order = np.argsort(right, kind="stable")
    first = np.searchsorted(right[order], left - noise)
    last = np.searchsorted(right[order], left + noise, side="right")
    for p in np.flatnonzero(last > first):
        for q in order[first[p] : last[p]]:
            yield p, q


def _equation(n_features, plus, minus):
    """Coefficients from pairs of feature and weight on two sides."""
    equation = np.zeros(n_features)
    for feature, weight in plus:
        equation[feature] += weight
    for feature, weight in minus:
        equation[feature] -= weight
    return equation


def _is_one_hot(a, b, X, low, high):
    features = np.flatnonzero(a)
    if (
        len(features) < 2
        or np.any(a[features] != a[features[0]])
        or b != a[features[0]]
    ):
        return False
    if np.any(low[features] != 0) or np.any(high[features] != 1):
        return False
    part = X[:, features]
    return bool(np.all((part == 0) | (part == 1)))


def _finer(groups, coefficients, values, X):
    """Groups in which indicators are replaced by those that they are the sums of.

    Such as that of all cities, where the equations are about the countries.
    """
    parts = {}
    for a in coefficients[values == 0]:
        features = np.flatnonzero(a)
        signs = a[features]
        shown = X[:, features]
        if np.any(np.abs(signs) != 1) or np.any((shown != 0) & (shown != 1)):
            continue
        for sign in (1, -1):
            total, rest = features[signs == sign], features[signs == -sign]
            if len(total) == 1 and len(rest) > 1:
                parts[int(total[0])] = frozenset(map(int, rest))
    found = []
    for group in groups:
        for _ in parts:
            group = group.union(*(parts.get(j, ()) for j in group)) - (
                group & set(parts)
            )
        if group not in groups:
            found.append(group)
    return found


def _no_invariants(names):
    d = len(names)
    return Invariants(np.empty((0, d)), np.empty(0), names, np.zeros(d))


def _names(feature_names, n_features):
    if feature_names is None:
        return tuple(f"x{j}" for j in range(n_features))
    names = tuple(map(str, feature_names))
    if len(names) != n_features:
        raise ValueError(f"{len(names)} feature_names for {n_features} features.")
    return names


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
